"""A model's prompt: our rules as the only system message, everything else as marked, bounded material.

Material could try to close its own tags and go on as if it were us. The tags carry a mark made from the reply's id,
which is random and unknown to the authors of pages, selections and messages; it is removed from a text that holds it
all the same. Passages are measured in tokens (``service.domain.texts.tokens``), all else in characters; four of them
are about a token of English, one or two of CJK text. Limits are for a usual window; ``ContextBudget`` makes them
smaller.

The site owner's instructions are material as well, the first of all, and the rules state their rank: above documents
and readers, below the rules.

Of a long thread, the prompt has the last turns whole, and of those before them the question and the beginning of the
answer. That needs no call of a model, so it delays nothing and cannot be manipulated.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from msgspec.structs import replace

from service.assistant.prompts import prompt
from service.assistant.question import Exchange
from service.domain.texts.tokens import SAFETY, tokens_in
from service.domain.threads.threads import ContextItem
from service.markup.fences import without_fences
from service.markup.languages.detection import NAMES
from service.markup.suggestions import INFO
from service.ports.context_budget import ContextBudget
from service.ports.model import AssistantMessage, ModelMessage, Passage, SystemMessage, ToolMessage, UserMessage
from service.ports.search_index import Section
from service.retrieval.material.cutting import beginning
from service.retrieval.material.filling import FRAME_TOKENS

MAX_CONTEXT_CHARACTERS = 16_000
MAX_TURNS = 6
MAX_EARLIER_QUESTION_CHARACTERS = 2_000
MAX_EARLIER_ANSWER_CHARACTERS = 3_000
MAX_DIGEST_CHARACTERS = 8_000
"""Limit for the digest of the turns before the last ones."""
MAX_DIGEST_QUESTION, MAX_DIGEST_ANSWER = 200, 300
MAX_PLANNED_TURNS = 4
"""Limit for the turns that a plan is made from, besides the first one."""
MAX_PLANNED_QUESTION, MAX_PLANNED_ANSWER = 400, 500
MAX_TITLES, MAX_TITLE = 12, 120
MAX_LACKING, MAX_LACKING_CHARACTERS = 12, 60
"""Words of a question that are said to be on no page, and characters of each."""
MAX_QUESTION_CHARACTERS, LEAST_QUESTION_CHARACTERS = 32_768, 2_000
CHARACTERS_PER_TOKEN = 2.5
"""For an estimate on the safe side: English prose has about four, code three, Chinese one or two."""
FULL_CHARACTERS = 300_000
"""All limits together: passages, selections, the earlier turns, and the results of each tool call."""
MIN_PASSAGES_TOKENS = 400
"""Passages get so much of a prompt even where little is left beside all else."""
USUAL = ContextBudget()

_CITATION_LINK = re.compile(r" ?\[\d{1,3}\]\([^()\s]*\)")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])")  # noqa: RUF001


def mark_for(reply_id: str) -> str:
    return hashlib.sha256(reply_id.encode()).hexdigest()[:8]


def share(budget: ContextBudget, characters: int, *, least: int = 0) -> int:
    """Return how much of a limit the budget leaves: the limits are made for a window of 128,000 tokens, and for a
    smaller one all of them shrink alike.
    """
    part = 1.0
    if budget.prompt_tokens is not None:
        part = min(1.0, max(0.01, budget.prompt_tokens * CHARACTERS_PER_TOKEN / FULL_CHARACTERS))
    return max(least, int(characters * part / 2**budget.shrink_level))


def passages_room(budget: ContextBudget, wanted_tokens: int, others: Iterable[ModelMessage]) -> int:
    """Return the tokens for passages beside the other messages of a prompt, at most ``wanted_tokens``."""
    room = wanted_tokens
    if budget.prompt_tokens is not None:
        room = min(room, int(budget.prompt_tokens * SAFETY) - sum(tokens_in(message.text) for message in others))
    return max(MIN_PASSAGES_TOKENS, room >> budget.shrink_level)


def passage_cost(passage: Passage | Section) -> int:
    """Return the tokens of a passage in a prompt, with its tags and headings."""
    return tokens_in(passage.text) + FRAME_TOKENS


def fitting(passages: Sequence[Passage], tokens: int) -> list[Passage | None]:
    """Return the passages in their order, None in the place of those that do not fit: the least relevant. The best one
    is cut if it must be.
    """
    if sum(passage_cost(passage) for passage in passages) <= tokens:
        return list(passages)
    kept: list[Passage | None] = [None] * len(passages)
    left = tokens
    for at in sorted(range(len(passages)), key=lambda at: -passages[at].score):
        cost = passage_cost(passages[at])
        if cost <= left:
            left -= cost
            kept[at] = passages[at]
        elif left == tokens:
            kept[at] = replace(passages[at], text=beginning(passages[at].text, max(1, tokens - FRAME_TOKENS)))
            break
    return kept


def clip(text: str, limit: int) -> str:
    """Return at most ``limit`` characters, cut at the end of a line where that loses little."""
    if len(text) <= limit:
        return text
    head = text[: limit - 2]
    at = head.rfind("\n")
    return (head[:at] if at > limit * 3 // 4 else head) + "\n…"


def messages_for(
    question: str,
    passages: Sequence[Passage],
    *,
    earlier: Sequence[Exchange],
    context: Sequence[ContextItem],
    current_path: str,
    mark: str,
    instructions: str = "",
    budget: ContextBudget = USUAL,
    site: tuple[str, str] = ("", ""),
    lacking: Sequence[str] = (),
    suggestions: bool = False,
) -> tuple[ModelMessage, ...]:
    """Return the first prompt. The passages fit the budget already.

    ``instructions``: of the site's owner. ``site``: the title of its start page, and its domain. ``lacking``: words of
    the question that no page has. ``suggestions``: whether the model may suggest pages.
    """
    limit = share(budget, MAX_QUESTION_CHARACTERS, least=LEAST_QUESTION_CHARACTERS)
    asked = prompt(
        "question",
        mark=mark,
        site=_site(site, mark),
        owner=f"{_tagged('site-owner', instructions, mark)}\n" if instructions else "",
        lacking=_lacking(lacking, mark),
        passages=passages_text(passages, mark) or "(Nothing was found.)",
        earlier=_digest(earlier[:-MAX_TURNS], mark, budget),
        reader=_reader(context, current_path, mark, budget),
        question=_unmarked(clip(question, limit), mark),
    )
    rules = prompt("answer") + (f"\n\n{prompt('suggestions')}" if suggestions else "")
    return (SystemMessage(rules), *_earlier_messages(earlier, budget), UserMessage(asked))


def _site(site: tuple[str, str], mark: str) -> str:
    """Return the name of the site, and its domain."""
    names = [_one_line(name, MAX_TITLE) for name in site if name.strip()]
    return f"{_tagged('site', chr(10).join(names), mark)}\n" if names else ""


def _lacking(words: Sequence[str], mark: str) -> str:
    """Return the words of the question that no page has."""
    text = ", ".join(_one_line(word, MAX_LACKING_CHARACTERS) for word in words[:MAX_LACKING])
    return f"{_tagged('not-in-the-documentation', text, mark)}\n" if text else ""


def planning_messages(
    question: str,
    *,
    earlier: Sequence[Exchange],
    context: Sequence[ContextItem],
    current_path: str,
    mark: str,
    site_language: str = "",
    page_titles: Sequence[str] = (),
) -> tuple[ModelMessage, ...]:
    """Return the prompt for a plan of the search. ``site_language``: its name, where it is known; ``page_titles``: of
    the pages that a first search has found.
    """
    turns = [*earlier[:1], *earlier[max(1, len(earlier) - MAX_PLANNED_TURNS) :]]
    told = "\n".join(_planned_turn(turn) for turn in turns)
    titles = "\n".join(f"- {_one_line(title, MAX_TITLE)}" for title in page_titles[:MAX_TITLES])
    asked = prompt(
        "plan_question",
        mark=mark,
        language=f"{_tagged('language-of-the-documentation', site_language, mark)}\n" if site_language else "",
        earlier=f"{_tagged('earlier', told, mark)}\n" if told else "",
        pages=f"{_tagged('pages-found', titles, mark)}\n" if titles else "",
        reader=_reader(
            [ContextItem(item.type, clip(item.value, 1_000)) for item in context[:3]], current_path, mark, USUAL
        ),
        question=_unmarked(clip(question, LEAST_QUESTION_CHARACTERS), mark),
    )
    return SystemMessage(prompt("plan")), UserMessage(asked)


def _planned_turn(turn: Exchange) -> str:
    """Return a turn in short: what was asked, what the answer begins with, and the pages that it cites."""
    lines = [
        f"- {_one_line(turn.question, MAX_PLANNED_QUESTION)}",
        f"  → {_one_line(_gist(turn.answer), MAX_PLANNED_ANSWER)}",
    ]
    if titles := dict.fromkeys(source.title for source in turn.cited[:MAX_TITLES]):
        lines.append(f"  (pages: {_one_line('; '.join(titles), MAX_PLANNED_ANSWER)})")
    return "\n".join(lines)


def last_messages(messages: Sequence[ModelMessage], said: str) -> tuple[ModelMessage, ...]:
    """Return the messages of a last call, which has no tools. ``said``: what the reader has of the answer already."""
    *before, asked = messages
    assert isinstance(asked, UserMessage)
    if said.strip():
        return (*before, asked, AssistantMessage(said.rstrip()), UserMessage(prompt("last_behind")))
    return (*before, UserMessage(f"{asked.text.rstrip()}\n\n{prompt('last')}"))


def ending_in_place(messages: Sequence[ModelMessage], said: str) -> tuple[ModelMessage, ...]:
    """Return the messages of a conversation that ends in results of tools, with the words behind them that no calls are
    left. ``said``: as ``last_messages`` has it.
    """
    *before, result = messages
    assert isinstance(result, ToolMessage)
    note = prompt("last_behind" if said.strip() else "last")
    return (*before, replace(result, text=f"{result.text.rstrip()}\n\n{note}"))


def results_text(passages: Sequence[Passage], mark: str, note: str = "") -> str:
    """Return a tool's result. ``note``: our words about it."""
    text = prompt("results", mark=mark, passages=passages_text(passages, mark))
    return f"{text}\n\n{_unmarked(note, mark)}" if note else text


