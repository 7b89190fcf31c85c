"""The log as auditors read it."""

from typing import Annotated

import msgspec
from msgspec import Struct

from service.views.fields import Timestamp, described


class EventView(Struct, frozen=True, rename="camel"):
    """An event of the log: its fields as one JSON object."""

    position: Annotated[int, described("Its place in the log.")]
    stream: Annotated[str, described("The stream that it belongs to, such as `job-ID`.")]
    stream_version: Annotated[int, described("Its place in the stream.")]
    type: Annotated[str, described("The type of the event.")]
    recorded_at: Annotated[Timestamp, described("When it was recorded.")]
    actor: Annotated[str, described("The key, person or program that caused it.")]
    request_id: Annotated[str, described("The request that caused it.")]
    causation: Annotated[int | None, described("The position of the event that caused it.")]
    data: Annotated[msgspec.Raw, described("Its fields.")]
    erased: Annotated[bool, described("Its personal fields were erased.")]
    hash: Annotated[str, described("Its hash, in hex.")]
    damaged: Annotated[bool, described("Its personal fields do not open with their key.")]
