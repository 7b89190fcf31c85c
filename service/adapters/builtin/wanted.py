"""A question, read: its words with their weights, and the kind of answer that it wants."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from service.adapters.builtin.question_words import stemmer_of, stems_of
from service.domain.search import QueryWord
from service.markup.languages.kindred_words import common_words, phrase_words, without_phrases
from service.ports.model import Grounding, Passage

MAX_QUESTION_READ = 4_000
MAX_STEMS = 40
LEAST_SHARE = 0.0005
"""The part of a site's sections; a rarer word counts no more than this."""
RAREST = math.log(1 / LEAST_SHARE)

LEAST = 0.05
"""The weight of a stem that each section has, as on a site of one page: it still is what the question is about."""
COMMON = 0.5
"""The part of its weight that a word counts that people talk with, whatever they talk about."""
KINDRED = 0.4
"""The weight of a word that the site has other words for."""
UNKNOWN = 0.6
"""The weight of a stem of which the site's figures say nothing: a compound, a correction."""

_WORD = re.compile(r"(?<![\w.:/-])[^\W_]+(?![\w/-]|[.:]\w)")
"""A word that is not a part of a name."""
_ANY_WORD = re.compile(r"[^\W_]+")
_STEPS = re.compile(
    r"\bhow (?:do|can|to|should|would|does one)\b|\bsteps?\b|\bwie\b(?! (?:viel|lang|oft|gro(?:ß|ss)))|\bcomment\b"
    r"|\bcómo\b|\bcomo\b|\bcome\b(?= (?:posso|si|faccio))|\bhoe\b(?! (?:veel|lang|groot))|方法|手順|どう|如何|怎么|步骤"
    r"|\A\s*(?:please\s+)?(?:install|set ?up|create|add|configure|define|enable|disable|deploy|build|run|upgrade|update"
    r"|remove|delete|change|use|make|write|upload|download|import|export|connect|mount|expose|redirect|check|test)\b",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"\b(?:code|example|snippet|sample|command|syntax|yaml|json|query|script|config(?:uration)? file"
    r"|beispiel|befehl|exemple|commande|ejemplo|comando|exemplo|esempio|voorbeeld|opdracht)s?\b|例|サンプル|コード|示例|代码",
    re.IGNORECASE,
)
_DEFINITION = re.compile(
    r"\A\s*(?:(?:so|and|ok|please|explain|tell me)[,\s]+)*what(?:['’]s| is| are| does)\b"  # noqa: RUF001
    r"(?! the (?:best|right|default|maximum|limit|difference|size|port|command))"
    r"|\A\s*(?:define an?|definition of|meaning of|was (?:ist|sind|bedeutet)|qué (?:es|son)|o que (?:é|são)"
    r"|qu['’](?:est-ce|est ce)|c['’]est quoi|(?:che )?cos['’](?:è|e)|wat (?:is|zijn))\b"  # noqa: RUF001
    r"|とは|是什么|什么是",
    re.IGNORECASE,
)
_VALUE = re.compile(
    r"\b(?:default|defaults|maximum|minimum|max|min|limit|limits|how (?:many|much|long|often|big|large)|what size"
    r"|timeout|which port|what port|size|standard(?:wert|mäßig)|höchst\w*|maximal\w*|wie (?:viel\w*|lang\w*|oft|groß)"
    r"|par défaut|combien|limite|por defecto|cuánt\w+|padrão|quant\w+|predefinit\w+|standaard|hoeveel)\b"
    r"|デフォルト|上限|最大|默认|多少",
    re.IGNORECASE,
)
_CLAUSE = r"(?:\A|[,;:.!?–]\s|\b(?:and|but|so)\s)\W{0,3}"  # noqa: RUF001
_ASKS_FOR = re.compile(rf"{_CLAUSE}(?:how|what|when|where|which|who|whom|whose|why)\b", re.IGNORECASE)
_COMMAND = re.compile(r"(?<![\w`./-])(?P<program>[a-z][\w-]{1,30}) (?P<word>[a-z][\w-]{1,30})(?![\w`./(-])")
_PROGRAM = re.compile(r"(?:^|`)(?:\$ )?([a-z][\w-]{1,30}) [a-z-]", re.MULTILINE)
_SUBJECT = re.compile(
    r"\b(?:is|are|was|can|could|may|might|do|does|did|will|would|should|has|had|lets?|makes?|when|if|while)\s*\Z",
    re.IGNORECASE,
)
_DOES = re.compile(r"\s+(?:do|does|mean|means)\W*\Z", re.IGNORECASE)
MAX_PASSAGES_OF_COMMANDS = 20
_FORM_LIST = """
difference differences versus vs compare compared comparison distinction unterschied différence diferencia diferença
differenza verschil example examples snippet sample explain define definition meaning show beispiel exemple ejemplo
larger bigger greater smaller
"""
_TALK_LIST = """
almost already always anymore another anybody anyone anything anyway away bit busy came certain come comes coming
constantly currently elsewhere even everybody everyone everything exactly except fine given gives giving goes going gone
guess happened happening hard help hint idea instead keeps lately leave lets little lot lots maybe meant mine
myself never nothing ok okay otherwise ourselves people perhaps pick plain pretty probably properly quite rather really
rid right said saw say saying says seem seems seen since somebody somehow someone sometimes somewhere soon still stuck
suddenly supposed sure take taken takes taking team think though thought together told took tried tries
understand unless usually wanted wants whatever whether whole whose wonder wondering wrong yet
"""
_EMPTY = frozenset(_FORM_LIST.split()) | frozenset(_TALK_LIST.split())
"""Words that say what kind of answer is wanted, or that people only talk with; they rarely are in the answer."""
_HOW_MUCH = re.compile(r"\b(how) (?:big|deep|far|fast|large|long|often|old)\b", re.IGNORECASE)


