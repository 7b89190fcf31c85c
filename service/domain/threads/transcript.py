"""The part of a reply that its readers have been sent, where it comes from several sources: each part of it once.

A reply is published by the instance that gives it, and recorded in segments a little later. Another instance goes on
with it where its record ends, when the first has ended: what was published and not recorded is then written a second
time, perhaps in other words. Each source gives the reply from its start, and what it gives is compared with what
readers have: the rest is for them. Where the two differ they have to read it from its start.
"""

from collections.abc import Iterable

from service.domain.events import GONE
from service.domain.threads.replies import (
    ReplyBroken,
    ReplyDone,
    ReplyEvent,
    ReplyOpened,
    ReplyWaiting,
    SearchFinished,
    SearchStarted,
    SentencesChecked,
    TextDelta,
)


class Diverged(Exception):
    """A source gives another reply than the one that readers have the beginning of."""


class Transcript:
    def __init__(self, sent: Iterable[ReplyEvent] = ()) -> None:
        """``sent``: events that readers have already."""
        self.is_opened = self.is_over = False
        self.searches_started = self.searches_finished = 0
        self.characters = 0
        self._text = ""
        self._parts: list[str] = []
        """Text behind it."""
        first = self.source()
        for event in sent:
            first.take(event)

    @property
    def text(self) -> str:
        if self._parts:
            self._text = "".join((self._text, *self._parts))
            self._parts.clear()
        return self._text

    def source(self) -> "TranscriptSource":
        """Return one more source of the reply, at its start."""
        return TranscriptSource(self)

    def write(self, text: str) -> None:
        self._parts.append(text)
        self.characters += len(text)


class TranscriptSource:
    """One source of a reply: its place in it."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._characters = self._started = self._finished = 0

    def take(self, event: ReplyEvent) -> ReplyEvent | None:
        """Return what readers do not have of the source's next event; None where they have it. Raises Diverged."""
        transcript = self._transcript
        if transcript.is_over:
            return None
        match event:
            case TextDelta():
                return self._take_text(event)
            case ReplyOpened():
                if transcript.is_opened:
                    return None
                transcript.is_opened = True
            case SearchStarted():
                self._started += 1
                if self._started <= transcript.searches_started:
                    return None
                self._require_level()
                transcript.searches_started += 1
            case SearchFinished():
                self._finished += 1
                if self._finished <= transcript.searches_finished:
                    return None
                self._require_level()
                transcript.searches_finished += 1
            case ReplyWaiting() | SentencesChecked():
                return event if self._characters == transcript.characters else None
            case ReplyDone(text=text):
                if text != transcript.text and text not in GONE:
                    raise Diverged
                transcript.is_over = True
            case ReplyBroken():
                transcript.is_over = True
        return event

    def _take_text(self, delta: TextDelta) -> ReplyEvent | None:
        transcript, start = self._transcript, self._characters
        self._characters += len(delta.text)
        ahead = transcript.characters - start
        if ahead <= 0:
            transcript.write(delta.text)
            return delta
        if not delta.text.startswith(transcript.text[start : start + len(delta.text)]):
            raise Diverged
        if ahead >= len(delta.text):
            return None
        rest = delta.text[ahead:]
        transcript.write(rest)
        return TextDelta(rest)

    def _require_level(self) -> None:
        """Raise Diverged where readers have more text than the source has given."""
        if self._characters < self._transcript.characters:
            raise Diverged
