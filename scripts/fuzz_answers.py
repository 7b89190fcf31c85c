"""Hostile texts through all that makes an answer safe to show, and what three renderers make of the result.

A text is what a model might have been talked into writing: pieces of Markdown, HTML and addresses, with every kind of
line end, controls, deep nesting, and code that never ends. For each:

- The result is the same wherever the text is cut: at each single place up to 64 characters, at random ones beyond.
- In no renderer has it an element or an attribute outside of the allow-list, or an address that is neither of the
  page's own site nor known.
- Code is as it was written: what a renderer shows as code is in the text, character for character. A third of the texts
  have code blocks and spans that are code for every renderer; these come out as they are in the text, all of them.

A text depends on the seed and its number alone, so one that fails is made again with --only. The last line counts what
was tried; the exit code is 1 when something failed.
"""

import argparse
import multiprocessing
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from service.assistant.addresses import KnownAddresses
from service.assistant.showing.answer_text import AnswerText
from tests.node_packages import CannotInstall, install
from tests.renderers.renderers import BASE, HERE, NAMES, Renderers, Seen, renderers

BATCH = 250
SHORT = 64
"""Characters of a text that is cut at each place."""
RANDOM_CUTS = 6
PASSAGE = "See [the code](https://code.example/kite) or https://code.example/wiki_(kite), write to help@kite.example."
MAX_SHOWN = 10
"""Failures that are printed whole, of each process."""

# The texts

