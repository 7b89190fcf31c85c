"""A wait of a reply for its model's provider, as clients read it."""

from typing import Annotated, Literal

from msgspec import Meta, Struct


class Waiting(Struct, frozen=True):
    """How long a reply waits for its model's provider."""

    type: Annotated[Literal["waiting"], Meta(description="Always `waiting`.")]
    seconds: Annotated[float, Meta(description="Until the provider is asked again.")]
    message: Annotated[str, Meta(description="The same in words, to be shown.")]


def waiting(seconds: float) -> Waiting:
    rounded = max(1, round(seconds))
    unit = "second" if rounded == 1 else "seconds"
    return Waiting("waiting", round(seconds, 1), f"The assistant is busy. It tries again in {rounded} {unit}.")
