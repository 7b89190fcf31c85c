"""``docsmith doctor``: the mistakes that people make, each with what mends it."""

import asyncio
import importlib.util
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Set
from datetime import datetime, timedelta

import click

from eventstore import EventStoreError
from service.cli.operate.damage import described
from service.cli.operate.instance_findings import look_at_instances
from service.cli.operate.surroundings import Finding, Level, look_around, look_at_settings
from service.cli.operate.wrapping_findings import look_at_wrapping
from service.cli.output import DONE, FAILED, Output, named
from service.cli.parsing import Options, command
from service.cli.runtime import Program, Runtime
from service.domain.errors import ServiceError
from service.domain.model import is_builtin
from service.integrity.checkpoints import KEPT
from service.integrity.log_place import MOVED_AWAY, log_place
from service.ports.docs_source import Source
from service.ports.model_probe import Ability, Probe, probe_model
from service.queries.access.keys import list_keys
from service.queries.incoming import project_with_secret
from service.queries.model_failures import find_failing_model
from service.queries.organizations import list_organizations
from service.queries.payments import payment_of, remedy_of
from service.queries.projects import context_sources, list_projects, source_of
from service.queries.sites import get_site, list_sites
from service.retrieval.index.build import is_whole
from service.runtime.data_folder import is_data_folder
from service.runtime.settings.settings import Settings
from service.runtime.settings.settings_file import BadSettings
from service.runtime.system import now
from service.views.access.keys import KeyView
from service.views.projects import ProjectView

REACH_SECONDS = 20.0
"""For a repository to answer."""
ASK_SECONDS = 60.0
"""For each of the calls that try a model."""
SOON = timedelta(days=14)
"""For people to change the key of a website's pages."""
RECENT = 100_000
"""Events whose keys are looked for: the newest are those that an old vault lacks."""
_CONCERNS: dict[str, tuple[Level, str]] = {
    "rights": ("note", "docsmith store roles log   # SQL for an administrator of the database"),
    "cluster": ("wrong", "docsmith vault wrap   # or DOCSMITH_VAULT on another server"),
    "cluster_unknown": ("note", "docsmith vault wrap   # unless it is on another server"),
    "archives": ("wrong", "docsmith vault wrap   # or a server without them"),
    "archives_unknown": ("note", "docsmith vault wrap   # unless that server keeps none"),
}
SIGNS = {"ok": "ok   ", "note": "note ", "wrong": "WRONG"}


@command(
    "doctor",
    more="It changes nothing, and exits with 1 when something is wrong.",
    examples=["doctor", "doctor --ask-models --json"],
    reads_settings=True,
)
@click.option("--ask-models", is_flag=True, help="try what each model in use can do, with some 10,000 tokens")
async def examine(options: Options, output: Output, program: Program, read_settings: Callable[[], Settings]) -> int:
    findings = await asyncio.to_thread(lambda: list(look_around(options.data, options.config, now())))
    try:
        settings = read_settings()
    except BadSettings as error:
        findings.append(Finding("settings", "wrong", str(error), "docsmith config check"))
    else:
        findings += await asyncio.to_thread(lambda: list(look_at_settings(options.data, settings)))
        if is_data_folder(options.data):
            findings += await _opened(options, program, settings)
    wrong = [finding for finding in findings if finding.level == "wrong"]
    output.result(
        {"findings": findings, "wrong": len(wrong)}, "\n".join(map(_shown, findings)) + "\n" + _summary(wrong)
    )
    return FAILED if wrong else DONE


def _shown(finding: Finding) -> str:
    line = f"{SIGNS[finding.level]}  {finding.name}: {finding.says}"
    return f"{line}\n         → {finding.mend}" if finding.mend else line


def _summary(wrong: list[Finding]) -> str:
    if not wrong:
        return "\nNothing is wrong."
    return f"\n{len(wrong)} {'thing is' if len(wrong) == 1 else 'things are'} wrong."


async def _opened(options: Options, program: Program, settings: Settings) -> list[Finding]:
    try:
        async with program.open(options.data, settings) as runtime:
            return [finding async for finding in _look_inside(runtime, program, ask_models=options.ask_models)]
    except (ServiceError, EventStoreError, OSError, sqlite3.Error) as error:
        found = described(error, options.data)
        return [Finding("data", "wrong", found.says, found.remedy)]


