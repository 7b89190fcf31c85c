"""The text of a reply under way, on its last step: to its record and to its readers."""

from datetime import datetime

from service.domain.threads.recorded_reply import ModelTrouble
from service.domain.threads.replies import LiveEvent, ReplyEvent, SentencesChecked, Thought
from service.runtime.system import now
from service.workers.replies.broadcast import Topic
from service.workers.replies.reply_writer import ReplyWriter

MAX_REPLY_CHARACTERS = 200_000
"""Several times what all calls of the model for one reply may write; a provider that goes on is cut off here."""


class ReplyTooLong(Exception):
    """The provider goes on and on."""


class LiveText:
    """Takes each piece in the call that made it, as ``service.assistant.answer`` hands it on."""

    def __init__(self, topic: Topic[ReplyEvent], writer: ReplyWriter, characters: int) -> None:
        """``characters``: the length of what an earlier process has sent."""
        self.topic, self.writer, self._characters = topic, writer, characters
        self._is_continued = characters > 0
        self.first_text_at: datetime | None = None
        """When this process sent the first text; None when an earlier process did."""
        self.trouble: ModelTrouble | None = None
        """Why the model failed, once its answer is not to come."""

    def __call__(self, event: LiveEvent) -> None:
        """Record the event, and publish it where it is for readers. Raises ReplyTooLong."""
        if self.writer.is_abandoned:
            return
        if isinstance(event, SentencesChecked):
            self.topic.publish(event)
            return
        self._characters += len(event.text)
        if self._characters > MAX_REPLY_CHARACTERS:
            raise ReplyTooLong
        if isinstance(event, Thought):
            self.writer.think(event.text)
            return
        if self.first_text_at is None and event.text and not self._is_continued:
            self.first_text_at = now()
        self.writer.write(event.text, event.raw)
        self.topic.publish(event)
