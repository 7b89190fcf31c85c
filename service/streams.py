"""Each decider bound to the category of its streams and to the codec of its events."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from eventstore import Codec, Decider, RecordedEvent, UnknownEventType
from service.domain import (
    allowed_folders,
    audit,
    copies,
    erasures,
    model_capabilities,
    model_profiles,
    organizations,
    prompts,
    sites,
)
from service.domain.access import credentials, keys, members, people, spending, usage
from service.domain.access import idempotency as requests
from service.domain.hooks import deliveries, incoming, webhooks
from service.domain.jobs import decider as jobs
from service.domain.projects import decider as projects
from service.domain.threads import gaps, threads

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")


def unchanged(fields: dict[str, Any]) -> dict[str, Any]:
    """The upcaster of a version whose only news is where a field is stored."""
    return fields


FOLDERS: Decider[allowed_folders.FolderCommand, allowed_folders.AllowedFolders, allowed_folders.FolderEvent] = Decider(
    "folders",
    allowed_folders.AllowedFolders(),
    allowed_folders.decide,
    allowed_folders.evolve,
    Codec(allowed_folders.FolderEvent),
)
MODELS: Decider[model_profiles.ModelProfileCommand, model_profiles.ModelProfiles, model_profiles.ModelProfileEvent] = (
    Decider(
        "models",
        model_profiles.ModelProfiles(),
        model_profiles.decide,
        model_profiles.evolve,
        Codec(model_profiles.ModelProfileEvent),
    )
)
ORGANIZATIONS: Decider[
    organizations.OrganizationCommand, organizations.OrganizationState, organizations.OrganizationEvent
] = Decider(
    "organization",
    organizations.Absent(),
    organizations.decide,
    organizations.evolve,
    Codec(organizations.OrganizationEvent),
)
PROJECTS: Decider[projects.ProjectCommand, projects.ProjectState, projects.ProjectEvent] = Decider(
    "project", projects.Absent(), projects.decide, projects.evolve, Codec(projects.ProjectEvent)
)
SITES: Decider[sites.SiteCommand, sites.SiteState, sites.SiteEvent] = Decider(
    "site", sites.Absent(), sites.decide, sites.evolve, Codec(sites.SiteEvent)
)
KEYS: Decider[keys.KeyCommand, keys.KeyState, keys.KeyEvent] = Decider(
    "key", keys.Absent(), keys.decide, keys.evolve, Codec(keys.KeyEvent)
)
CREDENTIALS: Decider[credentials.CredentialCommand, credentials.Credentials, credentials.CredentialEvent] = Decider(
    "credentials",
    credentials.Credentials(),
    credentials.decide,
    credentials.evolve,
    Codec(credentials.CredentialEvent),
)
PEOPLE: Decider[people.PersonCommand, people.PersonState, people.PersonEvent] = Decider(
    "person", people.Absent(), people.decide, people.evolve, Codec(people.PersonEvent)
)
MEMBERS: Decider[members.MemberCommand, members.Members, members.MemberEvent] = Decider(
    "members", members.Members(), members.decide, members.evolve, Codec(members.MemberEvent)
)
"""By the id of the organization."""
JOBS: Decider[jobs.JobCommand, jobs.Job, jobs.JobEvent] = Decider(
    "job",
    jobs.Absent(),
    jobs.decide,
    jobs.evolve,
    Codec(jobs.JobEvent, upcasters={"job-requested": (unchanged,)}),  # 2: the branch is personal
)
THREADS: Decider[threads.ThreadCommand, threads.ThreadState, threads.ThreadEvent] = Decider(
    "thread",
    threads.Absent(),
    threads.decide,
    threads.evolve,
    # 2: the client's own id and the page that the reader had open are personal
    Codec(threads.ThreadEvent, upcasters={"message-posted": (unchanged,)}),
)
GAPS: Decider[gaps.GapCommand, gaps.GapState, gaps.GapEvent] = Decider(
    "gap", gaps.Open(), gaps.decide, gaps.evolve, Codec(gaps.GapEvent)
)
AUDIT: Decider[audit.AuditCommand, audit.Reading, audit.AuditEvent] = Decider(
    "audit", audit.Unread(), audit.decide, audit.evolve, Codec(audit.AuditEvent)
)
COPIES: Decider[copies.CopyCommand, copies.CopyState, copies.CopyEvent] = Decider(
    "copy", copies.Marked(), copies.decide, copies.evolve, Codec(copies.CopyEvent)
)
REQUESTS: Decider[requests.RequestCommand, requests.RequestState, requests.RequestEvent] = Decider(
    "request", requests.Unclaimed(), requests.decide, requests.evolve, Codec(requests.RequestEvent)
)
ERASURES: Decider[erasures.ErasureCommand, erasures.Erasure, erasures.ErasureEvent] = Decider(
    "erasure", erasures.NotErased(), erasures.decide, erasures.evolve, Codec(erasures.ErasureEvent)
)
WEBHOOKS: Decider[webhooks.WebhookCommand, webhooks.WebhookState, webhooks.WebhookEvent] = Decider(
    "webhook", webhooks.Absent(), webhooks.decide, webhooks.evolve, Codec(webhooks.WebhookEvent)
)
DELIVERIES: Decider[deliveries.DeliveryCommand, deliveries.DeliveryState, deliveries.DeliveryEvent] = Decider(
    "delivery", deliveries.Waiting(), deliveries.decide, deliveries.evolve, Codec(deliveries.DeliveryEvent)
)
INCOMING: Decider[incoming.IncomingCommand, incoming.IncomingState, incoming.IncomingEvent] = Decider(
    "incoming", incoming.Closed(), incoming.decide, incoming.evolve, Codec(incoming.IncomingEvent)
)
USAGE: Decider[usage.UsageCommand, usage.Accepted, usage.UsageEvent] = Decider(
    "usage", usage.Accepted(), usage.decide, usage.evolve, Codec(usage.UsageEvent)
)

MODEL_CAPABILITIES: Decider[
    model_capabilities.RecordRefusal, model_capabilities.Refusals, model_capabilities.ModelCapabilityEvent
] = Decider(
    "model-capabilities",
    model_capabilities.Refusals(),
    model_capabilities.decide,
    model_capabilities.evolve,
    Codec(model_capabilities.ModelCapabilityEvent),
)
"""By the id of a server, a model and its settings."""
PROMPTS: Decider[prompts.KeepPrompts, prompts.PromptState, prompts.PromptEvent] = Decider(
    "prompts", prompts.NotKept(), prompts.decide, prompts.evolve, Codec(prompts.PromptEvent)
)
"""By their hash."""
SPENDING: Decider[spending.SpendingCommand, spending.Spending, spending.SpendingEvent] = Decider(
    "spending", spending.Spending(), spending.decide, spending.evolve, Codec(spending.SpendingEvent)
)


def decoded(decider: Decider[C, S, E], events: Sequence[RecordedEvent]) -> Iterator[tuple[str, E]]:
    """The events of one category, each with the id of what it is about; types of a newer program are passed over."""
    prefix = decider.stream("")
    for recorded in events:
        if recorded.stream.startswith(prefix):
            try:
                event = decider.codec.decode(recorded)
            except UnknownEventType:
                continue
            yield recorded.stream[len(prefix) :], event