async def _look_inside(runtime: Runtime, program: Program, *, ask_models: bool) -> AsyncIterator[Finding]:
    async for finding in _look_at_log(runtime):
        yield finding
    organizations, projects = await list_organizations(runtime.views), await list_projects(runtime.views)
    if not organizations:
        yield Finding("organization", "note", "There is none yet.", "docsmith organization create --name NAME")
    elif not projects:
        yield Finding(
            "project",
            "note",
            "There is none yet.",
            "docsmith project create --name NAME --repository URL --domain SITE",
        )
    if not log_place(runtime.data).is_local:
        async with runtime.join() as instances:
            for finding in look_at_instances(instances.others(), runtime.hosted_place, projects):
                yield finding
    public = {site.view.domain for site in await list_sites(runtime.views) if site.view.public}
    for finding in _look_at_keys(await list_keys(runtime.views), projects, public):
        yield finding
    for project in projects:
        async for finding in _look_at_project(runtime, program, project):
            yield finding
    async for finding in _look_at_public_sites(runtime):
        yield finding
    async for finding in _look_at_models(runtime, ask=ask_models):
        yield finding


async def _look_at_public_sites(runtime: Runtime) -> AsyncIterator[Finding]:
    sites = [one.view for one in await list_sites(runtime.views) if one.view.public]
    if not sites:
        return
    names = named([site.domain for site in sites])
    try:
        payment = await payment_of(runtime.models, runtime.settings.cost_bounds)
    except ServiceError as error:
        yield Finding(
            "public sites", "wrong", f"{names}: {error}", '[models.NAME] in docsmith.toml, or model = "builtin"'
        )
        return
    if payment.problem:
        says = f"{names}: {payment.problem} So the builtin model answers there without a key."
        yield Finding("public sites", "wrong", says, remedy_of(payment))
    else:
        yield Finding("public sites", "ok", f"Anyone may ask {names} without a key.")
    for site in sites:
        if not site.origins:
            says = f"No web page may ask {site.domain} without a key, since no origin is listed."
            mend = f"docsmith site update {site.domain} --origin https://YOUR.SITE"
            yield Finding("public sites", "note", says, mend)


async def _look_at_log(runtime: Runtime) -> AsyncIterator[Finding]:
    if not (runtime.data / KEPT).exists():
        says = "Nothing is known to be kept elsewhere that the log could be compared with: were it exchanged together"
        says += " with the key that signs it, no one would notice."
        yield Finding("checkpoint", "note", says, "docsmith audit checkpoint --output FILE   # and keep FILE elsewhere")
    last = await runtime.store.read_all(limit=1, backwards=True, after=0)
    if last and last[0].recorded_at > now():
        yield Finding(
            "clock", "wrong", f"The log's last event is of {last[0].recorded_at:%Y-%m-%d %H:%M} UTC, in the future.",
            "sudo timedatectl set-ntp true",
        )  # fmt: skip
    after = (last[0].position if last else 0) - RECENT
    place = log_place(runtime.data)
    lost = await asyncio.to_thread(place.subjects_without_keys, after=max(after, 0))
    if lost:
        yield Finding(
            "keys", "note", f"The vault is older than the log, and cannot decrypt {named(lost)}.",
            f"docsmith restore BACKUP --vault NEWER_VAULT --data {runtime.data}-2",
        )  # fmt: skip
    damaged = await asyncio.to_thread(place.damaged_texts, after=max(after, 0))
    if damaged:
        yield Finding(
            "texts", "wrong", f"Damaged, so their texts cannot be read: events {named([str(one) for one in damaged])}.",
            f"docsmith restore BACKUP --vault VAULT --data {runtime.data}-2   # if the backup still has them",
        )  # fmt: skip
    if (held := await asyncio.to_thread(place.held)) is not None:
        mend = (
            "docsmith store copy FROM TO --move   # repeat it, or use that folder"
            if held == MOVED_AWAY
            else f"docsmith audit accept-loss --reason TEXT --data {runtime.data}   # with all instances stopped"
        )
        yield Finding("log", "wrong", f"Nothing is appended: {held}.", mend)
    for concern in await asyncio.to_thread(place.concerns):
        level, mend = _CONCERNS[concern.kind]
        yield Finding(concern.kind, level, concern.says, mend)
    for finding in await asyncio.to_thread(lambda: list(look_at_wrapping(place, runtime.settings.vault, now()))):
        yield finding
    if any(status.lag and status.failed is None for status in runtime.views.status()):
        await runtime.views.catch_up()  # the service has recorded something just now
    for status in runtime.views.status():
        if status.failed is not None or status.lag:
            says = status.failed or f"It is {status.lag} events behind."
            yield Finding(
                f"view {status.name}", "wrong", says, f"rm {runtime.data / 'views.db'}*   # with the service stopped"
            )


