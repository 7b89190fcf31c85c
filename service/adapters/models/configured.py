"""The models that the settings name, and what is used when they name none."""

import asyncio
from collections.abc import Mapping, Sequence

from msgspec import Struct

from service.adapters.models.errors import Retries
from service.adapters.models.fallback import FallbackModel
from service.adapters.models.litellm_model import LitellmModel
from service.adapters.models.model_settings import ModelSettings
from service.domain.errors import Invalid, NotFound, ServiceError
from service.domain.model_profiles import Work
from service.ports.capabilities import Capabilities, LearnedHere
from service.ports.model import Model
from service.ports.model_provider import KnownModel

__all__ = ["ConfiguredModels", "LitellmModel", "ModelSettings"]

BUILTIN = "builtin"
OFF = "off"
"""In place of a planner: no search is planned."""


class _Usual(Struct, frozen=True):
    """The models that a key in the environment gives without any settings."""

    api_key_env: str
    models: Mapping[str, str]
    """By alias; the names are those of the price table of the litellm that we pin."""


# The first whose key is there. OpenAI's are the newest that take tools in chat completions: from gpt-5.4 on litellm
# must use the Responses API for that, whose stream we do not read ourselves.
_USUAL = (
    _Usual("ANTHROPIC_API_KEY", {"sonnet": "anthropic/claude-sonnet-5-5", "opus": "anthropic/claude-opus-5-5"}),
    _Usual("OPENAI_API_KEY", {"sonnet": "openai/gpt-5.2", "opus": "openai/gpt-5.2"}),
)

_SOON_ANOTHER = Retries(tries=2, total_seconds=10.0)
"""Retries of a model that has a fallback: to ask the fallback is better than to wait long."""

ALWAYS = ("sonnet", "opus")
"""Aliases that exist whatever the settings say, since callers of the agent API name them: those that the settings do
not have mean the agent's own model.
"""


class AddedSettings(Struct, frozen=True):
    """The models that operators have added while the service ran. The settings win over them."""

    models: Sequence[ModelSettings] = ()
    agent: str = ""
    """The one that was chosen for jobs; empty: none was."""
    assistant: str = ""
    agent_else: str = ""
    """The one that does jobs where neither settings nor environment name a model; empty for none."""
    assistant_else: str = ""


NONE_ADDED = AddedSettings()


