"""A reader of a reply that takes each piece of text in the call that publishes it.

Waking a task for each piece and reader costs as much as all else that is done with the piece, so a reader that is not
behind takes it at once, and its task wakes only for the rest. What the pieces become (server-sent events, data lines)
is the reader's: the replier knows no HTTP.
"""

from typing import Protocol, TypeVar

E = TypeVar("E", contravariant=True)


class DirectReader(Protocol[E]):
    def __call__(self, event: E, /) -> bool:
        """Take the event and return True, or leave it and return False.

        The publisher calls this on the event loop's thread, and only when the reader has all earlier events. An event
        that is left comes in the reader's next batch, and so does what follows it until that batch is read: each event
        comes once, in order. The call must not raise, and must be as quick as handing bytes to a socket: a reader that
        is behind, has gone, or may not read on leaves the event.
        """
