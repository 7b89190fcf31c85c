"""The web application: what its handlers find in it, and its routes."""

import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web

from service.adapters.builtin.answer import BuiltinAnswer
from service.adapters.hosted.git_http import git_routes
from service.domain.access.names import Names, link_base
from service.main.hosted_events import HostedEvents
from service.main.job_changes import JobChanges
from service.main.parts import Parts
from service.main.process.listening import socket_of
from service.queries.jobs.job_steps import steps_of_pull_request
from service.queries.jobs.jobs import found_in_pull_request
from service.queries.projects import organization_of
from service.queries.readers.gaps import GapReader
from service.runtime.settings.settings import Settings
from service.runtime.settings.settings_file import BadSettings
from service.web.agents.llms import FULL_SEATS, LISTS, KeptLists, full_seats
from service.web.agents.pages import MODULES as AGENTS
from service.web.api import health, incoming, search, widget
from service.web.api.assistant import analytics, feedback, reader_tokens, resumes, threads
from service.web.api.jobs import job_work, jobs, jobs_v1
from service.web.api.metrics import Metrics, metrics_routes
from service.web.api.organization import MODULES as ORGANIZATION
from service.web.api.organization.site_checks import TRIALS, trials
from service.web.ask.pages import MODULES as ASK
from service.web.dashboard.navigation import note_served
from service.web.dashboard.page import LIVE_SEATS, live_seats
from service.web.dashboard.pages import MODULES as PAGES
from service.web.http import hosted
from service.web.http.access import access
from service.web.http.access.hosts import LOCAL_ADDRESS, NAMES
from service.web.http.access.people import FAILED_SIGN_INS, LINK_BASE, PEOPLE_DIRECTORY, SESSIONS, USER_HEADER
from service.web.http.answers import errors
from service.web.http.app_keys import (
    ADMITS,
    ALLOW_PRIVATE,
    BEHIND,
    BROADCAST,
    CLOSING,
    COST_BOUNDS,
    COUNT_BOUND,
    DATA,
    DOCS_SOURCE,
    FOLLOWED_REPLIES,
    GAP_READER,
    GUARDED_PROJECTS,
    HOSTED_FOLDER,
    IDENTITY_PROVIDER,
    INDEX,
    INDEX_FOLDER,
    INDEXING,
    INSTANCE,
    INSTANCES,
    IS_DRILL,
    JOB_CHANGES,
    JOB_READER,
    KEEP_ALIVES,
    KEY_REQUIRED,
    KNOWN_MODELS,
    LAST_CHECKPOINT,
    LOG_CHECK,
    MANUAL_SEARCH,
    MEANING,
    MENTION,
    MODEL_NAMES,
    MODEL_PROVIDERS,
    MODELS,
    PASSKEYS,
    READINESS,
    REFUSES_REQUESTS,
    REPLIER,
    REPRODUCER,
    SECRETS,
    SHARED_SECRETS,
    SITE_REPORTS,
    STORE,
    UPLOADS,
    VIEWS,
)
from service.web.http.entrance import Entrance
from service.web.http.internal import INTERNAL_ACCESS, InternalAccess
from service.web.http.live import KeepAlives
from service.web.http.problems import ERROR_PAGE, MAX_BODY_BYTES
from service.web.mcp.cancellation import RUNNING_CALLS, RunningCalls
from service.web.mcp.pages import MODULES as MCP
from service.web.pages import manual, pull_requests, reference
from service.web.pages.problem_pages import error_page
from service.web.pages.pull_request_rights import ACT_BY_LINK
from service.web.widget.pages import MODULES as WIDGET
from service.wire import ui_messages
from service.workers.checkpointing import LastCheckpoint
from service.workers.indexing.manual_search import ManualSearch
from service.workers.log_check import LogCheck
from service.workers.reproduction import Reproducer

if TYPE_CHECKING:
    from service.web.http.passing.sending import PassingOn