def passages_text(passages: Iterable[Passage], mark: str) -> str:
    """Return the passages, those of a page in one piece that has its title and address."""
    pieces: list[str] = []
    for (url, title), run in groupby(passages, key=lambda passage: (passage.url.partition("#")[0], passage.title)):
        held = list(run)
        language = NAMES.get(held[0].other_language, held[0].other_language)
        facts = {"title": title, "url": url, **({"language": language} if language else {})}
        pieces.append(f"<page-{mark}{_attributes(mark, **facts)}>")
        pieces += [
            _tagged("passage", passage.text, mark, number=str(passage.number), heading=passage.heading)
            for passage in held
        ]
        pieces.append(f"</page-{mark}>")
    return "\n".join(pieces)


def _earlier_messages(earlier: Sequence[Exchange], budget: ContextBudget) -> list[ModelMessage]:
    """The last turns."""
    messages: list[ModelMessage] = []
    for turn in earlier[-MAX_TURNS:]:
        answer = clip(_words_of(turn.answer), share(budget, MAX_EARLIER_ANSWER_CHARACTERS, least=200))
        messages.append(UserMessage(clip(turn.question, share(budget, MAX_EARLIER_QUESTION_CHARACTERS, least=200))))
        messages.append(AssistantMessage(answer or "(No answer was given.)"))
    return messages


