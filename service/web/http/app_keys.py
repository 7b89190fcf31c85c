"""Every typed key of the application: what handlers find in ``request.app``."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from eventstore import EventStore, Secrets, Views
from service.commands.access.credentials import Admits
from service.commands.guarded_projects import GuardedProjects
from service.domain.access.spending import CostBounds
from service.domain.threads.replies import ReplyEvent
from service.ports.bounds import CountBound
from service.ports.code_host import ComparedChanges
from service.ports.docs_source import DocsSource
from service.ports.model import Models
from service.ports.model_provider import KnownModel, ModelProvider
from service.ports.search_index import SearchIndex
from service.ports.shared.instances import Instances
from service.ports.shared.shared_secrets import SharedSecrets
from service.ports.sign_in import IdentityProvider, Passkeys
from service.queries.jobs.jobs import JobReader
from service.queries.readers.gaps import GapReader
from service.runtime.settings.settings_shown import ShownSettings
from service.runtime.uploads import Uploads
from service.views.projects import ProjectView
from service.web.http.live import KeepAlives
from service.workers.checkpointing import LastCheckpoint
from service.workers.followed_replies import FollowedReplies
from service.workers.indexing.manual_search import ManualSearch
from service.workers.indexing.site_reports import SiteReports
from service.workers.indexing.wanted import Progress
from service.workers.log_check import LogCheck
from service.workers.replies.broadcast import Broadcast
from service.workers.replies.replier import Replier
from service.workers.reproduction import Reproducer

if TYPE_CHECKING:
    from service.retrieval.search.meaning import Meaning

STORE: web.AppKey[EventStore] = web.AppKey("STORE")
VIEWS: web.AppKey[Views] = web.AppKey("VIEWS")
SHARED_SECRETS: web.AppKey[SharedSecrets] = web.AppKey("SHARED_SECRETS")
INDEX: web.AppKey[SearchIndex] = web.AppKey("INDEX")
MODELS: web.AppKey[Models] = web.AppKey("MODELS")
BROADCAST: web.AppKey[Broadcast[ReplyEvent]] = web.AppKey("BROADCAST")
REPLIER: web.AppKey[Replier] = web.AppKey("REPLIER")
KEEP_ALIVES: web.AppKey[KeepAlives] = web.AppKey("KEEP_ALIVES")
"""Keeps the answers that are streams of UI messages alive."""
FOLLOWED_REPLIES: web.AppKey[FollowedReplies] = web.AppKey("FOLLOWED_REPLIES")
"""The replies that other processes give."""
DOCS_SOURCE: web.AppKey[DocsSource] = web.AppKey("DOCS_SOURCE")
GAP_READER: web.AppKey[GapReader] = web.AppKey("GAP_READER")
JOB_READER: web.AppKey[JobReader] = web.AppKey("JOB_READER")
INSTANCE: web.AppKey[str] = web.AppKey("INSTANCE")
INSTANCES: web.AppKey[Instances] = web.AppKey("INSTANCES")
KEY_REQUIRED: web.AppKey[bool] = web.AppKey("KEY_REQUIRED")
"""A follow-up must carry its thread's key."""
READINESS: web.AppKey[Callable[[], Awaitable[dict[str, str]]]] = web.AppKey("READINESS")
"""What is not ready: name to reason; empty when all is well."""
REFUSES_REQUESTS: web.AppKey[Callable[[], dict[str, str]]] = web.AppKey("REFUSES_REQUESTS")
"""Why a proxy should send no requests here, in the same way."""
INDEX_FOLDER: web.AppKey[Callable[[str, str], Path]] = web.AppKey("INDEX_FOLDER")
"""The folder of an index, by its site's domain and its name. Raises Invalid."""
MEANING: "web.AppKey[Meaning | None]" = web.AppKey("MEANING")
"""The vectors of sections; None unless the settings name an embedding model."""
BEHIND: web.AppKey[Callable[[], Mapping[str, str]]] = web.AppKey("BEHIND")
"""Sites whose index is older than it should be, and why."""
INDEXING: web.AppKey[Progress] = web.AppKey("INDEXING")
"""How far the indexing of a domain is."""
SITE_REPORTS: web.AppKey[SiteReports] = web.AppKey("SITE_REPORTS")
MANUAL_SEARCH: web.AppKey[ManualSearch] = web.AppKey("MANUAL_SEARCH")
GUARDED_PROJECTS: web.AppKey[GuardedProjects] = web.AppKey("GUARDED_PROJECTS")
UPLOADS: web.AppKey[Uploads] = web.AppKey("UPLOADS")
COST_BOUNDS: web.AppKey[Callable[[], CostBounds]] = web.AppKey("COST_BOUNDS")
IS_DRILL: web.AppKey[bool] = web.AppKey("IS_DRILL")
"""A restored copy is tried: nothing leaves the machine."""
MODEL_NAMES: web.AppKey[dict[str, str]] = web.AppKey("MODEL_NAMES")
"""The model of each kind of work, for ``/readyz``."""
JOB_CHANGES: web.AppKey[Callable[[ProjectView, str], Awaitable[ComparedChanges]]] = web.AppKey("JOB_CHANGES")
"""The changes of a project's job, by its id."""
KNOWN_MODELS: web.AppKey[Callable[[], Sequence[KnownModel]]] = web.AppKey("KNOWN_MODELS")
"""The models that have a name, for jobs that choose one."""
MODEL_PROVIDERS: web.AppKey[Sequence[ModelProvider]] = web.AppKey("MODEL_PROVIDERS")
SECRETS: web.AppKey[Secrets] = web.AppKey("SECRETS")
"""The secrets of the vault: what a page shows is never one of them."""
COUNT_BOUND: web.AppKey[CountBound] = web.AppKey("COUNT_BOUND")
"""Counts work that a bound refused or cut."""
MENTION: web.AppKey[str] = web.AppKey("MENTION")
"""The name by which comments address the agent; empty: comments are not read."""
ALLOW_PRIVATE: web.AppKey[bool] = web.AppKey("ALLOW_PRIVATE")
"""The settings allow addresses outside to be in private networks, and without encryption."""
REPRODUCER: web.AppKey[Reproducer] = web.AppKey("REPRODUCER")
LAST_CHECKPOINT: web.AppKey[LastCheckpoint] = web.AppKey("LAST_CHECKPOINT")
LOG_CHECK: web.AppKey[LogCheck] = web.AppKey("LOG_CHECK")
CLOSING: web.AppKey[asyncio.Event] = web.AppKey("CLOSING")
"""The server is going down: long answers end."""
PASSKEYS: web.AppKey[Passkeys] = web.AppKey("PASSKEYS")
IDENTITY_PROVIDER: web.AppKey[IdentityProvider | None] = web.AppKey("IDENTITY_PROVIDER")
ADMITS: web.AppKey[Admits] = web.AppKey("ADMITS")
DATA: web.AppKey[Path] = web.AppKey("DATA")
"""The data folder."""
HOSTED_FOLDER: web.AppKey[Path] = web.AppKey("HOSTED_FOLDER")
"""Where the embedded code host's repositories are, if they are on this machine."""
SHOWN_SETTINGS: web.AppKey[ShownSettings] = web.AppKey("SHOWN_SETTINGS")
"""The settings in effect, for operators."""
