"""The models that operators add while the service runs, beside those of the settings, and the findings about each."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.events import Event
from service.domain.projects.values import checked_variable

Work = Literal["agent", "assistant"]
WORKS: tuple[Work, ...] = ("agent", "assistant")
"""The kinds of work that a model is chosen for: jobs, and answers."""

MAX_MODELS = 50
MAX_CHARACTERS = 1_000
"""Limit for a text of a profile, and for one of a finding."""
MAX_PARAMETERS = 20
RESERVED = ("builtin", "off")
"""Names that the settings give a meaning."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
_ADDRESS = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?", re.IGNORECASE)


class ModelProfile(Struct, frozen=True, omit_defaults=True):
    """How a model is asked: the same values as a ``[models.NAME]`` section of the settings has."""

    name: str
    """By which jobs and settings name it."""
    provider: str
    """The provider's name in our list of them."""
    model: str
    """The library's name of the model, with its provider."""
    api_base: str = ""
    api_key_env: str = ""
    """The *name* of the environment variable that holds the key; never the key."""
    key_id: str = ""
    """The name under which the vault keeps the key, instead of a variable; never the key."""
    context_tokens: int | None = None
    max_output_tokens: int | None = None
    input_usd_per_million_tokens: float | None = None
    output_usd_per_million_tokens: float | None = None
    extra: dict[str, str] = {}
    """Further parameters of the provider."""


class Finding(Struct, frozen=True, omit_defaults=True):
    """One ability of a model, as it was found."""

    ability: str
    verdict: Literal["works", "fails", "unknown"]
    says: str
    mend: str = ""


class ModelAdded(Event, frozen=True, tag="model-added"):
    """A model was added, or another one in place of the one of this name."""

    profile: ModelProfile
    added_at: datetime
    findings: tuple[Finding, ...] = ()
    """Empty: the service is to try it."""


class ModelTrialRequested(Event, frozen=True, tag="model-trial-requested"):
    name: str
    requested_at: datetime


class ModelTried(Event, frozen=True, tag="model-tried"):
    name: str
    findings: tuple[Finding, ...]
    tried_at: datetime


class ModelChosen(Event, frozen=True, tag="model-chosen"):
    """A model does a kind of work from now on, where the settings name none for it."""

    work: Work
    name: str
    """Empty: none is chosen."""
    chosen_at: datetime


class ModelRemoved(Event, frozen=True, tag="model-removed"):
    name: str
    removed_at: datetime


ModelProfileEvent = ModelAdded | ModelTrialRequested | ModelTried | ModelChosen | ModelRemoved


class AddModel(Struct, frozen=True):
    profile: ModelProfile
    now: datetime
    findings: tuple[Finding, ...] = ()


class RequestTrial(Struct, frozen=True):
    name: str
    now: datetime


class RecordTrial(Struct, frozen=True):
    profile: ModelProfile
    """As it was tried: findings about another one of the name are not recorded."""
    findings: tuple[Finding, ...]
    now: datetime


class ChooseModel(Struct, frozen=True):
    work: Work
    name: str
    now: datetime


class RemoveModel(Struct, frozen=True):
    name: str
    now: datetime


ModelProfileCommand = AddModel | RequestTrial | RecordTrial | ChooseModel | RemoveModel


class AddedModel(Struct, frozen=True):
    """A model that was added, and the findings about it."""

    profile: ModelProfile
    added_at: datetime
    findings: tuple[Finding, ...] = ()
    tried_at: datetime | None = None
    """None: it is to be tried."""

    def can(self, work: Work) -> bool:
        """Return whether the model was found to do a kind of work."""
        works = {one.ability for one in self.findings if one.verdict == "works"}
        return "word" in works and (work == "assistant" or "tool_call" in works)


class ModelProfiles(Struct, frozen=True):
    """All of them, in the order in which their names were first added."""

    models: tuple[AddedModel, ...] = ()
    chosen: dict[Work, str] = {}

    def find(self, name: str) -> AddedModel | None:
        return next((one for one in self.models if one.profile.name == name), None)


