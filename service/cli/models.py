"""``docsmith model``: add a model of a provider, try it, choose it for a kind of work."""

import getpass
import sys
from collections.abc import Sequence

import click

from eventstore import Metadata, load
from service.cli.output import DONE, FAILED, Output, table
from service.cli.parsing import COUNT, Choice, Group, Options
from service.cli.runtime import Runtime
from service.commands.models import add_model, choose_model, findings_of, profile_of, record_trial, remove_model
from service.domain.errors import Invalid, NotFound
from service.domain.model_profiles import WORKS, Finding
from service.ports.model import Model
from service.ports.model_probe import Probe, Tried, probe_model
from service.ports.model_provider import ModelProvider
from service.queries.models import INSTALLATION, read_profiles
from service.runtime.system import cli_actor
from service.streams import MODELS
from service.views.model_profiles import ModelView, state_of, view_models

model = Group("model")

SIGNS = {"works": "works  ", "fails": "FAILS  ", "unknown": "unknown"}


@model.command(
    "providers",
    does="list the providers, and what each needs",
    examples=["model providers"],
)
async def list_providers(runtime: Runtime, _options: Options, output: Output) -> int:
    providers = runtime.model_providers
    rows = [(one.id, one.title, one.example, one.api_key_env or "-", one.address or "-") for one in providers]
    head = ("PROVIDER", "NAME", "A MODEL", "VARIABLE OF ITS KEY", "AN ADDRESS")
    notes = "\n".join(f"{one.title}: {one.says}" for one in providers if one.says)
    output.result({"providers": providers}, f"{table(head, rows)}\n\n{notes}")
    return DONE


@model.command(
    "add",
    does="try a model of a provider, and add it under a name for jobs and settings",
    more="It asks on a terminal for what is left out. A model of the same name is replaced; one of the settings file"
    " wins over it. The trial costs some 10,000 tokens. Any running service uses the model at once.",
    examples=[
        "model add sonnet --provider anthropic --model claude-sonnet-5-5",
        "model add local --provider ollama --model qwen3:8b --address http://127.0.0.1:11434",
        "model add ours --provider azure --model OUR-DEPLOYMENT --address https://us.openai.azure.com"
        " --set api_version=2025-04-01-preview --enter-key",
    ],
)
@click.argument("name", metavar="NAME", help="the name that jobs and settings will give")
@click.option("--provider", metavar="PROVIDER", help="as docsmith model providers lists it")
@click.option("--model", metavar="MODEL", help="the model's name, as the provider has it")
@click.option("--address", metavar="URL", help="where the server is, for one of your own")
@click.option(
    "--key-env", metavar="VARIABLE", help="the variable that holds the key (default: the provider's usual one)"
)
@click.option(
    "--enter-key", is_flag=True, help="ask for the key, or read it from standard input, and keep it in the vault"
)
@click.option("--context-tokens", type=COUNT, metavar="N", help="tokens of a prompt and its reply together")
@click.option("--max-output-tokens", type=COUNT, metavar="N", help="the most tokens of a reply")
@click.option("--input-price", type=float, metavar="USD", help="US dollars for a million tokens that it reads")
@click.option("--output-price", type=float, metavar="USD", help="US dollars for a million tokens that it writes")
@click.option("--set", "parameters", multiple=True, metavar="NAME=VALUE", help="a further parameter of the provider")
@click.option("--untried", is_flag=True, help="add it without trying it")
async def add(runtime: Runtime, options: Options, output: Output) -> int:
    provider = _provider(runtime.model_providers, options.provider or _asked("Provider", "--provider"))
    wanted = options.model or _asked(f"Model, such as {provider.example}", "--model")
    address = options.address or (
        _asked(f"Address, such as {provider.address}", "--address") if provider.address else ""
    )
    key = _entered_key() if options.enter_key else ""
    values = {
        "api_base": address,
        "api_key_env": options.key_env or ("" if key else _usual_variable(provider, address)),
        "context_tokens": options.context_tokens,
        "max_output_tokens": options.max_output_tokens,
        "input_usd_per_million_tokens": options.input_price,
        "output_usd_per_million_tokens": options.output_price,
        **dict(_pair(text) for text in options.parameters),
    }
    profile = profile_of(provider, options.name, wanted, {name: value for name, value in values.items() if value != ""})
    findings: tuple[Finding, ...] = ()
    async with runtime.open_model(profile, key) as opened:
        if not options.untried:
            findings = findings_of(await _tried(opened, output))
    await add_model(runtime.store, runtime.secrets, profile, Metadata(actor=cli_actor()), key=key, findings=findings)
    says = state_of(findings) if findings else "A running service tries it now."
    hidden = [one for one in runtime.known_models() if one.name == profile.name and one.origin == "settings"]
    if hidden:
        says += " The settings file has a model of this name, and wins."
    output.result(
        {"name": profile.name, "model": profile.model, "findings": findings, "state": says},
        f"{profile.name} is added: {profile.model}. {says}",
    )
    works = not findings or any(one.ability == "word" and one.verdict == "works" for one in findings)
    return DONE if works else FAILED


