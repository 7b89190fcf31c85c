"""The server: its workers and their order, settings that change while it runs, and whether it is well."""

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path

import structlog
from aiohttp import web

from eventstore import StoreUnavailable
from service.adapters.git.dulwich_docs import clear_clone
from service.adapters.models.configured import ConfiguredModels
from service.cli.runtime import Runtime
from service.commands.guarded_projects import forget_unused_tokens
from service.domain.errors import ServiceError
from service.integrity.identity import record_identity
from service.main.added_models import added_settings
from service.main.app import build_app, serve_metrics
from service.main.folder import configured_models
from service.main.homes import find_home
from service.main.parts import Parts
from service.main.process.joining import Others
from service.main.process.listening import Address, admission_settings
from service.main.process.reloading import Changes, CurrentModels, changes
from service.main.process.sharing import Shared, of_folder
from service.main.worker_table import Stop, Worker, Workers, while_leading
from service.ports.shared.instances import Instances
from service.queries.installation import explain_homes
from service.queries.models import key_ids, read_added
from service.queries.projects import list_projects, token_ids
from service.queries.read_models import catch_up
from service.retrieval.index.atomic_folder import clear_away
from service.runtime.data_folder import Trouble
from service.runtime.scratch import leftovers_beside, remove_leftovers
from service.runtime.settings.settings import Settings, drilled
from service.runtime.settings.settings_shown import ShownSettings
from service.runtime.system import now
from service.runtime.uploads import remove_uploads
from service.web.http.app_keys import MODEL_NAMES, SHOWN_SETTINGS
from service.workers.added_models import AddedModelsFollower, ModelTrials
from service.workers.data_folder_watch import AwayLog
from service.workers.indexing.embedder import Embedder
from service.workers.key_rotation import KeyRotation

log = structlog.get_logger()

REPLIER = "replier"
"""The name of the worker that requests are taken after."""


