"""What a model is told: our rules as the only system message, everything else as marked, bounded material.

Material could try to close its own tags and go on as if it were us. The tags carry a mark made from the reply's id,
which is random and unknown to whoever wrote a page, a selection or a message; a text that holds the mark all the same
loses it. Sizes are in characters; four of them are about a token of English, one or two of CJK text.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from string import Template

from msgspec import Struct

from service.domain.threads import ContextItem
from service.ports.model import AssistantMessage, ModelMessage, Passage, SystemMessage, UserMessage

MAX_PASSAGES_CHARACTERS = 60_000
MAX_PASSAGE_CHARACTERS = 6_000
MIN_PASSAGE_CHARACTERS = 800
MAX_PAGE_CHARACTERS = 24_000
MAX_CONTEXT_CHARACTERS = 16_000
MAX_TURNS = 6
MAX_EARLIER_QUESTION_CHARACTERS = 2_000
MAX_EARLIER_ANSWER_CHARACTERS = 3_000

_CITATION_LINK = re.compile(r" ?\[\d{1,3}\]\([^)\s]*\)")
_SUGGESTIONS_BLOCK = re.compile(r"```suggestions\n.*?(?:```|\Z)", re.DOTALL)


class Exchange(Struct, frozen=True):
    """An earlier turn, from the thread's own record."""

    question: str
    answer: str


def mark_for(reply_id: str) -> str:
    return hashlib.sha256(reply_id.encode()).hexdigest()[:16]


def passage_limit(count: int) -> int:
    """Characters for each of so many passages."""
    return max(MIN_PASSAGE_CHARACTERS, min(MAX_PASSAGE_CHARACTERS, MAX_PASSAGES_CHARACTERS // max(count, 1)))


def clip(text: str, limit: int) -> str:
    """At most ``limit`` characters, cut at the end of a line where that loses little."""
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
) -> tuple[ModelMessage, ...]:
    asked = Template(_prompt("question.md")).substitute(
        mark=mark,
        passages=passages_text(passages, mark) or "(Nothing was found.)",
        reader=_reader(context, current_path, mark),
        question=_unmarked(question, mark),
    )
    return (SystemMessage(_prompt("answer.md")), *_earlier_messages(earlier), UserMessage(asked))


def results_text(passages: Sequence[Passage], mark: str) -> str:
    """A tool's result."""
    return Template(_prompt("results.md")).substitute(mark=mark, passages=passages_text(passages, mark))


def passages_text(passages: Iterable[Passage], mark: str) -> str:
    return "\n".join(
        _tagged(
            "passage", passage.text, mark,
            number=str(passage.number), page=passage.title, heading=passage.heading, url=passage.url,
        )
        for passage in passages
    )  # fmt: skip


def _earlier_messages(earlier: Sequence[Exchange]) -> list[ModelMessage]:
    """The last turns. Numbers of their citations mean nothing now, and would be copied."""
    messages: list[ModelMessage] = []
    for turn in earlier[-MAX_TURNS:]:
        answer = _CITATION_LINK.sub("", _SUGGESTIONS_BLOCK.sub("", turn.answer)).strip()
        messages.append(UserMessage(clip(turn.question, MAX_EARLIER_QUESTION_CHARACTERS)))
        messages.append(AssistantMessage(clip(answer, MAX_EARLIER_ANSWER_CHARACTERS) or "(No answer was given.)"))
    return messages


def _reader(context: Sequence[ContextItem], current_path: str, mark: str) -> str:
    """What the reader has in view."""
    pieces: list[str] = []
    left = MAX_CONTEXT_CHARACTERS
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
    told = "".join(f' {key}="{_attribute(value, mark)}"' for key, value in attributes.items() if value)
    return f"<{name}-{mark}{told}>\n{_unmarked(text, mark)}\n</{name}-{mark}>"


def _attribute(value: str, mark: str) -> str:
    return " ".join(_unmarked(value, mark).replace('"', "'").replace("<", "‹").replace(">", "›").split())[:300]  # noqa: RUF001


def _unmarked(text: str, mark: str) -> str:
    return text.replace(mark, "")


@cache
def _prompt(name: str) -> str:
    return resources.files("service.assistant").joinpath("prompts", name).read_text(encoding="utf-8")