class Wanted(Struct, frozen=True):
    question: str
    stems: tuple[str, ...]
    """The question's words, in order, each once."""
    weights: Mapping[str, float]
    """How much a stem says, 0 .. 1: the rarer on the site, the more. Without the site's figures all are alike."""
    missing: frozenset[str]
    """Stems that are nowhere on the site."""
    names: frozenset[str]
    """Names that are nowhere on the site, as they were typed."""
    unknown: tuple[str, ...]
    """These names, and the words of ``missing``, as they were typed."""
    corrected: frozenset[str]
    """Words as they were typed, in lower case, for which others of the site are looked up."""
    language: str
    kindred: Mapping[str, str]
    """Stems that the passages may have for a stem of the question → that stem."""
    sides: tuple[tuple[str, ...], ...]
    """The stems that only one side of a comparison has; empty for another question."""
    steps: bool = False
    code: bool = False
    definition: bool = False
    value: bool = False
    """A default, a limit, a number."""
    of_what_is: bool = False
    """It asks how, what or when about a thing that there is; one of whether may be about what there is not. Known of
    questions in English alone.
    """
    commands: tuple[str, ...] = ()
    """A program of the documentation with a word behind it that no page has, as a command of it would be written."""

    def weight_of(self, stems: Iterable[str]) -> float:
        """Return the sum of the stems' weights."""
        return sum(self.weights[stem] for stem in sorted(stems))


def wanted(grounding: Grounding, language: str, *, is_another: bool = False) -> Wanted:
    """Return the question as it is read.

    ``language``: the reader's. ``is_another``: the documentation is in another language. Then only words that both have
    can be in it, names above all, and a correction of the others would be a guess.
    """
    question = grounding.question[:MAX_QUESTION_READ]
    words = grounding.words
    if language == "en":
        strange = {word.typed for word in words if not word.share and not word.kindred}
        strange.intersection_update(phrase_words(question))
        strange.difference_update(map(str.casefold, _ANY_WORD.findall(question)))
        question = without_phrases(question, unless=strange)
        words = tuple(word for word in words if word.typed not in strange)
    words = tuple(replace(word, corrected="") if _is_empty(word.corrected, language) else word for word in words)
    corrected = {word.typed: _full(word.corrected) for word in words if word.corrected and not is_another}
    stems = _stems(question, language, corrected)
    if is_another and (shared := [word for word in words if word.share]):
        known = {stem for word in shared for stem in stems_of(word.typed, language)}
        stems = tuple(stem for stem in stems if stem in known) or stems
        words = tuple(shared)
    weights, missing = _weights(stems, language, words)
    little = frozenset(map(stemmer_of(language), common_words())) if language == "en" else frozenset[str]()
    said = tuple(stem for stem in stems if stem not in missing or stem not in little)
    stems, missing = said or stems, missing.intersection(said or stems)
    weights |= {stem: COMMON * weights[stem] for stem in stems if stem in little}
    names = dict.fromkeys(word.typed for word in words if word.is_name)
    commands = () if is_another else _unknown_commands(question, words, grounding.passages)
    sides = [set(_stems(side, language, corrected)) for side in grounding.sides]
    apart = tuple(tuple(stem for stem in stems if _only(stem, at, sides)) for at in range(len(sides)))
    is_definition = _DEFINITION.search(question) is not None
    return Wanted(
        question,
        stems,
        weights,
        missing,
        frozenset(names),
        (*names, *commands, *_typed(question, missing, language, (*names, *commands))),
        frozenset(corrected),
        language,
        _kindred(stems, language, words),
        apart if len(apart) == 2 and not any(map(missing.issuperset, apart)) else (),
        steps=_STEPS.search(question) is not None and not is_definition,
        code=_CODE.search(_corrected(question, corrected)) is not None,
        definition=is_definition,
        value=_VALUE.search(question) is not None,
        of_what_is=language == "en" and _ASKS_FOR.search(question) is not None,
        commands=commands,
    )


