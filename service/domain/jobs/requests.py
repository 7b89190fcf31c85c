"""The requests to a job's model as they were sent, rebuilt from its events.

A reply's event says how its request differs from the one before: how many messages are the same, and where the text
of each other one is from, which is nearly always a reply, the result of a tool, or one of the prompts. Only what is in
none of them is recorded itself, and once. So a request is rebuilt as it was whatever the code, the prompts and the
repository are by then, and is recorded in a few hundred bytes.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from service.domain.model import ReplyMemory, ToolCall
from service.domain.prompts import PromptSet

Role = Literal["system", "user", "assistant", "tool"]
LEAST_KNOWN = 200
"""Characters of a recorded text from which on it has a number, and is named where it comes again. Never changed, since
the numbers of texts on record depend on it.
"""
LEAST_SHARED = 1_000
"""Characters of a common beginning from which on it is named."""
MAX_COMPARED = 8
"""Limit for the last recorded texts that a new one is compared with."""


class RequestMessage(Struct, frozen=True, omit_defaults=True):
    """A message of a request as a model is sent it, in no provider's form. Digests are made of its JSON form."""

    role: Role
    text: str
    calls: tuple[ToolCall, ...] = ()
    """Calls that an assistant's message made."""
    call_id: str = ""
    """The call that a tool's message is the result of."""
    name: str = ""
    """The tool's."""
    is_error: bool = False
    memory: ReplyMemory | None = None


class SentMessage(Struct, frozen=True, omit_defaults=True):
    """A message that the request before did not have in its place: the text of a source, whole or its beginning, and
    what follows it.
    """

    role: Role
    step: int = 0
    """The number of the job's reply, or of its result of a tool, that the message is of: from 1, by its role. It is the
    source of the text when no other is named.
    """
    prompt: str = ""
    """The name of a prompt."""
    known: int = 0
    """The number of a text that was recorded before, from 1."""
    head: int | None = None
    """Characters of the source; None: all of it."""
    text: str = ""
    calls: tuple[ToolCall, ...] | None = None
    """In place of the calls that the reply made."""
    at: int = 0
    """The number of a message of the request before, from 1: it and those behind it are there again."""
    count: int = 0
    """How many those are; 0 for a message that the other fields describe."""


class SentRequest(Struct, frozen=True, omit_defaults=True):
    """A request to the model, as its difference to the one before that had a reply."""

    kept: int
    """The first messages, which are those of the request before."""
    added: tuple[SentMessage, ...]
    digest: str
    """16 hexadecimal digits, of all messages."""
    output_tokens: int = 0
    """The limit for the reply."""


class NotRebuilt(Exception):
    """Something that the request was made of is not on record."""


def digest_of(messages: Sequence[RequestMessage]) -> str:
    return hashlib.sha256(msgspec.json.encode(messages)).hexdigest()[:16]


