"""Records for auditors, beside the work itself: who has seen what people typed, which loss of events was accepted, and
how often signing in failed.
"""

from datetime import datetime
from typing import assert_never

from msgspec import Struct

from service.domain.errors import Conflict
from service.domain.events import Event


class AuditRead(Event, frozen=True, tag="audit-read"):
    """Recorded before anything is shown. Who read is in the event's metadata."""

    command: str
    """``audit show``, ``audit export``, ``audit replay`` or ``backup``;
    for a page in a browser, ``page`` and its name; for a tool of an agent, ``tool`` and its name.
    """
    filters: dict[str, str]
    """The options that chose what is read, by their names."""
    after: int
    """Only events at later positions are read ..."""
    through: int
    """... up to this one."""
    read_at: datetime


class LossAccepted(Event, frozen=True, tag="loss-accepted"):
    """Recorded by an operator in a log that had lost its end, or was another one, so that it may go on."""

    reason: str
    witness: str
    """Which of those that follow the log had seen more of it; empty when only its WAL showed the loss. When only
    another instance had, what that one noted in the log.
    """
    expected_position: int
    """The last one that the witness had seen; 0 when it is not known."""
    expected_hash: str
    """Hash of the event at that position, in hex."""
    found_position: int
    """The head of what was left."""
    found_hash: str
    lost_from: int
    """The first position whose event may be lost ..."""
    lost_through: int
    """... and the last one that is known of; 0 when it is not."""
    accepted_at: datetime


class SignInsFailed(Event, frozen=True, tag="sign-ins-failed"):
    """Attempts to sign in that failed within some minutes, counted, since anyone can cause them."""

    counts: dict[str, int]
    """By method and code of the error, such as ``link: link_not_valid``."""
    networks: tuple[str, ...]
    """Some of those that the attempts came from: /24 of IPv4, /48 of IPv6."""
    first_at: datetime
    last_at: datetime


class InstallationIdentified(Event, frozen=True, tag="installation-identified"):
    """The key that signs checkpoints of the log. A log that names one in its first event has this only once another
    signs in its place.
    """

    public_key: str
    """The 32 bytes of an Ed25519 key, in base64."""
    previous_key: str
    """The one that the log named before; empty for none."""
    identified_at: datetime


AuditEvent = AuditRead | LossAccepted | SignInsFailed | InstallationIdentified


class RecordReading(Struct, frozen=True):
    command: str
    filters: dict[str, str]
    after: int
    through: int
    now: datetime


class AcceptLoss(Struct, frozen=True):
    reason: str
    witness: str
    expected_position: int
    expected_hash: str
    found_position: int
    found_hash: str
    lost_from: int
    now: datetime


class RecordFailedSignIns(Struct, frozen=True):
    counts: dict[str, int]
    networks: tuple[str, ...]
    first_at: datetime
    last_at: datetime


class IdentifyInstallation(Struct, frozen=True):
    public_key: str
    previous_key: str
    now: datetime


AuditCommand = RecordReading | AcceptLoss | RecordFailedSignIns | IdentifyInstallation


class Unread(Struct, frozen=True):
    pass


class Read(Struct, frozen=True):
    pass


Reading = Unread | Read


def decide(command: AuditCommand, reading: Reading) -> list[AuditEvent]:
    """Return the events of a command. Raise Conflict when the reading or the loss is recorded already."""
    if isinstance(reading, Read):
        raise Conflict("This is recorded already.")
    match command:
        case RecordReading():
            read = AuditRead(command.command, command.filters, command.after, command.through, read_at=command.now)
            return [read]
        case AcceptLoss():
            accepted = LossAccepted(
                command.reason, command.witness, command.expected_position, command.expected_hash,
                command.found_position, command.found_hash, command.lost_from, command.expected_position,
                accepted_at=command.now,
            )  # fmt: skip
            return [accepted]
        case RecordFailedSignIns():
            return [SignInsFailed(command.counts, command.networks, command.first_at, command.last_at)]
        case IdentifyInstallation():
            return [InstallationIdentified(command.public_key, command.previous_key, identified_at=command.now)]
        case _:
            assert_never(command)


def evolve(_: Reading, __: AuditEvent) -> Reading:
    return Read()