LINE_ENDS = ("\n", "\n", "\r", "\r\n", "\n\n", "\r\n\r\n", "\r\r", "\n\r")
ODD = ("\0", "\f", "\v", "\x1c", "\x1e", "\x85", "\u2028", "\u2029", "\xa0", "\u3000", "\ufeff", "\u200b", "\x7f", "\t")
MARKS = (
    "`", "``", "```", "````", "~~~", "~~~~", "*", "**", "_", "~", "~~", "|", "|---|---|", "-|-", "---", "===", "# ",
    "- ", "* ", "+ ", "1. ", "2) ", "10. ", "> ", ">", ":", "\\", "!", "[", "]", "(", ")", "](", "][", "![", "[^1]",
    "[^1]: ", "[r]", "[r]: ", "[a]: <", "[a](", "- [ ] ", "{", "}", "{{", "}}", "${", "{/*", "*/}", "=>", "<>", "</>",
    " ", "  ", "   ", "    ", "     ", "        ", ":::", "$$", "\\(", "&", "&#", ";", "'", '"', "<", ">", "/", ".",
    "@", "#",
)  # fmt: skip
HTML = (
    "<img src=x onerror=alert(1)>", "<script>", "</script>", "<script>alert(1)</script>", "<b>", "</b>", "<div>",
    "</div>", "<div\n", "<pre>", "</pre>", "<style>", "</style>", "<textarea>", "</textarea>", "<title>", "<!--",
    "-->", "<!-->", "<!--->", "<?", "?>", "<![CDATA[", "]]>", "<!DOCTYPE x>", "<!A", "<a href='//evil.example'>",
    "</a>", "<svg onload=alert(1)>", "<svg/onload=x>", "<math>", "<iframe src=//evil.example>", "<table>", "<td>",
    "<br>", "<br/>", "<br onclick=x>", "<kbd>", "</kbd>", "<sub>", "<sup>", "<kbd onclick=x>", "<code>", "</code>",
    "<X a={b}>", "<Card href='javascript:x'>", "<base href=//evil.example>", "<form action=//evil.example>",
    "<meta http-equiv=x>", "<input autofocus onfocus=x>", "<\nimg src=x>", "<img\nsrc=x>", "<img\rsrc=x>",
    "<img\fsrc=x>", "<img/src=x>", "<p title='`'>", "<details open ontoggle=x>", "<a\x0bhref=x>", "<0>", "< b>", "<-",
    "<think", "think>",
)  # fmt: skip
ADDRESSES = (
    "https://evil.example/?q=1", "http://evil.example", "HTTPS://EVIL.example/x", "www.evil.example/x",
    "WWW.EVIL.EXAMPLE", "//evil.example", "/\\evil.example", "\\\\evil.example", "https:/evil.example",
    "https:evil.example", "http:\\\\evil", "ftp://evil.example", "javascript:alert(1)", "JavaScript:alert(1)",
    "java\tscript:x", "data:text/html,x", "vbscript:x", "&#106;avascript:x", "javascript&colon;x",
    "/&sol;evil.example", "%2f/evil.example", "mailto:me@evil.example", "me@evil.example", "a.b+c@evil-host.example",
    "xmpp:me@evil.example", "help@kite.example", "https://code.example/kite", "<https://evil.example>",
    "<me@evil.example>", "<https://code.example/kite>", "<help@kite.example>", "<javascript:alert(1)>", "<x:y>",
    "https://docs.kite.example@evil.example", "https://evil.example:80/", "file:///etc", "/a.png", "/guides", "#part",
    "?q=1", "c.md", "http", "https:", "://", "www.", "www", "h", "https\\://evil.example", "https&#58;//evil.example",
    "www&#46;evil.example", "tel:1", "blob:x", "evil.example/x",
)  # fmt: skip
LINKS = (
    "[a](https://evil.example)", "[a](<https://evil.example>)", "![a](https://evil.example)", "![a](/a.png)",
    "[a](/b#c)", "[a](https://code.example/kite)", '[a](/b "t")', "[a](https://evil.example 'x')",
    "[a](\thttps://evil.example)", "[a](\nhttps://evil.example)", "[a](/b\n)", "[a]()", "[a](<>)", "[r][r]", "[r][]",
    "[r]: https://evil.example", "[r]: <https://evil.example>", "[r]:\nhttps://evil.example", "[r]: /b",
    "[^1]: https://evil.example", "![r][r]", "![r]", "[[a](https://evil.example)](/b)",
    "[![a](https://evil.example)](/b)", "[`a`](https://evil.example)", "[1]", "[2]", "[0]", "[9]", "[1, 2]",
    "[1](https://evil.example)", "![1](https://evil.example)", "[1]: https://evil.example",
    "[a](javascript:alert(1))", "[a](&#x6A;avascript:x)", "[a](\\/\\/evil.example)", "[a](/\\/evil.example)",
)  # fmt: skip
ENTITIES = (
    "&lt;",
    "&gt;",
    "&amp;",
    "&#60;",
    "&#x3c;",
    "&#58;",
    "&colon;",
    "&nbsp;",
    "&Tab;",
    "&NewLine;",
    "&#0;",
    "&#10;",
)
WORDS = ("a", "word ", "Kite ", "x", "1", "é", "日本", "🪁", "sh", "js", "the ", "b\n", "c", " d", "e ")
KINDS: tuple[tuple[Sequence[str], int], ...] = (
    (LINE_ENDS, 6), (ODD, 2), (MARKS, 8), (HTML, 3), (ADDRESSES, 3), (LINKS, 3), (ENTITIES, 1), (WORDS, 6),
)  # fmt: skip
_PIECES = [kind for kind, _ in KINDS]
_WEIGHTS = [weight for _, weight in KINDS]
DEEP = (
    "> ",
    ">",
    "- ",
    "1. ",
    "  ",
    "[",
    "![",
    "*",
    "**",
    "_",
    "(",
    "<b>",
    "<",
    "`",
    "``a",
    "~",
    "\t",
    "\\",
    "&",
    "[a](",
)
CODE_LINES = (
    "<b>x</b>", "<script>alert(1)</script>", "<img src=x onerror=y>", "[a](https://evil.example)", "[1]", "[0] x",
    "![a](b)", "https://evil.example/?q=1", "www.evil.example", "a & b &lt; &#58;", "<think>no</think>", "\\`", "`",
    "``", "x = [2]", "if a < b {", "}", "", "    indented", "| a | b |", "|---|---|", "# no", "- no", "> no", "---",
    "me@evil.example", "[r]: https://evil.example", "<!--", "-->", "{/* x */}", "é 日本", "a\tb", "  x", "&nbsp;",
    "~~~", "*x*",
)  # fmt: skip
SPANS = (
    "<b>", "List<T>", "[1]", "[a](https://evil.example)", "https://evil.example", "a & b", "&lt;", "<think>", "\\",
    "x[0]", "![a](b)", "me@evil.example", "<!--", "*x*", "{x}", "a  b", "~", "<script>",
)  # fmt: skip


class Text(Struct, frozen=True):
    written: str
    code: tuple[str, ...] | None = None
    """The code in it, where all of it is known and is code for every renderer."""


def text_of(seed: int, number: int) -> Text:
    chance = random.Random(f"{seed}:{number}")
    match number % 6:
        case 0 | 1:
            return Text(_pieces(chance, chance.randint(2, 14))[:SHORT])
        case 2:
            return Text(_pieces(chance, chance.randint(10, 70)))
        case 3:
            deep = chance.choice(DEEP) * (chance.randint(5, 60) if chance.random() < 0.9 else chance.randint(60, 900))
            return Text(_pieces(chance, chance.randint(0, 6)) + deep + _pieces(chance, chance.randint(2, 20)))
        case _:
            return _with_code(chance)


def _pieces(chance: random.Random, count: int) -> str:
    return "".join(chance.choice(kind) for kind in chance.choices(_PIECES, _WEIGHTS, k=count))