def _words_of(answer: str) -> str:
    """Return the text without numbers of citations, which mean nothing now and would be copied."""
    return _CITATION_LINK.sub("", without_fences(answer, fits=lambda block: block.info.strip() == INFO)).strip()


def _digest(earlier: Sequence[Exchange], mark: str, budget: ContextBudget) -> str:
    """Return a digest of the turns before the last ones: the newest that fit the budget, and the very first."""
    left = share(budget, MAX_DIGEST_CHARACTERS)
    lines: list[str] = []
    for turn in [*earlier[:1], *reversed(earlier[1:])]:
        line = f"- {_one_line(turn.question, MAX_DIGEST_QUESTION)}"
        if gist := _one_line(_gist(turn.answer), MAX_DIGEST_ANSWER):
            line += f"\n  → {gist}"
        left -= len(line)
        if left < 0:
            break
        lines.append(line)
    return f"{_tagged('earlier', chr(10).join([*lines[:1], *lines[:0:-1]]), mark)}\n" if lines else ""


def _gist(answer: str) -> str:
    """The first sentences of its prose."""
    prose = without_fences(_words_of(answer), instead=" ")
    sentences = _SENTENCE_END.split(" ".join(prose[:2_000].split()))
    return " ".join(sentences[:2])


def _one_line(text: str, limit: int) -> str:
    words = " ".join(text[: 4 * limit].split())
    return words if len(words) <= limit else words[: limit - 1].rstrip() + "…"


def _reader(context: Sequence[ContextItem], current_path: str, mark: str, budget: ContextBudget) -> str:
    """Return what the reader has in view."""
    pieces: list[str] = []
    left = share(budget, MAX_CONTEXT_CHARACTERS)
    for item in context:
        if left <= 0:
            break
        value = clip(item.value, left)
        left -= len(value)
        kind = "code" if item.type == "code" else "text"
        pieces.append(_tagged("selection", value, mark, kind=kind, path=item.path or ""))
    if current_path:
        pieces.append(_tagged("open-page", current_path, mark))
    return "".join(f"{piece}\n" for piece in pieces)


def _tagged(name: str, text: str, mark: str, **attributes: str) -> str:
    return f"<{name}-{mark}{_attributes(mark, **attributes)}>\n{_unmarked(text, mark)}\n</{name}-{mark}>"


def _attributes(mark: str, **attributes: str) -> str:
    return "".join(f' {key}="{_attribute(value, mark)}"' for key, value in attributes.items() if value)


def _attribute(value: str, mark: str) -> str:
    return " ".join(_unmarked(value, mark).replace('"', "'").replace("<", "‹").replace(">", "›").split())[:300]  # noqa: RUF001


def _unmarked(text: str, mark: str) -> str:
    return text.replace(mark, "")