def _look_at_keys(keys: list[KeyView], projects: list[ProjectView], public: Set[str]) -> list[Finding]:
    """Return findings about keys; ``public``: the sites that need none.

    Where there was a key and none is left, programs that used it are refused; where there never was one, nothing is
    missing to those who use the dashboard.
    """
    found = []
    good = [key for key in keys if key.status == "in_force"]
    if not any(key.kind == "admin" for key in good):
        level: Level = "wrong" if any(key.kind == "admin" for key in keys) else "note"
        found.append(Finding("admin key", level, "None is in force.", "docsmith key create --kind admin"))
    for project in projects:
        if project.domain not in public and not any(project.domain in key.domains for key in good):
            mend = f"docsmith key create --kind assistant --domain {project.domain}"
            level = "wrong" if any(project.domain in key.domains for key in keys) else "note"
            found.append(Finding("assistant key", level, f"None in force serves {project.domain}.", mend))
    for key in good:
        if key.use == "open":
            mend = f"docsmith key update {key.id} --origin https://YOUR.SITE"
            found.append(Finding("key", "note", f"Every website may use {key.name!r} (…{key.last_four}).", mend))
        if key.use == "browser" and _ends_soon(key):
            says = f"Pages with the key {key.name!r} (…{key.last_four}) cannot ask from {key.expires_at} on."
            mend = f"docsmith key create --kind assistant --domain {key.domains[0]} --origin '{key.allowed_origins[0]}'"
            found.append(Finding("key", "note", says, mend))
        if key.use == "browser" and not key.reader_tokens:
            says = f"Pages may use {key.name!r} (…{key.last_four}) without a reader token, and so may copies of it."
            found.append(Finding("key", "note", says, f"docsmith key update {key.id} --reader-tokens"))
        if key.kind == "admin" and key.expires_at is None:
            says = f"The admin key {key.name!r} (…{key.last_four}) never expires."
            found.append(Finding("key", "note", says, "docsmith key create --kind admin --expires-days 90"))
    return found


def _ends_soon(key: KeyView) -> bool:
    """Return whether pages need another key soon."""
    return key.expires_at is not None and datetime.fromisoformat(key.expires_at) < now() + SOON


async def _look_at_code_host(runtime: Runtime, project: ProjectView) -> AsyncIterator[Finding]:
    """Yield what the token lacks there, and whether comments on pull requests can reach the agent."""
    name, agent = f"code host of {project.name}", runtime.settings.agent
    try:
        async with asyncio.timeout(REACH_SECONDS):
            checked = await runtime.code_hosts[project.code_host].check_repository(source_of(project))
    except TimeoutError:
        yield Finding(name, "wrong", "Its API does not answer.", f"docsmith project show {project.domain}")
    except ServiceError as error:
        yield Finding(name, "wrong", str(error), f"docsmith project show {project.domain}")
    else:
        for warning in checked.warnings:
            yield Finding(name, "note", warning, f"docsmith project show {project.domain}")
        if not checked.warnings:
            yield Finding(name, "ok", "Pull requests can be opened.")
    if agent.mention and agent.comment_poll_minutes == 0:
        _, secret = await project_with_secret(runtime.store, runtime.views, project.id)
        if secret is None:
            says = "Comments on pull requests are not read: there is no webhook, and polling is off."
            yield Finding(name, "note", says, f"docsmith webhook incoming {project.domain}")


async def _look_at_project(runtime: Runtime, program: Program, project: ProjectView) -> AsyncIterator[Finding]:
    for variable in filter(None, (project.git_token_env, project.github_app_key_env)):
        if not os.environ.get(variable):
            says = f"The variable {variable}, which holds its token, is not set."
            yield Finding(f"project {project.name}", "wrong", says, f"export {variable}=…")
    yield await _look_at_repository(runtime, program, project)
    if project.code_host not in ("local", "website"):
        async for finding in _look_at_code_host(runtime, project):
            yield finding
    for source in context_sources(project.id, project.contexts):
        yield await _look_at_context(runtime, project, source)
    yield await _look_at_index(runtime, project)


async def _look_at_repository(runtime: Runtime, program: Program, project: ProjectView) -> Finding:
    name, place = f"project {project.name}", runtime.hosted_place
    if project.code_host == "local" and not place.is_here:
        return Finding(name, "ok", "Its repository is on the instance that is home to the embedded code host.")
    hosted = place.root / f"{project.id}.git"
    try:
        async with asyncio.timeout(REACH_SECONDS):
            if project.code_host != "local":
                await runtime.docs.default_branch(source_of(project))
            elif damage := (await asyncio.to_thread(program.find_damages, [hosted])).get(hosted.name):
                mend = f"docsmith restore BACKUP.tar --only {project.id} --data {runtime.data}"
                return Finding(name, "wrong", f"{hosted} is damaged: {damage}.", mend)
    except TimeoutError:
        return Finding(name, "wrong", f"{project.repository} does not answer.", f"git ls-remote {project.repository}")
    except (ServiceError, OSError) as error:
        mend = f"git ls-remote {project.repository}"
        return Finding(name, "wrong", f"{project.repository}: {error}", mend)
    return Finding(name, "ok", f"{project.repository} answers.")


