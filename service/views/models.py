"""Models that a job may name."""

from typing import Annotated

from msgspec import Struct

from service.views.fields import described


class ModelsView(Struct, frozen=True):
    """The models of the agent, as the operator's settings name them."""

    agent: Annotated[str, described("The model of jobs that name none.")]
    aliases: Annotated[tuple[str, ...], described("The names that a job may give as its `model`.")]
    refused: Annotated[
        dict[str, tuple[str, ...]],
        described("The parts of requests that a model's server refuses, as set or learned within a day, by alias."),
    ]
