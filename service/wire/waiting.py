"""A wait of a reply for its model's provider, as clients read it."""

from typing import Annotated

from msgspec import Meta, Struct


class Waiting(Struct, frozen=True, tag_field="type", tag="waiting"):
    """How long a reply waits for its model's provider."""

    seconds: Annotated[float, Meta(description="Until the provider is asked again.")]
    message: Annotated[str, Meta(description="The same in words, to be shown.")]


def waiting(seconds: float) -> Waiting:
    rounded = max(1, round(seconds))
    unit = "second" if rounded == 1 else "seconds"
    return Waiting(round(seconds, 1), f"The assistant is busy. It tries again in {rounded} {unit}.")