async def _look_at_index(runtime: Runtime, project: ProjectView) -> Finding:
    name, mend = f"index {project.domain}", f"docsmith index {project.domain}"
    site = await get_site(runtime.views, project.domain)
    failure = site.view.failure.message if site and site.view.failure else ""
    if site is None or site.view.commit is None:
        if site is not None and site.view.index_wanted and not failure:
            return Finding(name, "note", "There is none yet: the service makes it.", "docsmith serve")
        return Finding(name, "wrong", f"There is none yet. {failure}".rstrip(), mend)
    if site.file and not await asyncio.to_thread(is_whole, runtime.data / "index" / project.domain / site.file):
        return Finding(name, "wrong", "It is gone, or damaged.", mend)
    if site.is_behind:
        return Finding(name, "note", f"It is old: {failure or 'A newer one is wanted, and not made yet.'}", mend)
    return Finding(name, "ok", f"{site.view.pages} pages.")


async def _look_at_context(runtime: Runtime, project: ProjectView, source: Source) -> Finding:
    name, mend = f"context repository {source.context} of {project.name}", f"docsmith project show {project.domain}"
    try:
        async with asyncio.timeout(REACH_SECONDS):
            await runtime.docs.register(source)
    except TimeoutError:
        return Finding(name, "wrong", f"{source.repository} does not answer; jobs go on without it.", mend)
    except ServiceError as error:
        return Finding(name, "wrong", f"{error} Jobs go on without it.", mend)
    return Finding(name, "ok", f"{source.repository} answers.")


async def _look_at_models(runtime: Runtime, *, ask: bool) -> AsyncIterator[Finding]:
    models = runtime.settings.models
    for alias, section in models.items():
        if section.api_key_env and not os.environ.get(section.api_key_env):
            yield Finding(
                f"model {alias}", "wrong", f"The variable {section.api_key_env}, which holds its key, is not set.",
                f"export {section.api_key_env}=…",
            )  # fmt: skip
    try:
        used = {"agent": runtime.models.for_agent(""), "assistant": runtime.models.for_assistant()}
        planner = runtime.models.for_planning()
        if planner is not None and planner.name != used["assistant"].name:
            used["planner"] = planner
    except ServiceError as error:
        yield Finding("model", "wrong", str(error), '[models.NAME] in docsmith.toml, or model = "builtin"')
        return
    names = {model.name for model in used.values()}
    if any(not is_builtin(name) for name in names) and importlib.util.find_spec("litellm") is None:
        yield Finding("litellm", "wrong", "It cannot be imported.", "pip install litellm")
    failing = await find_failing_model(runtime.views, runtime.models)
    probes: dict[str, Probe] = {}
    for work, model in used.items():
        if not ask and work == "assistant" and failing is not None:
            says = f"{model.name} has failed since {failing.since}. {failing.says} {failing.reason}".rstrip()
            yield Finding(f"{work} model", "wrong", says, failing.mend)
            continue
        if not ask or is_builtin(model.name):
            yield Finding(f"{work} model", "ok", f"{model.name}{'' if ask else ', not asked'}.")
            continue
        if model.name not in probes:
            probes[model.name] = await probe_model(model, seconds=ASK_SECONDS)
            for finding in _findings_of(work, probes[model.name]):
                yield finding
        else:
            yield Finding(f"{work} model", "ok", f"{model.name}, as above.")
    for alias, parts in (await runtime.models.refused()).items() if ask else ():
        says = f"Its server refuses {', '.join(parts)}: left out, or sent another way."
        yield Finding(
            f"model {alias}, refused parts", "note", says, f"accepts in [models.{alias}], where that is wrong"
        )


_NEEDED_BY_JOBS = ("word", "tool_call", "roles", "long_prompt")
_NEEDED_BY_ANSWERS = ("word", "roles", "long_prompt")


def _findings_of(work: str, probe: Probe) -> Iterator[Finding]:
    """Return what a model can do: an error for what its work needs, a note for what only makes it slower."""
    needed = _NEEDED_BY_JOBS if work == "agent" else _NEEDED_BY_ANSWERS
    for tried in probe.tried:
        if tried.verdict == "unknown":
            continue
        is_bad = tried.verdict == "fails" and tried.ability in needed
        level: Level = "wrong" if is_bad else "note" if tried.verdict == "fails" else "ok"
        yield Finding(f"{work} model{_ABILITIES[tried.ability]}", level, f"{probe.model}: {tried.says}", tried.mend)


_ABILITIES: Mapping[Ability, str] = {
    "word": "",
    "stream": ", stream",
    "tool_call": ", tool call",
    "two_calls": ", two calls at once",
    "roles": ", order of messages",
    "long_prompt": ", long prompt",
}
