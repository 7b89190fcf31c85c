"""A reply that this process gives, and what its readers get where the process stops before its end."""

import asyncio

from service.domain.threads.replies import ReplyBroken
from service.workers.replies.reply_writer import ReplyWriter

RESTARTING = "The service is restarting; ask again in a moment."
GOES_ON = "The service is restarting; the answer goes on in a moment: load the page again to read it."


def interruption(*, may_go_on: bool, has_others: bool) -> ReplyBroken:
    """``may_go_on``: its reader could ask for the rest; ``has_others``: another instance is there to be asked now."""
    return ReplyBroken("interrupted", GOES_ON if may_go_on else RESTARTING, goes_on=has_others)


class GivenElsewhere(Exception):
    """Another process goes on with the reply, or has ended it: the record says how."""


class Underway:
    task: asyncio.Task[None]

    def __init__(self, writer: ReplyWriter, *, may_return: bool) -> None:
        self.writer = writer
        self.may_return = may_return
        """Its client has named its chat, so a reader could ask for the rest."""
        self.has_begun = False
        """Its task has run; one that is cancelled before its first step never does."""
        self.stopped: ReplyBroken | None = None
        """The last event for readers, once the reply is to end early."""