def _with_code(chance: random.Random) -> Text:
    """Blocks in the open, in quotes and in lists, and spans; between them what is hostile, in paragraphs of its own."""
    end = chance.choice(("\n", "\r", "\r\n"))
    lines: list[str] = []
    code: list[str] = []
    for _ in range(chance.randint(1, 4)):
        match chance.randint(0, 3):
            case 0:
                span = chance.choice(SPANS)
                lines += [f"Say `{span}` and ``{span}``, then <b>{chance.choice(WORDS).strip()}.", ""]
                code += [span, span]
            case 1:
                lines += [chance.choice(WORDS).strip() + " " + chance.choice((*HTML, *LINKS)).split("\n")[0] + " x", ""]
                if "`" in lines[-2] or "<!" in lines[-2] or "<?" in lines[-2]:
                    del lines[-2:]
            case _:
                block, content = _block(chance)
                lines += [*block, ""]
                code.append(content)
    return Text(end.join(lines), tuple(code))


def _block(chance: random.Random) -> tuple[list[str], str]:
    """The lines of a fenced block, and its content."""
    fence = chance.choice(("```", "~~~", "````", "`````"))
    content = [
        line
        for line in chance.choices(CODE_LINES, k=chance.randint(0, 6))
        if not (line and line.strip(fence[0]) == "" and len(line) >= len(fence))
    ]
    begin = fence + chance.choice(("", "html", "sh", " js title=x"))
    first, rest = chance.choice((("", ""), ("", ""), ("> ", "> "), ("- ", "  "), ("1. ", "   "), ("> > ", "> > ")))
    lines = [first + begin, *((rest + line).rstrip(" ") if not line else rest + line for line in content), rest + fence]
    return lines, "".join(line + "\n" for line in content)


# What is looked for

ELEMENTS = frozenset(
    {
        "p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "del",
        "s", "a", "img", "br", "hr", "table", "thead", "tbody", "tr", "th", "td", "kbd", "sub", "sup", "input",
        "section",
    }
)  # fmt: skip
ATTRIBUTES: dict[str, frozenset[str]] = {
    "a": frozenset({"href", "title", "id", "data-footnote-ref", "data-footnote-backref", "aria-describedby", "class",
                    "aria-label"}),
    "img": frozenset({"src", "alt", "title"}),
    "code": frozenset({"class"}),
    "ol": frozenset({"start"}),
    "ul": frozenset({"class"}),
    "li": frozenset({"class", "id"}),
    "th": frozenset({"align", "style"}),
    "td": frozenset({"align", "style"}),
    "input": frozenset({"type", "checked", "disabled"}),
    "section": frozenset({"class", "data-footnotes"}),
    "h2": frozenset({"class", "id"}),
}  # fmt: skip
"""Footnotes and task lists are remark's and marked's own."""
ORIGIN = BASE[: BASE.index("/", 8)] + "/"


def is_allowed_url() -> KnownAddresses:
    addresses = KnownAddresses("docs.kite.example", BASE)
    addresses.add(PASSAGE)
    return addresses


def url_of(number: int) -> str | None:
    return {1: "/deploy#vercel", 2: "/theme"}.get(number)


def shown(chunks: Sequence[str], known: KnownAddresses) -> str:
    text = AnswerText(url_of, known)
    return "".join([*map(text.feed, chunks), text.finish()])


def cuts_of(text: str, chance: random.Random) -> Iterator[list[str]]:
    """The text in pieces: each character, and two at each place, or several at random ones."""
    yield list(text)
    if len(text) <= SHORT:
        yield from ([text[:at], text[at:]] for at in range(1, len(text)))
        return
    for _ in range(RANDOM_CUTS):
        places = sorted(chance.choices(range(len(text) + 1), k=chance.randint(1, 12)))
        yield [text[begin:end] for begin, end in zip([0, *places], [*places, len(text)], strict=True)]


def strange(seen: Seen, known: Callable[[str], bool]) -> Iterator[str]:
    """Elements, attributes and addresses that should not be there."""
    for name, attributes in seen.elements:
        if name not in ELEMENTS:
            yield f"element <{name}>"
        for attribute, value, address in attributes:
            if attribute not in ATTRIBUTES.get(name, ()):
                yield f"attribute {name} {attribute}={value!r}"
            if address is not None and not (address.startswith(ORIGIN) or known(address) or known(value)):
                yield f"address {name} {attribute}={value!r}"


def squashed(text: str) -> str:
    """Without what a renderer takes off the beginning of code's lines, or makes a blank of."""
    return re.sub(r"[\s>]+", "", text.replace("\0", "\ufffd").replace("\ufeff", ""))


def was_written(code: str, text: str) -> bool:
    """Whether the code is in the text, citations between the parts of an address aside."""
    return squashed(code) in squashed(text) or squashed(code) in squashed(_CITATION.sub("", text))


