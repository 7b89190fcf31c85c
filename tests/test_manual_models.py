"""The lines of the manual's page about models: the settings accept them, and litellm knows each provider."""

import re
from pathlib import Path

import pytest
from msgspec.structs import asdict

from service.adapters.builtin.answer import BuiltinAnswer
from service.adapters.models.configured import ConfiguredModels, ModelSettings
from service.adapters.models.library import load
from service.adapters.models.providers import PROVIDERS as PROVIDERS_TO_ADD
from service.runtime.settings.settings_file import load_settings

PAGE = Path(__file__).parent.parent / "service" / "manual" / "models.md"
PROVIDERS = {
    "Anthropic": ["anthropic", "anthropic"],
    "OpenAI": ["openai"],
    "Gemini": ["gemini"],
    "Azure OpenAI": ["azure"],
    "OpenRouter": ["openrouter"],
    "Ollama": ["ollama_chat"],
    "vLLM": ["hosted_vllm"],
    "LM Studio and llama.cpp": ["lm_studio", "openai"],
    "Another server, by address": ["openai"],
    "Mistral": ["mistral"],
    "Groq": ["groq"],
    "DeepSeek": ["deepseek"],
    "xAI": ["xai"],
    "Amazon Bedrock": ["bedrock"],
}
OTHERS = ("How the lines work", "For a public site")
"""Sections whose lines are about something else than one provider."""
BUILTIN = BuiltinAnswer()
UNPRICED = {"OpenRouter", "vLLM", "LM Studio and llama.cpp"}
"""Providers whose prices litellm does not know, as the page says."""


def sections() -> dict[str, str]:
    """The lines of each section for the settings file."""
    found = {}
    for section in PAGE.read_text("utf-8").split("\n## ")[1:]:
        if blocks := re.findall(r"^```toml\n(.*?)^```$", section, re.MULTILINE | re.DOTALL):
            found[section.partition("\n")[0]] = "\n".join(blocks)
    return found


def settings_in(lines: str, folder: Path):
    file = folder / "docsmith.toml"
    file.write_text(lines)
    return load_settings(file, {})


def test_each_provider_of_the_page_is_checked():
    assert set(sections()) == {*PROVIDERS, *OTHERS}


@pytest.mark.parametrize("section", OTHERS)
def test_settings_accept_the_lines_of_a_section(section, tmp_path):
    settings_in(sections()[section], tmp_path)


@pytest.mark.parametrize("section", PROVIDERS)
async def test_lines_for_a_provider_set_its_models_up(section, tmp_path):
    settings = settings_in(sections()[section], tmp_path)
    library = await load()
    resolved, keys = [], {}
    for model in settings.models.values():
        resolved.append(library.module.get_llm_provider(model=model.model, api_base=model.api_base or None)[1])
        keys[model.api_key_env] = "sk-1"
    assert resolved == PROVIDERS[section]
    chosen = ConfiguredModels(
        [ModelSettings(alias=alias, **asdict(model)) for alias, model in settings.models.items()],
        builtin_agent=BUILTIN,
        builtin_assistant=BUILTIN,
        planner=settings.assistant.planner,
        env=keys,
    )
    await chosen.prepare()  # rehearses a call of each, without network
    for alias in settings.models:
        assert (await chosen.for_agent(alias).price() is None) == (section in UNPRICED)
    await chosen.close()


PARAGRAPHS = {
    "llama-cpp": "LM Studio and llama.cpp", "lm-studio": "LM Studio and llama.cpp",
    "other": "Another server, by address",
}  # fmt: skip


@pytest.mark.parametrize("provider", PROVIDERS_TO_ADD, ids=lambda one: one.id)
async def test_each_provider_to_add_has_a_paragraph_and_is_known(provider):
    assert PARAGRAPHS.get(provider.id, provider.title) in sections()
    library = await load()
    model = f"{provider.prefix}{provider.example}"
    known = library.module.get_llm_provider(model=model, api_base=provider.address or None)[1]
    assert f"{known}/" == provider.prefix