def _unknown_commands(question: str, words: Iterable[QueryWord], passages: Sequence[Passage]) -> tuple[str, ...]:
    """Return "ladle simmer" where the passages have "ladle" with other commands, and no page has "simmer"."""
    strange = {word.typed for word in words if not word.share and not word.is_name} - common_words()
    if not strange:
        return ()
    programs = {name for passage in passages[:MAX_PASSAGES_OF_COMMANDS] for name in _PROGRAM.findall(passage.text)}
    found: list[str] = []
    for match in _COMMAND.finditer(question):
        if match["word"] not in strange or match["word"].endswith("s"):
            continue
        if _SUBJECT.search(question[: match.start()]) and not _DOES.match(question[match.end() :]):
            continue
        if match["program"] in programs:
            found.append(match[0])
    return tuple(found)


def _only(stem: str, at: int, sides: list[set[str]]) -> bool:
    return all((stem in side) == (at == other) for other, side in enumerate(sides))


def _stems(text: str, language: str, corrected: Mapping[str, str]) -> tuple[str, ...]:
    text = _corrected(text, corrected)
    bare = _WORD.sub(lambda match: "" if match[0].casefold() in _EMPTY else match[0], _HOW_MUCH.sub(r"\1", text))
    return tuple(dict.fromkeys(stems_of(bare, language) or stems_of(text, language)))[:MAX_STEMS]


def _corrected(text: str, corrected: Mapping[str, str]) -> str:
    return _WORD.sub(lambda match: corrected.get(match[0].casefold(), match[0]), text) if corrected else text


def _is_empty(correction: str, language: str) -> bool:
    """Return whether a correction says nothing: "SAML" was not meant as "same"."""
    return bool(correction) and not stems_of(_full(correction), language)


def _full(stem: str) -> str:
    """Return the word that says what kind of answer is wanted, for its stem: a correction is a stem."""
    return _form_words().get(stem, stem)


@cache
def _form_words() -> dict[str, str]:
    stem = stemmer_of("en")
    return {stem(word): word for word in sorted(_EMPTY)}


def _typed(question: str, missing: frozenset[str], language: str, names: Iterable[str]) -> list[str]:
    """Return the words of the question that are nowhere on the site, other than those of names."""
    known = {stem for name in names for stem in stems_of(name, language)}
    words = dict.fromkeys(match[0] for match in _ANY_WORD.finditer(question))
    return [word for word in words if missing.intersection(stems_of(word, language)) - known]


def _kindred(stems: tuple[str, ...], language: str, words: tuple[QueryWord, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        own = [stem for stem in stems_of(word.typed, language) if stem in stems]
        for other in word.kindred if len(own) == 1 else ():
            if other not in stems:
                found.setdefault(other, own[0])
    return found


def _weights(
    stems: tuple[str, ...], language: str, words: tuple[QueryWord, ...]
) -> tuple[dict[str, float], frozenset[str]]:
    shares: dict[str, float] = {}
    missing: set[str] = set()
    kin: set[str] = set()
    for word in words:
        for stem in stems_of(word.typed, language) if not word.is_name else ():
            if not word.corrected:
                shares[stem] = word.share
                if word.kindred:
                    kin.add(stem)
                elif word.share == 0:
                    missing.add(stem)
    weights = {
        stem: weight(shares[stem]) if shares.get(stem) or stem in missing else KINDRED if stem in kin else UNKNOWN
        for stem in stems
    }
    return weights, frozenset(missing.intersection(stems))


def weight(share: float) -> float:
    """Return the weight of a stem that this part of the site's sections has."""
    return max(LEAST, math.log(1 / min(1.0, max(share, LEAST_SHARE))) / RAREST)
