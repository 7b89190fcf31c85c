"""What a model writes gets out without raw HTML and without addresses that nobody gave it; code as it was."""

import os
import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from service.assistant.addresses import KnownAddresses
from service.assistant.showing.markup import MarkupGuard

EXAMPLES = int(os.environ.get("DOCSMITH_MARKUP_EXAMPLES", "150"))
PASSAGE = (
    "Read [the code](https://code.example/kite) or https://code.example/wiki_(kite). Write to help@kite.example, "
    "(see https://status.kite.example/)."
)
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
PLAIN_MARKDOWN = MarkdownIt("commonmark", {"html": True})


def known():
    addresses = KnownAddresses("docs.kite.example", "https://app.kite.example/help?x=1")
    addresses.add(PASSAGE)
    return addresses


def guarded(*chunks):
    guard = MarkupGuard(known())
    return "".join([*map(guard.feed, chunks), guard.finish()])


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("Look <img src=https://evil.example/?q=1>!", "Look &lt;img src=`https://evil.example/?q=1`>!"),
        ("<script>a</script>\n<!-- b --><?c?><!D>", "&lt;script>a&lt;/script>\n&lt;!-- b -->&lt;?c?>&lt;!D>"),
        ("1 < 2, <3, a<-b, <", "1 < 2, <3, a<-b, <"),
        ("Press <kbd>F1</kbd><br>x<sub>2</sub>", "Press <kbd>F1</kbd><br>x<sub>2</sub>"),
        ("<br>\n1. <kbd>x", "&lt;br>\n1. &lt;kbd>x"),
        ("a <br onclick=x> b", "a &lt;br onclick=x> b"),
        ("[go](javascript:alert(1)) on", "go on"),
        ("[a](data:text/html,x) [a](VBScript:x) [a](&#106;avascript:x)", "a a a"),
        ("[a](java\\script:x) [a]( <javascript:a b> )", "[a] (java\\script:x) [a] ( &lt;javascript:a b> )"),
        ("[a](//evil.example) [a](/&sol;evil.example) [a](/\\evil.example)", "a a [a] (/\\evil.example)"),
        ("[a](/b#c) [b](c.md) [c](#d) [d](?e=f) [e]()", "[a](/b#c) [b](c.md) [c](#d) [d](?e=f) [e]()"),
        ('[a](/b "c") [a](</b>)', '[a](/b "c") [a](</b>)'),
        ("[Kite](https://code.example/kite), [it](https://evil.example/x).", "[Kite](https://code.example/kite), it."),
        ("[w](https://code.example/wiki_(kite))", "[w](https://code.example/wiki_(kite))"),
        ("[more](https://code.example/kite?q=secret)", "more"),
        ("[us](mailto:help@kite.example) [me](mailto:me@evil.example)", "[us](mailto:help@kite.example) me"),
        ("[own](https://docs.kite.example/any?q=1)", "[own](https://docs.kite.example/any?q=1)"),
        ("[own](https://app.kite.example/any)", "[own](https://app.kite.example/any)"),
        ("[not](https://app.kite.example@evil.example/)", "not"),
        ("un[known](https://evil.example)ly", "un[known]ly"),
        ("[**x**](https://evil.example): [`c`](https://evil.example)", "[**x**] : `c`"),
        ("[www](https://evil.example).evil.example", "[www].evil.example"),
        ("[a [b](https://evil.example) c](/ok)", "[a b c](/ok)"),
        ("[a [b]](https://evil.example)(javascript:x)", "[a [b]] (javascript:x)"),
        (
            "![a](/a.png) [![a](a.png)](https://code.example/kite)",
            "![a](/a.png) [![a](a.png)](https://code.example/kite)",
        ),
        ("![a](https://evil.example/?q) ![a](https://code.example/kite)", "a ! [a](https://code.example/kite)"),
        ("See https://code.example/kite. Or", "See https://code.example/kite. Or"),
        ("(https://status.kite.example)", "(https://status.kite.example)"),
        ("**https://code.example/kite**x", "**<https://code.example/kite>**x"),
        ("At https://evil.example/?q=a, www.evil.example", "At `https://evil.example/?q=a`, `www.evil.example`"),
        ("HTTPS://EVIL.example/`x`", "`HTTPS://EVIL.example/` `x`"),
        ("https://code.example/kite]secret", "<https://code.example/kite>]secret"),
        ("[https://code.example/kite]secret", "[https://code.example/kite] secret"),
        (
            "<https://code.example/kite> <https://evil.example/x>",
            "<https://code.example/kite> `https://evil.example/x`",
        ),
        ("<help@kite.example> <me@evil.example>", "<help@kite.example> `me@evil.example`"),
        ("Say https:// or http, with ww", "Say https:// or http, with ww"),
        ("`<b>` ``a`<b>`` `List<T>`", "`<b>` ``a`<b>`` `List<T>`"),
        ("A stray ` and <b>", "A stray \\` and &lt;b>"),
        ("`a\n<div>\n`", "\\`a\n&lt;div>\n\\`"),
        (r"\`<b>\` \<b>", r"\`&lt;b>\` \<b>"),
        ("```html\n<b>\n```\n<b>", "```html\n<b>\n```\n&lt;b>"),
        ("~~~ a`b\n<b>\n~~~~\n<b>", "~~~ a`b\n<b>\n~~~~\n&lt;b>"),
        ("~~~|<b>\n|---|---|\n", "\\~\\~\\~|&lt;b>\n|---|---|\n"),
        ("```a`b <b>", "\\`\\`\\`a\\`b &lt;b>"),
        ("> ```html\n> <b>\n> ```\n> <b>", "> ```html\n> <b>\n> ```\n> &lt;b>"),
        ("> ```\n<b>", "> ```\n&lt;b>"),
        ("1. a\n\n   ```\n   <b>\n   ```\n2. b\n   - c\n\n     ```\n     <b>\n     ```\n",) * 2,
        ("- ```\n  <b>\n  ```\n- <b>", "- ```\n  <b>\n  ```\n- &lt;b>"),
        ("- ```\n<b>", "- ```\n  ```\n&lt;b>"),
        ("  ```\n  a\n```\n<b>", "  ```\n  a\n  ```\n&lt;b>"),
        ("text\n    ```\n    <b>\n", "text\n    \\`\\`\\`\n    &lt;b>\n"),
        ("```\nopen <b>", "```\nopen <b>\n```\n"),
        ("> ```\n> open <b>", "> ```\n> open <b>\n> ```\n"),
        ("| ` | <b> | ` |\n|---|---|---|\n", "| ` | <b> | ` |\n\\|---|---|---|\n"),
        ("| a | b |\n|---|---|\n| ` | <b> ` |\n", "| a | b |\n|---|---|\n| \\` | &lt;b> \\` |\n"),
        ("| `a|b` `<c>` |\n\nx", "| `a|b` `<c>` |\n\nx"),
        ("a&#58;b &lt;b> R&D &#x2f;", "a&amp;#58;b &lt;b> R&D &amp;#x2f;"),
        (r"https\://evil.example http:\/\/evil.example", r"https\: //evil.example http:\/ \/ evil.example"),
        ("[a]: https://code.example/kite\n", "[a] : https://code.example/kite\n"),
        ("- [ ] open\n- [x] done [1](/a#b) [2](/c)", "- [ ] open\n- [x] done [1](/a#b) [2](/c)"),
    ],
)
def test_guarded_text_is_sent(text, sent):
    assert guarded(text) == sent
    assert guarded(*text) == sent


