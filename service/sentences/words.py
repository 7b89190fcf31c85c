"""Words of prose, comparable whatever their inflection, and the names among them."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain

from msgspec import Struct

WORD = re.compile(r"[^\W\d_]{2,60}")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
KEPT_WORDS = 16_384
"""Words whose stems are kept: most of what a site's pages say."""
STEM_CHARACTERS = 6
"""Words that begin alike count as forms of one: ``configure``, ``configuration``."""
LEAST_STEM = 3
_ENDINGS = ("ing", "ied", "ies", "ed", "es", "ly", "s", "e", "y")
STOP = frozenset(
    """
    the a an and or but if then than that this these those it its is are was were be been being to of in on at by for
    from with without as into onto over under up out off so such not no nor can could may might must shall should will
    would do does did done has have had you your we our they their he she his her them us i my me when where which who
    whose what how why all any both each every few more most other some only own same too very just also about after
    again against because before below between during here there once through until while via per let lets use uses
    used using make makes made get gets got set sets want need needs like one two first second way ways thing things
    """.split()  # noqa: SIM905  (a list would be a line for each)
)
GENERIC_NAMES = frozenset(
    """
    api apis url urls uri uris cli ui id ids faq ok readme tip note warning example examples important caution yes no
    monday tuesday wednesday thursday friday saturday sunday english german french japanese i'm tl dr eg ie nb ide
    january february march april may june july august september october november december step option
    """.split()  # noqa: SIM905
)
_KNOWN_ENGLISH = ("the", "and", "is", "to", "of")
ENGLISH = STOP | frozenset(
    """
    default set run add create check file files page pages command option options value values name number line lines
    change changes work works start starts stop stops show shows return returns open opens close read write call calls
    new old time times many much same different next last instead already always never often usually still yet even
    because however therefore also either neither whether since although though rather than example means simply
    directly only automatically ever back away along within inside outside around another several such every anything
    nothing everything something someone keep keeps take takes give gives put puts come comes go goes look looks find
    finds apply applies replace remove delete build install configure support supports provide provides allow allows
    need require requires happen happens become think know please note must
    """.split()  # noqa: SIM905
)
"""Words that say of a text that it is English, whatever it is about."""
LEAST_ENGLISH = 0.2
"""The share of a sentence's words that says that it is English."""
VALUES = {
    word: opposite
    for pair in (
        "true false", "enabled disabled", "enables disables", "on off", "required optional", "minimum maximum",
        "increases decreases", "includes excludes", "ascending descending", "mutable immutable",
        "synchronous asynchronous", "synchronously asynchronously",
        "uppercase lowercase", "stateful stateless", "oldest newest", "lowest highest",
    )
    for word, opposite in (pair.split(), reversed(pair.split()))
}  # fmt: skip
"""Words whose opposite in the passage contradicts a sentence."""
LITERALS = frozenset(("true", "false", "none", "null", "nil", "undefined"))
"""Values that programs have; set as code, another of them in the passage contradicts a sentence."""
_IDENTIFIER = re.compile(
    r"(?<![A-Za-zÀ-ÿ0-9_-])(?:"
    r"(?P<flag>--[A-Za-z][\w-]{1,80}|-[A-Za-z](?![\w-]))"
    r"|(?P<path>(?:~|\.{1,2})?/[\w.@-]{1,80}(?:/[\w.@*-]{1,80}){0,12}/?)"
    r"|(?P<name>[@$]?[A-Za-zÀ-ÿ_][A-Za-zÀ-ÿ0-9_$]{0,80}(?:[.-][A-Za-zÀ-ÿ0-9_$]{1,80}){0,10}(?:\(\))?)"
    r")"
)


class Name(Struct, frozen=True):
    kind: str
    """``flag``, ``path``, ``identifier`` or ``name``."""
    text: str
    start: int
    may_be_word: bool = False
    """At the beginning of a sentence, where any word has a capital letter."""


def stem(word: str) -> str:
    """Return the beginning that the word's forms have in common."""
    folded = word.casefold()
    for ending in _ENDINGS if folded.endswith(_ENDINGS) else ():
        if folded.endswith(ending) and len(folded) - len(ending) >= LEAST_STEM:
            folded = folded[: -len(ending)]
            if folded[-1] == folded[-2] and folded[-1] not in "sl":
                folded = folded[:-1]  # running, run
            break
    return folded[:STEM_CHARACTERS]


def stems_in(text: str) -> Iterator[str]:
    """Return the stems of the words with a meaning, those inside of identifiers too."""
    return stems_of(WORD.findall(text))


def stems_of(words: Iterable[str]) -> Iterator[str]:
    return chain.from_iterable(map(_stems_of, words))


@lru_cache(KEPT_WORDS)
def _stems_of(word: str) -> tuple[str, ...]:
    parts = camel_words(word) if not (word.islower() or word.isupper() or word.istitle()) else [word]
    return tuple(stem(part) for part in parts if len(part) > 2 and part.casefold() not in STOP)


def camel_words(word: str) -> list[str]:
    """Return the words that an identifier is made of."""
    return [part for part in _CAMEL.split(word) if part]


def names_in(text: str, *, checks_capitals: bool) -> Iterator[Name]:
    """Yield what prose names: flags, paths, identifiers and, where capitals say so, proper names."""
    for match in _IDENTIFIER.finditer(text):
        found, kind = match[0], match.lastgroup or "name"
        if kind != "name":
            yield Name(kind, found, match.start())
            continue
        word = found.rstrip(".")
        if _is_identifier(word):
            yield Name("identifier", word, match.start())
        elif checks_capitals and word[0].isupper():
            yield Name("name", word, match.start(), may_be_word=_begins(text, match.start()))


def _is_identifier(word: str) -> bool:
    bare = word.removesuffix("()")
    if bare != word or "_" in bare or word[0] in "@$":
        return True
    if "." in bare:
        return re.fullmatch(r"[\w$]{2,}(?:\.[\w$-]{2,})+", bare) is not None and not bare.replace(".", "").isdigit()
    head = bare.split("-", 1)[0]
    return re.search(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2}", head) is not None and not re.fullmatch(r"[A-Z]{2,}s", head)


def _begins(text: str, at: int) -> bool:
    before = text[max(0, at - 4) : at].rstrip(" \"'(*_“„[")
    return not before.strip() or before[-1] in ".!?:;。—–-…/|>•✅❌→" or before != text[max(0, at - 4) : at].rstrip()  # noqa: RUF001


def knows_english(has_word: Callable[[str], bool]) -> bool:
    return sum(has_word(word) for word in _KNOWN_ENGLISH) >= 2


def is_english(words: Sequence[str]) -> bool:
    """Return whether words in lower case are a sentence of an English text, whatever it is about."""
    return sum(word in ENGLISH for word in words) >= LEAST_ENGLISH * len(words)