def build_app(
    parts: Parts,
    readiness: Callable[[], Awaitable[dict[str, str]]],
    refuses_requests: Callable[[], dict[str, str]],
) -> web.Application:
    runtime, hosted_events = parts.runtime, HostedEvents(parts.runtime)
    recall = parts.sessions.recall if parts.sessions.recalls else None
    app = web.Application(
        middlewares=[
            Entrance(parts.tracer, parts.metrics.measure, parts.fresh_reads, recall, _passing_on(parts)).enter
        ],
        client_max_size=MAX_BODY_BYTES,
    )
    app[STORE], app[VIEWS], app[MODELS] = runtime.store, runtime.views, runtime.models
    app[HOSTED_FOLDER] = runtime.hosted_place.root
    app[INDEX], app[DATA], app[SHARED_SECRETS] = parts.search, runtime.data, runtime.shared_secrets
    app[INDEX_FOLDER], app[MEANING] = runtime.index.path_of, runtime.meaning
    app[JOB_READER] = parts.job_reader
    app[BROADCAST], app[REPLIER], app[INSTANCE] = parts.broadcast, parts.replier, parts.instances.name
    app[INSTANCES], app[KEEP_ALIVES] = parts.instances, KeepAlives(ui_messages.KEEP_ALIVE)
    app[FOLLOWED_REPLIES] = parts.followed_replies
    app[COUNT_BOUND] = parts.metrics.count_bound
    app[KEY_REQUIRED] = runtime.settings.threads.require_key
    app[ALLOW_PRIVATE] = runtime.settings.network.allow_private
    app[JOB_CHANGES] = JobChanges(runtime).read
    app[KNOWN_MODELS], app[MODEL_PROVIDERS], app[SECRETS] = parts.models.known, runtime.model_providers, runtime.secrets
    app[MENTION] = runtime.settings.agent.mention
    app[DOCS_SOURCE] = parts.docs
    app[GAP_READER] = GapReader(runtime.store, runtime.views, partial(parts.metrics.count_bound, "gaps"))
    app[BEHIND], app[INDEXING] = parts.indexer.behind, parts.indexing
    app[SITE_REPORTS], app[GUARDED_PROJECTS], app[UPLOADS] = parts.site_reports, parts.projects, parts.uploads
    app[COST_BOUNDS] = lambda: parts.spending.bounds
    app[READINESS], app[MODEL_NAMES], app[CLOSING] = readiness, parts.model_names(), parts.closing
    app[REFUSES_REQUESTS], app[IS_DRILL] = refuses_requests, parts.is_drill
    app[hosted.HOSTED] = parts.hosted
    app[ACT_BY_LINK] = runtime.settings.hosted.act_by_link
    app[hosted.PAGE_TURNS] = hosted.PageTurns(parts.metrics.count_bound, partial(organization_of, runtime.views))
    app[FULL_SEATS], app[LISTS] = full_seats(parts.metrics.count_bound), KeptLists()
    app[LIVE_SEATS], app[TRIALS] = live_seats(parts.metrics.count_bound), trials(parts.metrics.count_bound)
    app[pull_requests.PULL_REQUEST_CHECKS] = lambda project_id, number: found_in_pull_request(
        runtime.views, project_id, number
    )
    app[pull_requests.PULL_REQUEST_STEPS] = lambda project_id, number: steps_of_pull_request(
        runtime.views, runtime.store, project_id, number
    )
    app[hosted.PULL_REQUEST_CLOSED] = hosted_events.on_pull_request_closed
    app[hosted.PULL_REQUEST_CHANGING] = hosted_events.changing
    app[ERROR_PAGE] = error_page
    app[PEOPLE_DIRECTORY], app[SESSIONS] = parts.people, parts.sessions
    app[FAILED_SIGN_INS] = parts.failed_sign_ins
    app[PASSKEYS], app[IDENTITY_PROVIDER], app[ADMITS] = parts.passkeys, parts.identity_provider, parts.admits
    server = runtime.settings.server
    names = app[NAMES] = Names(server.public_url.rstrip("/"), server.host)
    app[USER_HEADER], app[LINK_BASE] = server.user_header, lambda: link_base(names, parts.address.local)
    app[LOCAL_ADDRESS] = lambda: parts.address.local
    http = None if parts.others is None else parts.others.http
    app[RUNNING_CALLS] = RunningCalls(parts.instances, http)
    app[LOG_CHECK], app[LAST_CHECKPOINT] = LogCheck(runtime.data), LastCheckpoint(runtime.data, parts.instances, http)
    app[REPRODUCER] = Reproducer(runtime.store, runtime.views, runtime.scratch_docs)
    refused = partial(parts.metrics.count_bound, "searches")
    app[MANUAL_SEARCH] = ManualSearch(manual.FOLDER, BuiltinAnswer(), on_refused=refused)
    internal = app[INTERNAL_ACCESS] = InternalAccess(parts.instances.name)
    internal.key = parts.others.key if parts.others is not None else None
    app.on_shutdown.append(_end_log_check)
    app.on_cleanup.append(_close_manual_search)
    parts.admission.install(app)
    app.on_response_prepare.append(parts.metrics.note_stream)
    for module in (
        health, errors, reference, manual, jobs, job_work, jobs_v1, threads, resumes, search, reader_tokens, feedback,
        widget, analytics, pull_requests, incoming, *ORGANIZATION, *PAGES, *ASK, *AGENTS, *MCP, *WIDGET,
    ):  # fmt: skip
        app.add_routes(module.routes)
    app.add_routes(
        git_routes(
            runtime.hosted_place.repository,
            access.git_organization,
            pushed=hosted_events.on_push,
            allow_force_push=runtime.settings.hosted.allow_force_push,
            count_bound=parts.metrics.count_bound,
        )
    )
    if parts.others is not None:
        add_internal_routes(app)
    if runtime.settings.metrics.enabled and not runtime.settings.metrics.port:
        app.add_routes(metrics_routes(parts.metrics, metrics_token(runtime.settings), anybody=False))
    note_served(app)
    return app


