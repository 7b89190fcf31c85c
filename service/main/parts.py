"""The parts of the service: each is built from the settings, and none is started."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from eventstore import Metadata
from service import __version__
from service.adapters.hosted.code_host import HostedCodeHost
from service.adapters.hosted.soundness import find_damages_aside
from service.adapters.link_checker import AiohttpLinkChecker
from service.adapters.offline import offline_code_hosts, offline_docs
from service.adapters.sign_in.passkeys import WebauthnPasskeys
from service.adapters.tracing.traced import (
    traced_code_host,
    traced_docs,
    traced_index,
    traced_model,
    traced_sender,
    tracer_for,
)
from service.adapters.webhook_sender import AiohttpWebhookSender
from service.agent.loop.budgets import Budgets
from service.assistant.question import AnswerSettings
from service.cli.runtime import Runtime
from service.commands.guarded_projects import GuardedProjects
from service.domain.projects.settings import CodeHostKind
from service.domain.threads.replies import ReplyEvent
from service.integrity.log_place import log_place
from service.main.process.joining import Others
from service.main.process.listening import Address, admission_settings
from service.main.process.reloading import CurrentModels
from service.main.process.sharing import Shared
from service.main.sign_in import identity_provider
from service.ports.code_host import CodeHost
from service.ports.shared.instances import Instances
from service.ports.tracer import NoTracer
from service.queries.access.people import PeopleDirectory
from service.queries.jobs.jobs import JobReader, slots_of
from service.queries.projects import cost_bound_of
from service.queries.read_models import FreshReads
from service.runtime.settings.settings import AgentSection
from service.runtime.uploads import Uploads
from service.web.api.metrics import Metrics
from service.web.http.connections.admission import Admission
from service.workers.admission.failed_sign_ins import FailedSignIns
from service.workers.admission.sessions import Sessions
from service.workers.answered_gaps import AnsweredGaps
from service.workers.checkpointing import Checkpoints
from service.workers.data_folder_watch import AwayLog, DataFolderWatch
from service.workers.erasures import Erasures
from service.workers.fair_slots import fetch_slots
from service.workers.followed_replies import FollowedReplies
from service.workers.hosted_check import HostedCheck
from service.workers.hosted_folder import HostedFolder
from service.workers.indexing.indexer import Indexer, IndexerContext
from service.workers.indexing.poller import Poller
from service.workers.indexing.site_reports import SiteReports
from service.workers.indexing.wanted import Progress
from service.workers.jobs.runner import JobPorts, JobRunner, JobSettings
from service.workers.log_watch import LogWatch
from service.workers.replies.broadcast import Broadcast
from service.workers.replies.replier import Replier
from service.workers.replies.reply_context import ReplyContext
from service.workers.reviews.answers import CommentAnswers
from service.workers.reviews.comments import CommentReader, CommentSettings
from service.workers.reviews.context import ReviewContext
from service.workers.spending import Spending
from service.workers.webhooks import Webhooks

if TYPE_CHECKING:
    from service.workers.indexing.sharing import SharedIndexing
    from service.workers.indexing.vector_sharing import SharedVectors


class Parts:
    def __init__(
        self,
        runtime: Runtime,
        instances: Instances,
        address: Address,
        models: CurrentModels,
        usage_secret: bytes,
        shared: Shared,
        others: Others | None = None,
        *,
        drill: bool,
        reads_only: bool,
        away: AwayLog | None = None,
    ) -> None:
        settings = runtime.settings
        self.runtime, self.instances, self.models = runtime, instances, models
        self.others = others
        """How other instances of the log are reached; None where there are none."""
        self.address = address
        self.closing = asyncio.Event()
        """Set when the service begins to stop."""
        shares_log = not reads_only and not log_place(runtime.data).is_local
        self.fresh_reads = FreshReads(runtime.store, runtime.views) if shares_log else None
        """None where no other instance writes."""
        self.data_folder = DataFolderWatch(runtime.data, runtime.store, away)
        self.broadcast: Broadcast[ReplyEvent] = Broadcast()
        self.hosted = HostedCodeHost(runtime.data, base_url=address, place=runtime.hosted_place)
        self.is_drill = drill
        tracer = self.tracer = NoTracer() if drill else tracer_for(__version__)
        docs = self.docs = traced_docs(offline_docs(runtime.docs) if drill else runtime.docs, tracer)
        reviewed = offline_code_hosts() if drill else runtime.code_hosts
        code_hosts: dict[CodeHostKind, CodeHost] = {**reviewed, "local": self.hosted}
        self.search = traced_index(runtime.index, tracer)
        self.admission = Admission(
            runtime.store, runtime.views, usage_secret, admission_settings(settings), shared=shared.counts
        )
        self.people = PeopleDirectory(runtime.store)
        self.sessions = Sessions(runtime.store, self.people, shared.sessions)
        self.failed_sign_ins = FailedSignIns(runtime.store)
        self.passkeys = WebauthnPasskeys(shared.challenges)
        self.identity_provider, self.admits = identity_provider(settings.sign_in.oidc)
        self.metrics = Metrics(
            runtime.store,
            runtime.views,
            runtime.data,
            lambda: self.admission.connection_limiter.open,
            self.data_folder.trouble_kind,
            instances=instances,
        )
        self.admission.count_with(self.metrics.count_bound)
        models.measure(lambda model: traced_model(self.metrics.of_model(model), tracer))
        self.job_reader = JobReader(runtime.store, runtime.views, slots_of(settings.agent))
        fetches = fetch_slots()
        shared_indexing = _shared_indexing(runtime, instances, others)
        counted = IndexerContext(fetches, self.metrics.count_bound, shared=shared_indexing)
        self.indexer = Indexer(runtime.store, runtime.views, docs, runtime.index, runtime.data, counted)
        self.indexing = Progress(self.indexer.progress, None if shared_indexing is None else shared_indexing.progress)
        refused = partial(self.metrics.count_bound, "uploads")
        self.uploads = Uploads(runtime.data, refused, lambda owner: self.admission.accept("uploads", owner, Metadata()))
        self.site_reports = SiteReports(runtime.index.path_of, partial(self.metrics.count_bound, "site_reports"))
        network = settings.network
        self.projects = GuardedProjects(
            runtime.store, runtime.views, docs, reviewed, runtime.secrets, runtime.data,
            network.folders, network.allow_private, accept=self.admission.accept,
        )  # fmt: skip
        self.hosted_folder = (
            HostedFolder(runtime.hosted_place, instances)
            if others is not None and runtime.hosted_place.is_shared
            else None
        )
        self.hosted_check = HostedCheck(runtime.hosted_place, runtime.views, find_damages_aside)
        self.poller = (
            Poller(runtime.store, runtime.views, docs, minutes=settings.index.poll_minutes, fetches=fetches)
            if settings.index.poll_minutes > 0
            else None
        )
        assistant = settings.assistant
        self.spending = Spending(
            runtime.store,
            settings.cost_bounds,
            partial(cost_bound_of, runtime.views),
            organization_usd=settings.limits.organization_cost_usd_day,
        )
        context = ReplyContext(
            runtime.models,
            self.search,
            AnswerSettings(
                suggestions=assistant.suggestions,
                max_searches=assistant.max_searches,
                max_context_tokens=assistant.max_context_tokens,
                max_minutes=assistant.max_minutes,
                withhold_unsupported_code=assistant.withhold_unsupported_code,
            ),
            assistant.concurrent_replies,
            settings.threads.grace_seconds,
            tracer,
            spending=self.spending,
        )
        self.followed_replies = FollowedReplies(
            runtime.store, self.broadcast, instances, self.closing, None if others is None else others.http
        )
        self.replier = Replier(
            runtime.store,
            runtime.views,
            self.broadcast,
            context,
            instance=instances.name,
            is_alive=instances.is_alive,
            crashed=lambda: instances.crashed,
            followed=self.followed_replies,
        )
        self.job_runner = JobRunner(
            runtime.store,
            runtime.views,
            JobPorts(
                runtime.models,
                docs,
                self.search,
                {kind: traced_code_host(host, tracer) for kind, host in code_hosts.items()},
                tracer,
                AiohttpLinkChecker(allow_private=settings.network.allow_private)
                if settings.agent.check_external and not drill
                else None,
                is_home=lambda: runtime.hosted_place.is_here,
            ),
            _job_settings(settings.agent, takes_up_earlier=not drill),
            instances,
        )
        agent = settings.agent
        reviews = ReviewContext(runtime.store, runtime.views, reviewed, fetch_slots(), leads=instances.leads)
        reading = CommentSettings(agent.mention, agent.comments_per_hour, agent.comment_poll_minutes)
        self.comment_reader = CommentReader(reviews, reading, self.admission.metered)
        self.comment_answers = CommentAnswers(reviews, mention=agent.mention)
        self.checkpoints = (
            Checkpoints(runtime.store, runtime.shared_secrets, runtime.data, settings.audit.checkpoint_minutes)
            if settings.audit.checkpoint_minutes > 0 and not reads_only
            else None
        )
        self.log_watch = LogWatch(runtime.data, runtime.store.hold, lambda: runtime.store.held)
        self.erasures = Erasures(runtime.store, runtime.views)
        self.answered_gaps = AnsweredGaps(
            runtime.store, runtime.views, runtime.index.by_words(), runtime.models.builtin_for_assistant
        )
        self.webhook_sender = AiohttpWebhookSender(
            allow_private=settings.network.allow_private, timeout_seconds=settings.webhooks.timeout_seconds
        )
        self.webhooks = Webhooks(
            runtime.store,
            runtime.views,
            traced_sender(self.webhook_sender, tracer),
            concurrent_deliveries=settings.webhooks.concurrent_deliveries,
            leads=instances.leads,
        )

    def shared_vectors(self) -> "SharedVectors | None":
        """Return how vectors of sections are shared with other instances; None where there are none."""
        if self.others is None:
            return None
        from service.workers.indexing.vector_sharing import SharedVectors

        return SharedVectors(self.instances, self.others.http)

    def model_names(self) -> dict[str, str]:
        """Return which model each kind of work uses now."""
        models = self.runtime.models
        return {"agent": models.for_agent("").name, "assistant": models.for_assistant().name}


def _shared_indexing(runtime: Runtime, instances: Instances, others: Others | None) -> "SharedIndexing | None":
    if others is None:
        return None
    from service.workers.indexing.sharing import SharedIndexing

    return SharedIndexing(runtime.store, instances, others.http, runtime.hosted_place)


def _job_settings(agent: AgentSection, *, takes_up_earlier: bool) -> JobSettings:
    return JobSettings(
        agent.concurrent_jobs,
        agent.concurrent_jobs_per_project,
        Budgets(agent.max_steps, agent.max_tokens, agent.max_cost_usd, agent.max_minutes),
        agent.author,
        agent.concurrent_jobs_per_organization,
        takes_up_earlier=takes_up_earlier,
        retry_hours=agent.retry_hours,
        mention=agent.mention,
    )
