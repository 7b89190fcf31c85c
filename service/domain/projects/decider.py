"""A project: one documentation repository, its code host, and the domain of its site."""

from datetime import datetime
from typing import assert_never

from msgspec import Struct, convert
from msgspec.structs import asdict

from service.domain.errors import Conflict, NotFound
from service.domain.events import Event
from service.domain.projects.contexts import ContextRepository
from service.domain.projects.settings import CHANGEABLE, CodeHostKind, ProjectSettings, SettingsChange, changed, checked


class ProjectCreated(Event, frozen=True, tag="project-created"):
    """The fields of ``ProjectSettings``, in the order in which they are stored."""

    organization_id: str
    name: str
    repository: str
    ref: str
    docs_folder: str
    domain: str
    code_host: CodeHostKind
    created_at: datetime
    api_url: str = ""
    git_token_env: str = ""
    github_app_id: str = ""
    github_app_key_env: str = ""
    labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    contexts: tuple[ContextRepository, ...] = ()
    guarded: bool = False
    token_id: str = ""
    site_url: str = ""
    max_cost_usd_day: float = 0.0
    follows: tuple[str, ...] = ()


class ProjectChanged(Event, SettingsChange, frozen=True, tag="project-changed"):
    """Settings have new values."""


ProjectEvent = ProjectCreated | ProjectChanged


class CreateProject(Struct, frozen=True):
    settings: ProjectSettings
    now: datetime


class ChangeProject(SettingsChange, frozen=True):
    """Change settings of a project."""


ProjectCommand = CreateProject | ChangeProject


class Absent(Struct, frozen=True):
    pass


ProjectState = Absent | ProjectSettings


def project_not_found() -> NotFound:
    return NotFound("Project not found. List the projects to see their ids.")


def decide(command: ProjectCommand, state: ProjectState) -> list[ProjectEvent]:
    """Return the events of a command. Raise NotFound, Conflict (it exists, or cannot change so) or Invalid (its
    fields).
    """
    match command, state:
        case CreateProject() as new, Absent():
            return [ProjectCreated(**asdict(checked(new.settings)), created_at=new.now)]
        case CreateProject(), ProjectSettings():
            raise Conflict("This project exists already.")
        case ChangeProject() as change, ProjectSettings() as before:
            after = checked(changed(before, change))
            if after.repository != before.repository and before.code_host == "local":
                raise Conflict(
                    "The embedded code host keeps this repository. Create another project for another repository."
                )
            different = {name: new for name in CHANGEABLE if (new := getattr(after, name)) != getattr(before, name)}
            return [ProjectChanged(change.changed_at, **different)] if different else []
        case ChangeProject(), Absent():
            raise project_not_found()
        case _:
            raise AssertionError(command)


def evolve(state: ProjectState, event: ProjectEvent) -> ProjectState:
    match event:
        case ProjectCreated() as made:
            return convert(made, ProjectSettings, from_attributes=True)
        case ProjectChanged() as change:
            assert isinstance(state, ProjectSettings)
            return changed(state, change)
        case _:
            assert_never(event)