def add_internal_routes(app: web.Application) -> None:
    """Add what other instances ask; imported where there may be any."""
    from service.web.api import shared_checkpoint, shared_indexes
    from service.web.api.assistant import internal_replies
    from service.web.http.passing import receiving
    from service.web.mcp import shared_calls

    for module in (shared_checkpoint, shared_indexes, shared_calls, receiving, internal_replies):
        app.add_routes(module.routes)


def _passing_on(parts: Parts) -> "PassingOn | None":
    if parts.others is None:
        return None
    from service.web.http.passing.sending import PassingOn

    return PassingOn(parts.instances, parts.others.http, parts.runtime.hosted_place)


async def _end_log_check(app: web.Application) -> None:
    await app[LOG_CHECK].close()


async def _close_manual_search(app: web.Application) -> None:
    await app[MANUAL_SEARCH].close()


async def serve_metrics(metrics: Metrics, settings: Settings) -> web.AppRunner | None:
    """Serve metrics on a port of their own, if the settings name one. Raises OSError, BadSettings."""
    if not (settings.metrics.enabled and settings.metrics.port):
        return None
    app = web.Application(middlewares=[Entrance().enter])
    app.add_routes(metrics_routes(metrics, metrics_token(settings), anybody=True))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.SockSite(runner, socket_of(settings.metrics.host, settings.metrics.port, "metrics.port")).start()
    return runner


def metrics_token(settings: Settings) -> str:
    """Raises BadSettings: there should be one, and is none."""
    variable = settings.metrics.token_env
    token = os.environ.get(variable, "") if variable else ""
    if variable and not token:
        raise BadSettings(f"[metrics] token_env: the variable {variable} is not set")
    return token