def decide(command: ModelProfileCommand, state: ModelProfiles) -> list[ModelProfileEvent]:
    """Return the events of a command; none where it changes nothing. Raise Invalid, NotFound, and Conflict for too
    many.
    """
    match command:
        case AddModel(profile=profile, now=now, findings=findings):
            profile = checked(profile)
            if state.find(profile.name) is None and len(state.models) >= MAX_MODELS:
                raise Conflict(f"There are {MAX_MODELS} models already. Remove one first.")
            return [ModelAdded(profile, now, _clipped(findings))]
        case RequestTrial(name=name, now=now):
            return [] if _known(state, name).tried_at is None else [ModelTrialRequested(name, now)]
        case RecordTrial(profile=profile, findings=findings, now=now):
            known = state.find(profile.name)
            if known is None or known.profile != profile:
                return []
            return [ModelTried(profile.name, _clipped(findings), now)]
        case ChooseModel(work=work, name=name, now=now):
            if name:
                _known(state, name)
            return [] if state.chosen.get(work, "") == name else [ModelChosen(work, name, now)]
        case RemoveModel(name=name, now=now):
            return [ModelRemoved(_known(state, name).profile.name, now)]
        case _:
            assert_never(command)


def evolve(state: ModelProfiles, event: ModelProfileEvent) -> ModelProfiles:
    match event:
        case ModelAdded(profile=profile, added_at=at, findings=findings):
            return _with(state, AddedModel(profile, at, findings, at if findings else None))
        case ModelTrialRequested(name=name):
            return _with(state, replace(_known(state, name), tried_at=None))
        case ModelTried(name=name, findings=findings, tried_at=at):
            return _with(state, replace(_known(state, name), findings=findings, tried_at=at))
        case ModelChosen(work=work, name=name):
            return replace(state, chosen={**state.chosen, work: name})
        case ModelRemoved(name=name):
            left = tuple(one for one in state.models if one.profile.name != name)
            return ModelProfiles(left, {work: chosen for work, chosen in state.chosen.items() if chosen != name})
        case _:
            assert_never(event)


def checked(profile: ModelProfile) -> ModelProfile:
    """Return the profile with every value in its one form. Raise Invalid."""
    if not _NAME.fullmatch(profile.name) or profile.name in RESERVED:
        raise Invalid(
            f"{profile.name!r} cannot be the name of a model: use 1 to 40 lower-case letters, digits, dots and hyphens,"
            f" and not {' or '.join(RESERVED)}."
        )
    texts = (profile.model, profile.api_base, *profile.extra, *profile.extra.values())
    if any(len(text) > MAX_CHARACTERS or not text.isprintable() for text in texts):
        raise Invalid(f"A value of a model has at most {MAX_CHARACTERS:,} printable characters.")
    library, _, model = profile.model.partition("/")
    if not library or not model or any(letter.isspace() for letter in profile.model):
        raise Invalid("The model is missing. Give its name as the provider has it.")
    if profile.api_base and not _ADDRESS.fullmatch(profile.api_base):
        raise Invalid(f"{profile.api_base!r} is not an address, such as http://127.0.0.1:8000/v1.")
    if profile.api_key_env and profile.key_id:
        raise Invalid("A model has one key: the variable's, or the one that the vault keeps. Leave one out.")
    prices = (profile.input_usd_per_million_tokens, profile.output_usd_per_million_tokens)
    if (prices[0] is None) != (prices[1] is None) or any(price is not None and price < 0 for price in prices):
        raise Invalid("Give both prices, of input and of output tokens, as 0 or more; or neither.")
    if any(number is not None and number < 1 for number in (profile.context_tokens, profile.max_output_tokens)):
        raise Invalid("A number of tokens is 1 or more.")
    if len(profile.extra) > MAX_PARAMETERS:
        raise Invalid(f"A model has at most {MAX_PARAMETERS} further parameters.")
    return replace(profile, api_key_env=checked_variable(profile.api_key_env))


def _known(state: ModelProfiles, name: str) -> AddedModel:
    known = state.find(name)
    if known is None:
        raise NotFound(f"No model with the name {name!r} was added. List them with: docsmith model list")
    return known


def _with(state: ModelProfiles, model: AddedModel) -> ModelProfiles:
    if state.find(model.profile.name) is None:
        return replace(state, models=(*state.models, model))
    same = model.profile.name
    return replace(state, models=tuple(model if one.profile.name == same else one for one in state.models))


def _clipped(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(replace(one, says=one.says[:MAX_CHARACTERS], mend=one.mend[:MAX_CHARACTERS]) for one in findings)