_CITATION = re.compile(r"\s*\[[0-9\s,;-]+\](?:\([^\s)]*\)?)?")


def altered(seen: Seen, text: Text) -> Iterator[str]:
    """Code that was not written so."""
    if text.code is not None:
        found = list(seen.code)
        wanted = list(text.code)
        at = 0
        for code in found:
            if at < len(wanted) and (
                code == wanted[at] or not (code + wanted[at]).strip("\n")
            ):  # remark: no blank line
                at += 1
            elif not was_written(code, text.written):
                yield f"code {code!r}"
        if at < len(wanted):
            yield f"code lost: {wanted[at]!r} of {wanted!r}; there is {found!r}"
        return
    for code in seen.code:
        if not was_written(code, text.written):
            yield f"code {code!r}"


# The run


def tried(
    rendering: Renderers, seed: int, numbers: Sequence[int], known: KnownAddresses
) -> tuple[Counter[str], list[str]]:
    """Counts, and what failed."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    texts = [text_of(seed, number) for number in numbers]
    whole = [shown([text.written], known) for text in texts]
    for number, text, once in zip(numbers, texts, whole, strict=True):
        counts["texts"] += 1
        counts["characters"] += len(text.written)
        for chunks in cuts_of(text.written, random.Random(f"{seed}:{number}:cuts")):
            counts["cuts"] += 1
            if (other := shown(chunks, known)) != once:
                counts["cut otherwise"] += 1
                failures.append(f"{number}: cut {chunks!r} gives\n  {other!r}, not\n  {once!r}")
                break
    for number, text, once, seens in zip(numbers, texts, whole, rendering.render(whole), strict=True):
        for name, seen in zip(NAMES, seens, strict=True):
            counts["elements"] += len(seen.elements)
            counts["code"] += len(seen.code)
            problems = [*strange(seen, known), *altered(seen, text)]
            for problem in problems:
                counts[problem.split(" ")[0] + " in " + name] += 1
            if problems:
                failures.append(f"{number}: {name}: {problems}\n  {text.written!r} is sent as\n  {once!r}")
    return counts, failures


def work(job: tuple[int, range]) -> tuple[Counter[str], list[str]]:
    """A share of the texts, in a process of its own."""
    seed, numbers = job
    counts: Counter[str] = Counter()
    failures: list[str] = []
    with renderers() as rendering:
        known = is_allowed_url()
        for at in range(0, len(numbers), BATCH):
            more, failed = tried(rendering, seed, numbers[at : at + BATCH], known)
            counts += more
            failures += failed[: MAX_SHOWN - len(failures)]
    return counts, failures


def run(*, seed: int, numbers: range, processes: int) -> tuple[Counter[str], list[str]]:
    """Try these texts; print failures as they come."""
    shares = [(seed, numbers[at : at + 5_000]) for at in range(0, len(numbers), 5_000)]
    counts: Counter[str] = Counter()
    failures: list[str] = []
    if processes == 1 or len(shares) == 1:
        results: Iterator[tuple[Counter[str], list[str]]] = map(work, shares)
    else:
        results = multiprocessing.get_context("spawn").Pool(processes).imap_unordered(work, shares)
    for more, failed in results:
        counts += more
        failures += failed
        for failure in failed:
            print(failure, flush=True)
        if len(shares) > 1:
            print(f"{counts['texts']:,} texts, {failed_of(counts)} failures", file=sys.stderr, flush=True)
    return counts, failures


TRIED = ("texts", "characters", "cuts", "elements", "code")


def failed_of(counts: Counter[str]) -> int:
    return sum(count for name, count in counts.items() if name not in TRIED)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/fuzz-answers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=200_000, metavar="N", help="how many texts (200000)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which texts (1)")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one text of the seed, by the number of its failure")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="how many at once (1)")
    options = parser.parse_args()
    try:
        install(HERE)
    except CannotInstall as error:
        print(f"fuzz-answers: {error}", file=sys.stderr)
        return 2
    began = time.monotonic()
    numbers = range(options.texts) if options.only is None else range(options.only, options.only + 1)
    counts, _ = run(seed=options.seed, numbers=numbers, processes=options.processes)
    for name, count in sorted(counts.items()):
        if name not in TRIED:
            print(f"{name}: {count:,}")
    print(
        f"seed {options.seed}: {counts['texts']:,} texts of {counts['characters']:,} characters, {counts['cuts']:,}"
        f" cuts, {counts['elements']:,} elements and {counts['code']:,} pieces of code in {len(NAMES)} renderers:"
        f" {failed_of(counts):,} failures, {time.monotonic() - began:.0f} s"
    )
    return 1 if failed_of(counts) else 0


if __name__ == "__main__":
    sys.exit(main())
