"""Organizations."""

from typing import Annotated

from msgspec import Struct

from service.views.fields import Timestamp, described


class OrganizationView(Struct, frozen=True, rename="camel"):
    """The owner of projects and keys."""

    id: Annotated[str, described("The organization's id.")]
    name: Annotated[str, described("Its name for people.")]
    created_at: Annotated[Timestamp, described("When it was created.")]