def test_words_pass_at_once():
    guard = MarkupGuard(known())
    assert guard.feed("To deploy, wat") == "To deploy, wat"
    assert guard.feed("ch `x") == "ch "
    assert guard.feed("` it [he") == "`x` it "
    assert guard.feed("re](/a) now") == "[here](/a) now"
    assert guard.feed(", at @ once") == ", at @ once"
    assert guard.feed(" as @kite is") == " as @kite is"
    assert guard.feed("\n```sh\nrun <x") == "\n```sh\nrun <x"


def test_word_with_at_is_no_address_in_long_line():
    line = "a word or two " * 80
    assert guarded(line + "and @kite.example") == line + "and @kite.example"
    assert guarded(line + "and me@kite.example") == line + "and me`@kite.example`"


pieces = st.sampled_from(
    [
        "`", "``", "```", "````", "~~~", "\n", "\n\n", " ", "  ", "    ", "\t", "- ", "* ", "1. ", "2. ", "> ", ">",
        "# ", "---", "|", "|---|---|", "|-", "a", "word ", "\\", "!", "[", "]", "(", ")", "](", "![", "[a](", "[r]",
        "[r]: ", ":", "<", ">", "<img src=x>", "<b>", "</b>", "<br>", "<kbd>", "<!--", "-->", "<script>", "<div>\n",
        "<a href='/x'>", "<?", "<!A", "javascript:alert(1)", "data:x", "https://evil.example/?q=1", "//evil.example",
        "www.evil.example/x", "http", "https:", "https://code.example/kite", "/a.png", '"t"', "*", "**", "_", "&lt;",
        "&#58;", "é", "sh\n", "===",
    ]
)  # fmt: skip
texts = st.lists(pieces, max_size=24).map("".join)


def tokens_of(markdown, text):
    for block in markdown.parse(text):
        yield block
        yield from block.children or ()


