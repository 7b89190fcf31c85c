"""The places where documentation may be, as the pages that create a project offer them."""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

Kind = Literal["upload", "folder", "git", "host", "website", "sample"]


class Choice(Struct, frozen=True):
    """A place where documentation may be."""

    label: str
    text: str


CHOICES: Mapping[Kind, Choice] = {
    "upload": Choice("Upload", "A zip archive from your computer. Pull requests are opened here."),
    "folder": Choice("Folder", "A folder on the machine of this service. Pull requests are opened here."),
    "git": Choice("Git address", "Any git repository. It is copied once; pull requests are opened here, not there."),
    "host": Choice("Code host", "GitHub, GitLab, Gitea or Forgejo. Pull requests are opened there."),
    "website": Choice("Website", "A live site. Readers can ask; the agent cannot change it."),
    "sample": Choice("Sample", "The manual of Docsmith, to try everything on. Pull requests are opened here."),
}


def offered(folders: Sequence[str], *, may_allow: bool) -> Mapping[Kind, Choice]:
    """Return the places to choose from: folders only where some are allowed, or the person may allow them."""
    return CHOICES if folders or may_allow else {kind: one for kind, one in CHOICES.items() if kind != "folder"}