@model.command(
    "list",
    does="list the models that jobs may name: of the settings, of the environment, and added",
    examples=["model list", "model list --json"],
)
async def show_list(runtime: Runtime, _options: Options, output: Output) -> int:
    views = view_models(runtime.known_models(), await read_profiles(runtime.store))
    rows = [
        (one.name, one.model, one.origin, one.address or "-", _key(one), ", ".join(one.used_for) or "-")
        for one in views
    ]
    head = ("NAME", "MODEL", "FROM", "ADDRESS", "KEY", "USED FOR")
    states = "\n".join(f"{one.name}: {one.state}" for one in views if one.state)
    shown = table(head, rows) if rows else "There is no model besides the builtin one. Add one: docsmith model add NAME"
    output.result({"models": views}, f"{shown}\n\n{states}" if states else shown)
    return DONE


@model.command(
    "test",
    does="try what a model can do: a word, a stream, tool calls, the order of messages, a long prompt",
    more="It costs some 10,000 tokens, and exits with 1 when the model does not answer.",
    examples=["model test sonnet"],
)
@click.argument("name", metavar="NAME", help="as docsmith model list shows it")
async def test(runtime: Runtime, options: Options, output: Output) -> int:
    known = {one.name for one in runtime.known_models()}
    if options.name not in known:
        raise NotFound(f"Model not found: {options.name}. List them with: docsmith model list")
    probe = await _tried(runtime.models.for_agent(options.name), output)
    added = (await load(runtime.store, MODELS, INSTALLATION)).state.find(options.name)
    if added is not None and added.profile.model == probe.model:
        await record_trial(runtime.store, added.profile, probe, Metadata(actor=cli_actor()))
    says = state_of(findings_of(probe))
    output.result({"name": options.name, "findings": findings_of(probe), "state": says}, says)
    return DONE if probe.answers else FAILED


@model.command(
    "choose",
    does="have an added model do jobs, or write answers, where the settings name none for it",
    examples=["model choose local --for assistant", "model choose --none --for agent"],
)
@click.argument("name", required=False, default="", metavar="[NAME]", help="as docsmith model list shows it")
@click.option("--for", "work", required=True, type=Choice(WORKS), help="agent for jobs, assistant for answers")
@click.option("--none", is_flag=True, help="choose none, as at the beginning")
async def choose(runtime: Runtime, options: Options, output: Output) -> int:
    if bool(options.name) == options.none:
        raise Invalid("Name a model, or give --none.")
    await choose_model(runtime.store, options.work, options.name, Metadata(actor=cli_actor()))
    setting = getattr(runtime.settings, options.work).model
    wins = f" The settings name {setting}, and win." if setting else ""
    says = f"{options.name or 'No model'} is chosen for the {options.work}.{wins}"
    output.result({"for": options.work, "name": options.name}, says)
    return DONE


@model.command("remove", does="remove an added model, and forget its key", examples=["model remove local"])
@click.argument("name", metavar="NAME", help="as docsmith model list shows it")
async def remove(runtime: Runtime, options: Options, output: Output) -> int:
    await remove_model(runtime.store, runtime.secrets, options.name, Metadata(actor=cli_actor()))
    output.result({"name": options.name, "removed": True}, f"{options.name} is removed")
    return DONE


async def _tried(opened: Model, output: Output) -> Probe:
    def show(one: Tried) -> None:
        output.line(f"{SIGNS[one.verdict]}  {one.says}" + (f"\n         → {one.mend}" if one.mend else ""))

    return await probe_model(opened, on_tried=show)


def _provider(providers: Sequence[ModelProvider], name: str) -> ModelProvider:
    for one in providers:
        if name.lower() in (one.id, one.title.lower()):
            return one
    raise Invalid(f"The provider {name!r} is not known. Name one of {', '.join(one.id for one in providers)}.")


def _usual_variable(provider: ModelProvider, address: str) -> str:
    """Return the provider's own variable, but none for a server at an address that is not the provider's."""
    return provider.api_key_env if provider.address or not address else ""


def _asked(what: str, option: str) -> str:
    """Return what is typed on the terminal. Raise Invalid where there is none."""
    if not sys.stdin.isatty():
        raise Invalid(f"{what} is missing. Give {option}.")
    return str(click.prompt(what, err=True)).strip()


def _entered_key() -> str:
    key = getpass.getpass("Key (it is not shown): ") if sys.stdin.isatty() else sys.stdin.readline()
    if not key.strip():
        raise Invalid("No key was entered.")
    return key.strip()


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise Invalid(f"{text!r} is not NAME=VALUE.")
    return name.strip(), value.strip()


def _key(view: ModelView) -> str:
    return {"": "-", "vault": "in the vault"}.get(view.key, view.key)
