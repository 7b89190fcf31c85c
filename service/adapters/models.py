"""The models that the settings name, and what is used when they name none."""

import asyncio
from collections.abc import Mapping, Sequence

from msgspec import Struct

from service.adapters.litellm_model import LitellmModel, ModelSettings
from service.domain.errors import NotFound, ServiceError
from service.ports.model import Model

__all__ = ["ConfiguredModels", "LitellmModel", "ModelSettings"]

BUILTIN = "builtin"


class _Usual(Struct, frozen=True):
    """What a key in the environment gives without any settings."""

    api_key_env: str
    models: Mapping[str, str]
    """By alias; the names are those of the price table of the litellm that we pin."""


# The first whose key is there. OpenAI's are the newest that take tools in chat completions: from gpt-5.4 on litellm
# must use the Responses API for that, whose stream we do not read ourselves.
_USUAL = (
    _Usual("ANTHROPIC_API_KEY", {"sonnet": "anthropic/claude-sonnet-5-5", "opus": "anthropic/claude-opus-5-5"}),
    _Usual("OPENAI_API_KEY", {"sonnet": "openai/gpt-5.2", "opus": "openai/gpt-5.2"}),
)

ALWAYS = ("sonnet", "opus")
"""Aliases that exist whatever the settings say: callers of the agent API name them."""


class ConfiguredModels:
    """Aliases to models.

    ``agent`` and ``assistant`` are the settings' defaults: an alias, ``builtin``, or a litellm model string as it is.
    Without them the default is ``sonnet`` if that is a real model, else the first that is configured, else builtin.

    Raises:
        NotFound: a default is no alias (``code`` ``unknown_model``).
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
    ) -> None:
        self._builtin_agent, self._builtin_assistant = builtin_agent, builtin_assistant
        self._env = env
        self._settings = {usual.alias: usual for usual in _usual(env)} | {spec.alias: spec for spec in settings}
        self._models: dict[str, LitellmModel] = {}
        first = "sonnet" if "sonnet" in self._settings else next(iter(self._settings), BUILTIN)
        self._agent = self._default(agent or first)
        self._assistant = self._default(assistant or first)

    def _default(self, alias: str) -> str:
        if "/" in alias and alias not in self._settings:
            self._settings[alias] = ModelSettings(alias=alias, model=alias)
        self._resolve(alias)
        return alias

    def for_agent(self, alias: str) -> Model:
        return self._resolve(alias or self._agent) or self._builtin_agent

    def for_assistant(self) -> Model:
        return self._resolve(self._assistant) or self._builtin_assistant

    def _resolve(self, alias: str) -> LitellmModel | None:
        """The model behind an alias; None: builtin."""
        spec = self._settings.get(alias)
        if spec is None:
            if alias == BUILTIN or alias in ALWAYS:
                return None
            raise NotFound(f"there is no model {alias!r} in the settings", code="unknown_model")
        if spec.model == BUILTIN or spec.model.startswith(f"{BUILTIN}/"):
            return None
        if alias not in self._models:
            self._models[alias] = LitellmModel(spec, env=self._env)
        return self._models[alias]

    @property
    def aliases(self) -> tuple[str, ...]:
        """All that ``for_agent`` takes."""
        return tuple(dict.fromkeys((*self._settings, *ALWAYS, BUILTIN)))

    @property
    def needs_litellm(self) -> bool:
        """Whether any alias is more than builtin."""
        return any(self._resolve(alias) is not None for alias in self._settings)

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
        line = f"agent {agent}, assistant {assistant}"
        return f"{line}; not set: {', '.join(missing)}" if missing else line


def _usual(env: Mapping[str, str]) -> list[ModelSettings]:
    for usual in _USUAL:
        if env.get(usual.api_key_env):
            return [
                ModelSettings(alias=alias, model=model, api_key_env=usual.api_key_env)
                for alias, model in usual.models.items()
            ]
    return []
