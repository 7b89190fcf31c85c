"""The text that a model writes for one answer, call by call, and the parts of it for readers and for the record.

A call that ends at the limit for its length is continued once by the next one, and so is the text that a process left
when it ended: the filters then stand where they stood, for they have read the same words.
"""

from collections.abc import Sequence

from service.assistant.finding.planning import PLANNED
from service.assistant.sentence_checks.withheld import CodePart, CodeWithholder
from service.assistant.showing.answer_text import AnswerText
from service.assistant.showing.joint import Joint
from service.domain.model import Usage
from service.domain.threads.progress import ReplyProgress
from service.domain.threads.recorded_reply import CallEnd, FinishReason
from service.domain.threads.replies import CallEnded, TextDelta, Thought
from service.ports.model import ModelEnd

MAX_CUTS = 2
"""Calls that end at the limit for their length: the text of the first goes on, that of the second is cut off."""

MAX_EMPTY_CALLS = 2
"""Calls that end without a word; behind the first one the model is asked once more."""

LOST = "lost"
"""End of a call that was paid, whose reply could not be used."""

MAX_PIECES = 64
"""Pieces of a text that are kept apart: in single words it takes ten times the memory."""

Given = Sequence[TextDelta | Thought | CallEnded]


class Transcript:
    def __init__(self, written: AnswerText, withholder: CodeWithholder | None = None) -> None:
        """``withholder``: None where all code is shown."""
        self._written = written
        self._withholder = withholder
        self._shown: list[str] = []
        self._words: list[str] = []
        self._joint: Joint | None = None
        self._cuts = 0
        self._empty_calls = 0
        self._shown_before = 0
        """Characters that readers were sent before the call."""
        self._closing = ""
        self.begun = ""
        """The words that the next call is to continue; empty when it begins a text of its own."""
        self.said = ""
        """The words of the last call, with those that it continued."""
        self.usage = Usage()
        self.model = ""
        """The model that the last call used."""
        self.has_written_call = False
        """Whether a call of a tool was written as text: then none is offered any more."""
        self.is_unsure = False
        """Whether the last call showed the nearest passages, and was not sure that they answer."""
        self.finish: FinishReason | None = None
        """Why the model wrote no more; None while it goes on."""

    @property
    def text(self) -> str:
        """Return all that readers were sent."""
        return "".join(self._shown)

    @property
    def is_cut(self) -> bool:
        """Return whether the next call goes on behind one that was cut at the limit for its length."""
        return self._cuts > 0 and bool(self.begun)

    @property
    def is_empty(self) -> bool:
        """Return whether the model wrote nothing, asked twice."""
        return self._empty_calls >= MAX_EMPTY_CALLS

    def take_up(self, progress: ReplyProgress) -> None:
        """Read what is on record, to go on behind it. The cost grows with its length: call it in a thread."""
        words: list[str] = []
        for call in progress.calls:
            if call.end is not None and call.end.reason in (PLANNED, LOST):
                continue
            self._pass_over(self._written.take_up(call.raw))
            words.append(call.raw)
            if call.end is not None:
                self.model = call.end.model
                self._pass_over(self._written.pause())
                if self._end(call.end.reason, call.raw):
                    self._pass_over(self._written.finish(), is_end=True)
                    words.append("\n\n")
        self._written.take_thoughts()
        self._written.take_raw()
        self.usage = progress.usage
        self._closing = progress.closing
        text = progress.text.removesuffix(self._closing)
        self._shown = [text] if text else []
        if self._withholder is not None:
            self._withholder.reader.pass_over(text)
        self.begun = "".join(words) if any(word.strip() for word in words) else ""

    def begin_call(self) -> None:
        self._words = [self.begun] if self.begun else []
        self._joint = Joint(self.begun) if self.begun else None
        self._shown_before = len(self.text)

    @property
    def shows_all_code(self) -> bool:
        return self._withholder is None

    async def feed(self, text: str) -> Given:
        """Return what to give for a piece of the model's text."""
        if self._withholder is None:
            return self.feed_now(text)
        return self._given(await self._without_withheld(self._safe(text)))

    def feed_now(self, text: str) -> Sequence[TextDelta | Thought]:
        """The same where all code is shown, without a wait."""
        return self._given(self._safe(text))

    def _safe(self, text: str) -> str:
        return self._written.feed(text if self._joint is None else self._joint.feed(text))

    async def end_call(self, end: ModelEnd, *, is_filtered: bool = False, may_call: bool = True) -> Given:
        """Return what to give at the end of a call. ``may_call``: whether the calls that it made are carried out."""
        events: list[TextDelta | Thought | CallEnded] = [*self._given(await self._without_withheld(self._paused()))]
        self.usage += end.usage
        self.model = end.model
        self.is_unsure = end.unsure
        raw = self._written.take_raw()
        self._words.append(raw)
        self.said = "".join(self._words)
        is_cut = end.reason == "length" and not end.tool_calls and self._cuts + 1 < MAX_CUTS and self.said.strip() != ""
        if not is_cut:
            events += self._given(await self._without_withheld(self._written.finish(), is_end=True))
        has_written_call = bool(self._written.take_calls())
        reason = self._reason_of(end, has_written_call=has_written_call, is_filtered=is_filtered, may_call=may_call)
        self.begun = self.said if is_cut else ""
        self._end(reason, self.said)
        return [*events, CallEnded(raw, CallEnd(reason, end.model, end.usage))]

    def _reason_of(self, end: ModelEnd, *, has_written_call: bool, is_filtered: bool, may_call: bool) -> str:
        """Return why a call ended, for the record."""
        if end.tool_calls:
            return "tool_calls" if may_call else "stop"
        if is_filtered:
            return "content_filter"
        if end.reason == "length" and self.said.strip():
            return "length"
        if has_written_call:
            return "written_call"
        if end.reason == "unknown" and self.said.strip():
            return "other"
        is_silent = len(self.text) == self._shown_before and not self.begun
        says_nothing = is_silent and not self._written.says_unanswered and not self._written.cited
        return "empty" if says_nothing else "stop"

    def lose_call(self, usage: Usage, model: str) -> CallEnded:
        """Count a call whose reply could not be used, and return what to record of it."""
        self.usage += usage
        return CallEnded("", CallEnd(LOST, model, usage))

    async def give_up(self) -> Given:
        """Return what to give where a text that was cut cannot be continued."""
        self.finish = "length"
        return await self.break_off()

    async def break_off(self) -> Given:
        """Return what to give of a call that failed: the text that was held back."""
        paused = await self._without_withheld(self._paused())
        return [*self._given(paused), *self._given(await self._without_withheld(self._written.finish(), is_end=True))]

    def close(self, words: str) -> TextDelta | None:
        """Return the service's own words at the end of the answer, but for those that are on record already."""
        is_recorded = not words.startswith(self._closing)
        rest = "" if is_recorded else words.removeprefix(self._closing)
        self._shown.append(self._closing + rest)
        return TextDelta(rest, "") if rest else None

    async def _without_withheld(self, text: str, *, is_end: bool = False) -> str:
        """Return what of the text may be shown by now."""
        if self._withholder is None:
            return text
        parts = self._withholder.reader.feed(text)
        if is_end:
            parts += self._withholder.reader.finish()
        if not any(isinstance(part, CodePart) for part in parts):
            return "".join(part for part in parts if isinstance(part, str))
        return await self._withholder.shown(parts)

    def _pass_over(self, text: str, *, is_end: bool = False) -> None:
        """Read text that is on record, whatever was shown of it."""
        if self._withholder is not None:
            self._withholder.reader.feed(text)
            if is_end:
                self._withholder.reader.finish()

    def _paused(self) -> str:
        held = "" if self._joint is None else self._joint.finish()
        return self._written.feed(held) + self._written.pause()

    def _end(self, reason: str, said: str) -> bool:
        """Note how a call ended, and return whether its text is whole: what the next one writes is a paragraph."""
        match reason:
            case "length":
                self._cuts += 1
                if self._cuts < MAX_CUTS and said.strip():
                    return False
                self.finish = "length"
            case "tool_calls":
                pass
            case "empty":
                self._empty_calls += 1
            case "written_call" if self._empty_calls and self.text.strip():
                self.finish = "stop"
            case "written_call":
                self._empty_calls += 1
                self.has_written_call = True
            case "content_filter":
                self.finish = "content_filter"
            case "other":
                self.finish = "other"
            case _:
                self.finish = "stop"
        return True

    def _given(self, shown: str) -> list[TextDelta | Thought]:
        """Return the parts of the model's text: its reasoning, which no reader sees, and the text that is shown."""
        events: list[TextDelta | Thought] = []
        if thought := self._written.take_thoughts():
            events.append(Thought(thought))
        if shown:
            raw = self._written.take_raw()
            _add(self._words, raw)
            _add(self._shown, shown)
            events.append(TextDelta(shown, None if raw == shown else raw))
        return events


def _add(pieces: list[str], piece: str) -> None:
    pieces.append(piece)
    if len(pieces) >= MAX_PIECES:
        pieces[:] = ["".join(pieces)]