def problems(markdown, text):
    """What a reader should not get, by what a renderer makes of the text."""
    found, link = [], ""
    for token in tokens_of(markdown, text):
        match token.type:
            case "html_block":
                found.append(token.content)
            case "html_inline" if not re.fullmatch(r"<(?:br|/?kbd|/?sub|/?sup)>", token.content):
                found.append(token.content)
            case "image" if not is_here(str(token.attrGet("src"))):
                found.append(str(token.attrGet("src")))
            case "link_open" if not is_here(str(token.attrGet("href"))) and not known()(str(token.attrGet("href"))):
                found.append(str(token.attrGet("href")))
            case "link_open":
                link = str(token.attrGet("href"))
            case "link_close":
                link = ""
            case "text" if not link:
                found += [
                    one for one in re.findall(r"(?<![A-Za-z])(?:https?://|www\.)\w\S*", token.content) if "evil" in one
                ]
            case _:
                pass
    return found


def is_here(address):
    return not address.startswith("//") and not re.match(r"[A-Za-z][\w+.-]*:", address)


@settings(max_examples=EXAMPLES * 4)
@given(texts)
@example("- a\nlazy\n  ```\n <img src=x>\n")
@example("1. a\n   - b\n\n       ```\n     <b>\n```\n<div>\n```\n")
@example("> - ```\n> <b>\n")
@example("- a\n\n- > ```\n<b>\n")
@example("```\n    ```\n<b>\n```\n<b>")
@example("``a``[`<img src=x>`](https://evil.example)")
@example("<[img src=x](https://evil.example)")
def test_no_tag_and_no_strange_address_survives_a_renderer(text):
    sent = guarded(text)
    assert problems(MARKDOWN, sent) == []
    assert problems(PLAIN_MARKDOWN, sent) == []


@settings(max_examples=EXAMPLES)
@given(texts, st.lists(st.integers(1, 6), min_size=1))
def test_the_result_does_not_depend_on_where_the_chunks_are_cut(text, sizes):
    chunks, at, turn = [], 0, 0
    while at < len(text):
        chunks.append(text[at : at + sizes[turn % len(sizes)]])
        at, turn = at + sizes[turn % len(sizes)], turn + 1
    assert guarded(*chunks) == guarded(text)


def test_long_line_gives_the_same_wherever_it_is_cut():
    text = "*" * 1_100 + "a|![1](x)<br/>\n"
    for at in (900, 999, 1_000, 1_050, 1_101, 1_105):
        assert guarded(text[:at], text[at:]) == guarded(text)


@settings(max_examples=EXAMPLES)
@given(texts)
def test_safe_text_is_not_changed_again(text):
    once = guarded(text)
    assert problems(MARKDOWN, guarded(once)) == []


code = st.lists(
    st.sampled_from(["<b>", "a", " ", "  ", "[x](https://evil.example)", "`", "\n", "|", "!", "    "]), max_size=12
).map("".join)
spans = st.lists(st.sampled_from(["<T>", "a", " b", "|", "[x](y)", "\\", "https://evil.example"]), min_size=1).map(
    "".join
)


@settings(max_examples=EXAMPLES)
@given(code, spans, st.sampled_from(["", "> ", "- ", "1. ", "> > ", "- - "]), st.sampled_from(["```", "~~~~", "````"]))
def test_code_is_sent_as_it_was_written(written, span, marker, fence):
    lines = [f"{fence}html", *written.split("\n"), fence, "", f"Run `{span}`, then <b>."]
    rest = marker if ">" in marker else " " * len(marker)
    if marker == "- - ":
        return  # nested markers on one line: text for everybody
    text = "\n".join([marker + lines[0], *(rest + line for line in lines[1:])])
    before, after = ([token.content for token in tokens_of(MARKDOWN, one) if token.type in ("fence", "code_inline")]
                     for one in (text, guarded(text)))  # fmt: skip
    if fence not in written and "\\" not in span and "|" not in span:
        assert after == before


def test_nothing_that_is_held_grows_and_odd_texts_cost_little():
    odd = [
        "```" + "a`" * 30_000, "[" * 50_000, "<a" * 30_000, "https://" + "a" * 50_000, "[a](" * 15_000, "&a" * 30_000,
        "".join("`" * (one % 40) + "a" for one in range(2_000)), "> " * 20_000, "```" + "a" * 50_000,
    ]  # fmt: skip
    for text in odd:
        guard, began = MarkupGuard(known()), time.process_time()
        sent = 0
        for at in range(0, len(text), 50):
            sent += len(guard.feed(text[at : at + 50]))
            assert at - sent < 1_500
        assert time.process_time() - began < 5


def test_addresses_are_known_as_they_were_written():
    addresses = known()
    assert addresses("https://code.example/kite")
    assert addresses("https://status.kite.example")
    assert addresses("mailto:help@kite.example")
    assert not addresses("https://code.example/kite#x")
    addresses.add("https://other.example/page#part")
    assert addresses("https://other.example/page/")
    assert not addresses("https://code.example/")
    assert not addresses("https://[evil/")


def test_long_text_without_addresses_is_scanned_fast():
    began = time.process_time()
    for text in ("a" * 200_000, "@" * 200_000, "a.b-" * 50_000 + "@", "www." * 50_000):
        KnownAddresses("docs", "").add(text)
    assert time.process_time() - began < 1