class Requests:
    """The requests of one job so far: give it the job's replies and results of tools in their order."""

    def __init__(self, kept: Mapping[str, PromptSet]) -> None:
        """``kept``: prompts by their hash."""
        self._kept = kept
        self._replies: list[tuple[str, tuple[ToolCall, ...], ReplyMemory | None]] = []
        self._results: list[tuple[str, str, str, bool]] = []
        self._reply_of: dict[str, int] = {}
        self._result_of: dict[str, int] = {}
        self._texts: list[str] = []
        self._number_of: dict[str, int] = {}
        self._last: tuple[RequestMessage, ...] | None = ()
        """Those of the last request that had a reply; None when it is not on record."""

    def add_result(self, call_id: str, name: str, text: str, *, is_error: bool) -> None:
        self._results.append((call_id, name, text, is_error))
        self._result_of[call_id] = len(self._results)

    def add_reply(
        self,
        text: str,
        calls: tuple[ToolCall, ...],
        memory: ReplyMemory | None,
        *,
        prompts: str,
        sent: SentRequest | None,
    ) -> tuple[RequestMessage, ...] | None:
        """Add a reply and the request that it answers. Return the request's messages; None where they are not on
        record.
        """
        try:
            self._last = self.messages(prompts, sent)
        except NotRebuilt:
            self._last = None
        for one in sent.added if sent is not None else ():
            if _is_recorded(one):
                self._texts.append(one.text)
                self._number_of.setdefault(one.text, len(self._texts))
        self._replies.append((text, calls, memory))
        for call in calls:
            self._reply_of.setdefault(call.id, len(self._replies))
        return self._last

    def messages(self, prompts: str, sent: SentRequest | None) -> tuple[RequestMessage, ...]:
        """Return the messages of a request that comes next, as they were sent.

        Raises NotRebuilt: it was recorded by an older version, was erased, or something that it was made of is missing.
        """
        if sent is None:
            raise NotRebuilt
        if sent.kept and (self._last is None or len(self._last) < sent.kept):
            raise NotRebuilt
        before = (self._last or ())[: sent.kept]
        messages = [*before]
        for one in sent.added:
            again = (self._last or ())[one.at - 1 : one.at - 1 + one.count]
            messages += again if one.count else [self._message(one, prompts)]
        if digest_of(messages) != sent.digest:
            raise NotRebuilt
        return tuple(messages)

    def sent(self, prompts: PromptSet, messages: Sequence[RequestMessage], output_tokens: int) -> SentRequest:
        """Return what to record of a request."""
        last, kept = self._last or (), 0
        while kept < min(len(last), len(messages)) and last[kept] == messages[kept]:
            kept += 1
        names = {text: name for name, text in prompts.texts.items()}
        places = {message: at for at, message in enumerate(last, 1)}
        added: list[SentMessage] = []
        for message in messages[kept:]:
            at = places.get(message, 0)
            before = added[-1] if added else None
            if before is not None and before.count and at == before.at + before.count:
                added[-1] = replace(before, count=before.count + 1)
            elif at:
                added.append(SentMessage(message.role, at=at, count=1))
            else:
                added.append(self._difference(message, names))
        return SentRequest(kept, tuple(added), digest_of(messages), output_tokens)

    def _message(self, sent: SentMessage, prompts: str) -> RequestMessage:
        try:
            if sent.role == "assistant" and sent.step:
                text, calls, memory = self._replies[sent.step - 1]
                calls = calls if sent.calls is None else sent.calls
                return RequestMessage("assistant", self._text(sent, text, prompts), calls, memory=memory)
            if sent.role == "tool":
                call_id, name, text, is_error = self._results[sent.step - 1]
                whole = self._text(sent, text, prompts)
                return RequestMessage("tool", whole, call_id=call_id, name=name, is_error=is_error)
            return RequestMessage(sent.role, self._text(sent, "", prompts), sent.calls or ())
        except LookupError:
            raise NotRebuilt from None

    def _text(self, sent: SentMessage, of_step: str, prompts: str) -> str:
        source = of_step
        if sent.prompt:
            source = self._kept[prompts].texts[sent.prompt]
        elif sent.known:
            source = self._texts[sent.known - 1]
        return source[: sent.head] + sent.text

    def _difference(self, message: RequestMessage, names: Mapping[str, str]) -> SentMessage:
        """Return a message by where it is from."""
        role, text = message.role, message.text
        if role == "tool" and message.call_id in self._result_of:
            step = self._result_of[message.call_id]
            head, rest = _shared(self._results[step - 1][2], text, 1)
            return SentMessage(role, step, head=head, text=rest)
        if role == "assistant" and (step := self._reply(message)):
            said, made, _ = self._replies[step - 1]
            head, rest = _shared(said, text, 1)
            changed = None if message.calls == made else message.calls
            return SentMessage(role, step, head=head, text=rest, calls=changed)
        calls = message.calls or None
        if text in names:
            return SentMessage(role, prompt=names[text], calls=calls)
        if text in self._number_of:
            return SentMessage(role, known=self._number_of[text], calls=calls)
        last = range(max(1, len(self._texts) - MAX_COMPARED + 1), len(self._texts) + 1)
        shares = [(_shared(self._texts[number - 1], text, LEAST_SHARED), number) for number in last]
        (head, rest), known = min(shares, key=lambda one: len(one[0][1]), default=((0, text), 0))
        if head == 0:
            return SentMessage(role, text=text, calls=calls)
        return SentMessage(role, known=known, head=head, text=rest, calls=calls)

    def _reply(self, message: RequestMessage) -> int:
        """Return the number of the reply that a message repeats, whole or shortened; 0 for none."""
        for call in message.calls:
            return self._reply_of.get(call.id, 0)
        for number in range(len(self._replies), 0, -1):
            said, calls, memory = self._replies[number - 1]
            if not calls and memory == message.memory and said[:80] == message.text[:80]:
                return number
        return 0


def _is_recorded(sent: SentMessage) -> bool:
    """Return whether a message's text is one that later ones may name."""
    return not (sent.step or sent.prompt or sent.known or sent.count) and len(sent.text) >= LEAST_KNOWN


def _shared(source: str, text: str, least: int) -> tuple[int | None, str]:
    """Return how much of a source a text begins with, None for all of it, and the rest of the text. Nothing is shared
    where it is less than ``least``.
    """
    if text.startswith(source) and len(source) >= least:
        return None, text[len(source) :]
    low, high = 0, min(len(source), len(text))
    while low < high:
        middle = (low + high + 1) // 2
        if source[:middle] == text[:middle]:
            low = middle
        else:
            high = middle - 1
    return (low, text[low:]) if low >= least else (0, text)