class Server:
    """Everything that runs while the service serves."""

    def __init__(
        self,
        runtime: Runtime,
        instances: Instances,
        address: Address,
        models: CurrentModels,
        usage_secret: bytes,
        shared: Shared | None = None,
        *,
        others: Others | None = None,
        drill: bool = False,
        reads_only: bool = False,
        away: AwayLog | None = None,
    ) -> None:
        """``away``: the log that cannot be used in full; once it can, the service is to be started again."""
        self.is_drill, self.reads_only = drill, reads_only
        self.models, self.url = models, ""
        self.listening: socket.socket | None = None
        self._settings, self._added = runtime.settings, None if drill else runtime.added
        self.shown_settings = ShownSettings(runtime.settings)
        self._parts = Parts(
            runtime,
            instances,
            address,
            models,
            usage_secret,
            shared or of_folder(runtime.data),
            others,
            drill=drill,
            reads_only=reads_only,
            away=away,
        )
        self.data_folder, self.admission = self._parts.data_folder, self._parts.admission
        self.log_watch = self._parts.log_watch
        self.announced = asyncio.Event()
        """Set by the one who runs the server, once it takes requests and has said so: then the indexes are opened and
        the modules of an answer imported, for which early requests wait.
        """
        self._replies_ready = asyncio.Event()
        self._workers = Workers()
        self.key_rotation: KeyRotation | None = None
        """It looks after the wrapping keys of a wrapped vault; None where the vault is not wrapped."""
        self._is_draining = False
        self._metrics_runner: web.AppRunner | None = None
        self.app = build_app(self._parts, self.readiness, self.refuses_requests)
        self.app[SHOWN_SETTINGS] = self.shown_settings

    def _table(self) -> Iterator[Worker]:
        """Yield every worker that these settings want, in the order in which they start."""
        parts, runtime = self._parts, self._parts.runtime
        yield Worker("data-folder", self.data_folder.run, Stop.WATCHING, reads=True)
        yield Worker("views", runtime.views.run, Stop.VIEWS)
        for name, run, reads in self.admission.workers():
            yield Worker(name, run, Stop.REQUESTS, reads)
        yield Worker("people", parts.people.run, Stop.REQUESTS, reads=True)
        if not self.is_drill:
            follower = AddedModelsFollower(runtime.store, self.take_added_models)
            yield Worker("added-models", follower.run, Stop.REQUESTS, reads=True)
        yield Worker("sessions", parts.sessions.run, Stop.REQUESTS, reads=True)
        yield Worker("failed-sign-ins", parts.failed_sign_ins.run, Stop.REQUESTS)
        yield Worker("ended-jobs", parts.job_reader.run, Stop.REQUESTS, reads=True)
        yield Worker(
            REPLIER, lambda: parts.replier.run(ready=self._replies_ready, announced=self.announced), Stop.REPLIES
        )
        yield Worker("job-runner", parts.job_runner.run, Stop.JOBS)
        if parts.hosted_folder is not None:
            yield Worker("hosted-folder", parts.hosted_folder.run, Stop.WATCHING)
        yield Worker("hosted-check", parts.hosted_check.run, Stop.WATCHING, reads=True)
        yield Worker("indexer", parts.indexer.run, Stop.INDEXING)
        if parts.poller is not None:
            yield Worker("poller", partial(while_leading, parts.instances, parts.poller.run), Stop.LEADING)
        if not self.reads_only and runtime.meaning is not None:
            embedder = Embedder(
                runtime.store, runtime.views, runtime.index, runtime.meaning, shared=parts.shared_vectors()
            )
            yield Worker("embedder", embedder.run, Stop.INDEXING)
        yield Worker("log-watch", parts.log_watch.run, Stop.ASKING)
        if self.key_rotation is not None:
            yield Worker("key-rotation", self.key_rotation.run, Stop.ASKING)
        yield Worker("erasures", parts.erasures.run, Stop.ASKING)
        if not self.reads_only:
            yield Worker(
                "answered-gaps", partial(while_leading, parts.instances, parts.answered_gaps.run), Stop.LEADING
            )
        if not self.is_drill:
            yield Worker("webhooks", partial(while_leading, parts.instances, parts.webhooks.run), Stop.LEADING)
            yield Worker("answers", partial(while_leading, parts.instances, parts.comment_answers.run), Stop.LEADING)
            if self._settings.agent.mention:
                yield Worker(
                    "comments", partial(while_leading, parts.instances, parts.comment_reader.run), Stop.LEADING
                )
            trials = ModelTrials(runtime.store, runtime.open_model)
            yield Worker("model-trials", partial(while_leading, parts.instances, trials.run), Stop.LEADING)
        if parts.checkpoints is not None:
            yield Worker("checkpoints", partial(while_leading, parts.instances, parts.checkpoints.run), Stop.LEADING)
        yield Worker("loop-delay", parts.metrics.watch_loop, Stop.WATCHING, reads=True)
        yield Worker("metrics", parts.metrics.follow, Stop.WATCHING)

    async def start(self) -> None:
        """Start the workers. They see everything that is asked from now on. Raises OSError."""
        parts, runtime = self._parts, self._parts.runtime
        if not self.reads_only:
            await asyncio.to_thread(_remove_leftovers, runtime.data)
            await parts.erasures.repeat()
            if not self.is_drill:
                with suppress(StoreUnavailable):  # it is named at the next start
                    await record_identity(runtime.store, runtime.shared_secrets, runtime.data)
            if parts.others is not None:
                await find_home(runtime, parts.instances)
            if parts.hosted_folder is not None:
                await parts.hosted_folder.open()
                await parts.hosted_folder.look()
            await parts.hosted.recover()
        await parts.indexer.load(self.announced)
        if not self.reads_only:
            await catch_up(runtime.views)
            used = await token_ids(runtime.views) | await key_ids(runtime.store)
            await forget_unused_tokens(runtime.secrets, used, now())
        await self.admission.load()
        with suppress(StoreUnavailable) if self.reads_only else nullcontext():
            await parts.people.catch_up()
        await parts.sessions.load()
        await parts.job_reader.load()
        self._workers.begin(worker for worker in self._table() if worker.reads or not self.reads_only)
        if not self.reads_only:
            await self._workers.until(self._replies_ready, REPLIER)
        self._metrics_runner = await serve_metrics(parts.metrics, runtime.settings)

    @property
    def drain_seconds(self) -> float:
        return self._settings.server.drain_seconds

    async def drain(self, enough: asyncio.Event) -> None:
        """Answer requests for ``drain_seconds`` more, or until ``enough``, while ``/readyz`` says that it goes down.

        So a proxy sends its next requests to other instances before this one refuses any. Answers under way go on. Jobs
        are parked at once, so that other instances go on with them, and so is what only one instance does.
        """
        if not self.drain_seconds:
            return
        self._is_draining = True
        self.admission.connection_limiter.is_draining = True
        with suppress(TimeoutError):
            async with asyncio.timeout(self.drain_seconds):
                for number in (Stop.LEADING, Stop.JOBS):
                    await self._workers.stop(number)
                await self._parts.instances.step_down()
                await enough.wait()

    async def stop(self) -> None:
        """End streams properly and park jobs; requests that are under way go on."""
        parts = self._parts
        parts.closing.set()
        self.admission.connection_limiter.is_draining = True
        if self._metrics_runner is not None:
            await self._metrics_runner.cleanup()
        for number in Stop:
            if number < Stop.REQUESTS:
                await self._workers.stop(number)
        await parts.webhook_sender.close()
        if parts.checkpoints is not None and parts.instances.leads():
            await parts.checkpoints.make()
        await asyncio.to_thread(parts.tracer.close)

    async def close(self) -> None:
        """Stop what requests need, once there are no more."""
        await self._workers.stop(Stop.REQUESTS)
        await self._parts.sessions.close()
        if self._parts.hosted_folder is not None:
            await self._parts.hosted_folder.close()
        if self._parts.fresh_reads is not None:
            await self._parts.fresh_reads.close()
        if self._parts.identity_provider is not None:
            await self._parts.identity_provider.close()

    @property
    def address(self) -> str:
        """Return where people reach it."""
        return self._parts.address()

    async def is_new(self) -> bool:
        """Return whether there is no project yet."""
        return not await list_projects(self._parts.runtime.views)

    async def first_link(self) -> str | None:
        """Return a sign-in link while no one has signed in yet; None otherwise."""
        if self.is_drill or self.reads_only:
            return None
        from service.cli.people import first_link  # late: what only a first start needs

        return await first_link(self._parts.runtime)

    def is_alive(self) -> bool:
        return self._parts.closing.is_set() or not self._workers.ended()

    def change(self, settings: Settings) -> Changes:
        """Take over what can be taken over while the service runs. Raises ServiceError, with nothing changed."""
        if self.is_drill:
            settings = drilled(settings)
        admission, models = admission_settings(settings), self._models_of(settings)
        changed = changes(self._settings, settings)
        if any(name.startswith(("models.", "agent.", "assistant.")) for name in changed.at_once):
            self.models.replace(models)
            self.app[MODEL_NAMES].update(self._parts.model_names())
        self.admission.change(admission)
        self._parts.spending.bounds = settings.cost_bounds
        self._parts.spending.organization_usd = settings.limits.organization_cost_usd_day
        self._parts.replier.withhold_unsupported_code(on=settings.assistant.withhold_unsupported_code)
        self._settings = settings
        self.shown_settings.change(settings, changes(self.shown_settings.at_start, settings).after_restart)
        return changed

    def _models_of(self, settings: Settings) -> ConfiguredModels:
        return configured_models(settings, {} if self.is_drill else os.environ, self._added, self._parts.runtime.store)

    async def take_added_models(self) -> None:
        """Use the models that were added, if they are others than before, or do other work."""
        runtime = self._parts.runtime
        before, self._added = self._added, await read_added(runtime.store, runtime.secrets)
        if before is None or (added_settings(before), before.keys) != (added_settings(self._added), self._added.keys):
            try:
                self.models.replace(self._models_of(self._settings))
            except ServiceError as error:  # the settings name one that was removed
                log.warning("the models stay as they were", reason=str(error))
                return
            self.app[MODEL_NAMES].update(self._parts.model_names())
            with suppress(ServiceError):  # one that cannot be used says so when it is tried
                await self.models.prepare()

    async def readiness(self) -> dict[str, str]:
        """Return ``not_ready`` as it is once each index was opened."""
        if opening := self._parts.runtime.index.opening():
            await asyncio.wait(opening)
        return self.not_ready()

    def not_ready(self) -> dict[str, str]:
        reasons = self.refuses_requests()
        if (why := self._parts.runtime.views.trouble) is not None:
            reasons["views"] = why
        if (trouble := self.data_folder.trouble()) is not None:
            reasons["log" if trouble.kind == "log_away" else "data folder"] = self._says(trouble)
        if self.log_watch.not_ready is not None:
            reasons["log"] = self.log_watch.not_ready
        place = self._parts.runtime.hosted_place
        if (why := place.trouble or self._parts.hosted_check.damage) is not None:
            reasons["hosted repositories"] = why
        is_home = place.is_home
        if (why := explain_homes(self._parts.instances.others(), is_home=is_home)) is not None:
            reasons["home"] = why
        return reasons | {f"index {domain}": why for domain, why in self._parts.runtime.index.broken().items()}

    def refuses_requests(self) -> dict[str, str]:
        """Return why requests should go to other instances: what is wrong with this one, and not with all of them."""
        views = self._parts.runtime.views
        reasons = dict.fromkeys(self._workers.ended(), "this worker has ended")
        for status in views.status():
            if status.failed is not None and status.failed != views.trouble:
                reasons[f"view {status.name}"] = status.failed
        trouble = self.data_folder.trouble()
        if trouble is not None and trouble.kind not in {"write_failed", "log_away"}:
            reasons["data folder"] = self._says(trouble)
        if self._parts.hosted_folder is not None and (why := self._parts.hosted_folder.away) is not None:
            reasons["hosted repositories"] = why
        if (why := self._parts.indexer.fetching()) is not None:
            reasons["indexes"] = why
        if self._is_draining or self._parts.closing.is_set():
            reasons["service"] = "it is going down"
        return reasons

    def _says(self, trouble: Trouble) -> str:
        return f"{trouble.says}{' Until then only reading is served.' if self.reads_only else ''}"


def _remove_leftovers(data: Path) -> None:
    """Remove what killed processes have left in the data folder and beside it, a vault perhaps."""
    remove_leftovers(leftovers_beside(data))
    remove_uploads(data)
    for folder in (data / "index").glob("*/"):
        clear_away(folder)
    for clone in (data / "repos").glob("*.git"):
        clear_clone(clone)