class ConfiguredModels:
    """Aliases to models.

    ``agent`` and ``assistant`` are the settings' defaults: an alias, ``builtin``, or a litellm model string as it is.
    Without them the default is the one that was chosen of those ``added``; else ``sonnet`` if that is a real model, the
    first that is configured, the first that was added and can do the work, builtin.
    ``planner`` is one of these, too; without it, or as ``off``, no search is planned: a plan from a large model is
    rarely there in time, and the reader waits for it.

    Raises:
        NotFound: a default or a fallback is no alias (``code`` ``unknown_model``).
        Invalid: a planner or a fallback is builtin, or a fallback leads back to its own model (``bad_settings``).
    """

    def __init__(
        self,
        settings: Sequence[ModelSettings] = (),
        *,
        builtin_agent: Model,
        builtin_assistant: Model,
        env: Mapping[str, str],
        agent: str = "",
        assistant: str = "",
        planner: str = "",
        added: AddedSettings = NONE_ADDED,
        capabilities: Capabilities | None = None,
    ) -> None:
        self._builtin_agent, self._builtin_assistant = builtin_agent, builtin_assistant
        self._env = env
        self._capabilities = LearnedHere() if capabilities is None else capabilities
        usual, given = {one.alias: one for one in _usual(env)}, {one.alias: one for one in settings}
        self._given, self._added = frozenset(given), frozenset(one.alias for one in added.models)
        own = usual | given
        first = "sonnet" if "sonnet" in own else next(iter(own), "")
        self._settings = own | {one.alias: one for one in added.models if one.alias not in given}
        self._models: dict[str, LitellmModel] = {}
        self._with_fallbacks: dict[str, FallbackModel] = {}
        for alias in self._settings:
            self._chain(alias)
        self._agent = self._default(agent or added.agent or first or added.agent_else or BUILTIN)
        self._assistant = self._default(assistant or added.assistant or first or added.assistant_else or BUILTIN)
        self._planner = OFF if planner in ("", OFF) else self._default(planner)
        if self._planner != OFF and self._is_builtin(self._planner):
            raise Invalid(
                f"the planner cannot be {planner!r}, which is builtin and plans nothing; name another model or {OFF!r}",
                code="bad_settings",
            )

    def _default(self, alias: str) -> str:
        if "/" in alias and alias not in self._settings:
            self._settings[alias] = ModelSettings(alias=alias, model=alias)
        self._resolve(alias)
        return alias

    def for_agent(self, alias: str) -> Model:
        if not alias or (alias in ALWAYS and alias not in self._settings):
            alias = self._agent
        return self._model(alias) or self._builtin_agent

    def for_assistant(self) -> Model:
        return self._model(self._assistant) or self._builtin_assistant

    def for_planning(self) -> Model | None:
        if self._planner == OFF or self._is_builtin(self._assistant):
            return None
        return self._model(self._planner)

    def builtin_for_assistant(self) -> Model:
        return self._builtin_assistant

    def _model(self, alias: str) -> Model | None:
        """Return the model behind an alias, with its fallbacks; None: builtin."""
        model = self._resolve(alias)
        if model is None or not model.settings.fallback:
            return model
        if alias not in self._with_fallbacks:
            chain = [self._resolve(each) for each in self._chain(alias)]
            self._with_fallbacks[alias] = FallbackModel([each for each in chain if each is not None])
        return self._with_fallbacks[alias]

    def _chain(self, alias: str) -> list[str]:
        """The alias, its fallback, that one's fallback, and so on."""
        chain = [alias]
        while alias in self._settings and (fallback := self._settings[alias].fallback):
            if fallback in chain:
                circle = " to ".join([*chain[chain.index(fallback) :], fallback])
                raise Invalid(f"the fallbacks of the models lead in a circle: {circle}", code="bad_settings")
            if self._is_builtin(alias):
                raise Invalid(f"the model {alias!r} is builtin and needs no fallback", code="bad_settings")
            if fallback not in self._settings and fallback not in (BUILTIN, *ALWAYS):
                raise NotFound(
                    f"the fallback of the model {alias!r}, {fallback!r}, is not in the settings", code="unknown_model"
                )
            if self._is_builtin(fallback):
                raise Invalid(
                    f"the fallback of the model {alias!r} cannot be {fallback!r}, which is builtin and cannot go on "
                    "with what a language model began",
                    code="bad_settings",
                )
            chain.append(alias := fallback)
        return chain

    def _is_builtin(self, alias: str) -> bool:
        spec = self._settings.get(alias)
        return spec is None or spec.model == BUILTIN or spec.model.startswith(f"{BUILTIN}/")

    def _resolve(self, alias: str) -> LitellmModel | None:
        """The model of an alias alone; None: builtin."""
        spec = self._settings.get(alias)
        if spec is None:
            if alias == BUILTIN or alias in ALWAYS:
                return None
            raise NotFound(
                f"there is no model {alias!r} in the settings, or among those that were added", code="unknown_model"
            )
        if self._is_builtin(alias):
            return None
        if alias not in self._models:
            retries = _SOON_ANOTHER if spec.fallback else Retries()
            self._models[alias] = LitellmModel(spec, env=self._env, retries=retries, capabilities=self._capabilities)
        return self._models[alias]

    @property
    def aliases(self) -> tuple[str, ...]:
        """All that ``for_agent`` takes."""
        return tuple(dict.fromkeys((*self._settings, *ALWAYS, BUILTIN)))

    def known(self) -> Sequence[KnownModel]:
        """Return the models that have a name, with where each comes from: first those of the settings."""
        work: Mapping[Work, str] = {"agent": self._agent, "assistant": self._assistant}
        return [
            KnownModel(
                alias,
                spec.model,
                "settings" if alias in self._given else "added" if alias in self._added else "environment",
                spec.api_base,
                used_for=tuple(one for one, name in work.items() if name == alias),
                hides_added=alias in self._given and alias in self._added,
            )
            for alias, spec in sorted(self._settings.items(), key=lambda item: item[0] not in self._given)
        ]

    async def refused(self) -> dict[str, tuple[str, ...]]:
        """Return the parts of requests that each model's server refuses, by alias; without those that refuse none."""
        found: dict[str, tuple[str, ...]] = {}
        for alias in self._settings:
            model = self._resolve(alias)
            if model is not None and (parts := await model.refused()):
                found[alias] = tuple(sorted(parts))
        return found

    async def prepare(self) -> None:
        """Import litellm, if it is needed, and rehearse a call of each model.

        Raises:
            NotFound: litellm knows no provider for a model (``code`` ``unknown_model``).
        """
        refused: ServiceError | None = None
        for alias in self._settings:
            try:
                model = self._resolve(alias)
                if model is not None:
                    await model.prepare()
            except ServiceError as error:  # one wrong name must not leave the others cold
                refused = refused or error
        if refused is not None:
            raise refused

    async def close(self) -> None:
        await asyncio.gather(*(model.close() for model in self._models.values()))

    def describe(self) -> str:
        """For the start-up line: the models in use, and the keys that are missing."""
        agent, assistant = self.for_agent("").name, self.for_assistant().name
        models = filter(None, map(self._resolve, self._settings))
        missing = sorted({model.settings.api_key_env for model in models if model.key_is_missing})
        line = f"agent {agent}{self._else(self._agent)}, assistant {assistant}{self._else(self._assistant)}"
        planner = self.for_planning()
        if planner is not None and self._planner != self._assistant:
            line += f", planner {planner.name}{self._else(self._planner)}"
        return f"{line}; not set: {', '.join(missing)}" if missing else line

    def _else(self, alias: str) -> str:
        names = [self._settings[each].model for each in self._chain(alias)[1:]]
        return f" (else {', else '.join(names)})" if names else ""


def _usual(env: Mapping[str, str]) -> list[ModelSettings]:
    for usual in _USUAL:
        if env.get(usual.api_key_env):
            return [
                ModelSettings(alias=alias, model=model, api_key_env=usual.api_key_env)
                for alias, model in usual.models.items()
            ]
    return []
