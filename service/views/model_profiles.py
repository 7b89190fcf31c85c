"""Models that jobs may name, as operators see them."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Struct

from service.domain.model_profiles import AddedModel, Finding, ModelProfiles, Work
from service.ports.model_provider import KnownModel, Origin
from service.views.fields import described


class ModelView(Struct, frozen=True, rename="camel"):
    """A model, where it comes from, and what it was found to do."""

    name: Annotated[str, described("The name that jobs and settings give.")]
    model: Annotated[str, described("The library's name of the model.")]
    origin: Annotated[
        Origin, described("`settings`, `environment` for one that a key alone gives, or `added` while it runs.")
    ]
    address: Annotated[str, described("The address of its server; empty for the provider's own.")]
    key: Annotated[str, described("The variable that holds its key, `vault`, or empty.")]
    used_for: Annotated[tuple[Work, ...], described("The work that it does where a job names none.")]
    state: Annotated[str, described("A sentence that says what works.")]
    findings: Annotated[tuple[Finding, ...], described("What it was found to do, each as it was tried.")]
    hides_added: Annotated[bool, described("One of the same name was added: the settings win over it.")] = False


def view_models(known: Iterable[KnownModel], profiles: ModelProfiles) -> list[ModelView]:
    """Return a view of each model that has a name, and of added ones that cannot be used, or not yet."""
    left, views = {one.profile.name: one for one in profiles.models}, []
    for one in known:
        if one.origin == "added" and (added := left.pop(one.name, None)) is not None:
            views.append(_view_added(added, one.used_for))
        else:
            left.pop(one.name, None)
            where = (one.name, one.model, one.origin, one.api_base)
            views.append(ModelView(*where, "", one.used_for, "", (), one.hides_added))
    return [*views, *(_view_added(added, ()) for added in left.values())]


def _view_added(added: AddedModel, used_for: tuple[Work, ...]) -> ModelView:
    profile = added.profile
    return ModelView(
        profile.name,
        profile.model,
        "added",
        profile.api_base,
        "vault" if profile.key_id else profile.api_key_env,
        used_for,
        state_of(added.findings, is_tried=added.tried_at is not None),
        added.findings,
    )


def state_of(findings: tuple[Finding, ...], *, is_tried: bool = True) -> str:
    """Return what works, in a sentence."""
    if not is_tried:
        return "It is being tried."
    works = {one.ability for one in findings if one.verdict == "works"}
    if "word" not in works:
        return "It does not answer."
    if "tool_call" not in works:
        return "It writes answers. Jobs of the agent do not work with it."
    return "It writes answers and does jobs."
