"""All settings: their names, defaults and limits (``settings_file`` reads them)."""

from datetime import date
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from service.domain.access.spending import CostBounds


class ServerSection(Struct, frozen=True, forbid_unknown_fields=True):
    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8080
    """0 for a free one."""
    public_url: str = ""
    """How people reach the service, for the links that it gives out; what it listens on when empty."""
    trusted_proxies: str | tuple[str, ...] = ()
    """Addresses and networks of the reverse proxies in front, whose word for the caller's address is taken; as one
    text, parted by commas.
    """
    v1_sunset: date | None = None
    """From when on version 1 of the API may be gone, for the ``Sunset`` of its answers."""
    proxy_header: Literal["X-Forwarded-For", "Forwarded"] = "X-Forwarded-For"
    """The one that the proxies set. Only this is read: the other may be the caller's own."""
    user_header: Annotated[str, Meta(pattern=r"^([A-Za-z][A-Za-z0-9-]{0,99})?$")] = ""
    """The header in which the trusted proxies put the email of the person whom they signed in; empty: none counts."""
    max_connections: Annotated[int, Meta(ge=1)] = 4096
    max_connections_per_address: Annotated[int, Meta(ge=0)] = 100
    """From one address that is no trusted proxy and not this machine; 0 for any number."""
    head_seconds: Annotated[float, Meta(gt=0)] = 15
    """For a request's line and headers to arrive."""
    body_seconds: Annotated[float, Meta(gt=0)] = 60
    """For a request's JSON body to arrive."""
    idle_seconds: Annotated[float, Meta(gt=0)] = 75
    """How long a connection is kept that asks nothing; longer than a reverse proxy in front keeps it."""
    write_seconds: Annotated[float, Meta(gt=0)] = 60
    """For a client that reads nothing of its answer, or of its stream, before it is cut off."""
    drain_seconds: Annotated[float, Meta(ge=0, le=3600)] = 0
    """For which a service that is to stop answers on while ``/readyz`` fails, so that a proxy asks other instances."""


class AgentSection(Struct, frozen=True, forbid_unknown_fields=True):
    model: str = ""
    """An alias, or ``builtin``; empty chooses by the keys in the environment."""
    concurrent_jobs: Annotated[int, Meta(ge=1)] = 8
    """In all projects; further ones wait in a queue."""
    concurrent_jobs_per_project: Annotated[int, Meta(ge=1)] = 4
    concurrent_jobs_per_organization: Annotated[int, Meta(ge=1)] = 6
    """Fewer than in all, so that jobs of one organization that stand still never hold up all others."""
    max_steps: Annotated[int, Meta(ge=1)] = 60
    max_tokens: Annotated[int, Meta(ge=1)] = 2_000_000
    max_cost_usd: Annotated[float, Meta(ge=0)] = 10.0
    max_minutes: Annotated[float, Meta(gt=0)] = 30.0
    retry_hours: Annotated[float, Meta(ge=0)] = 24.0
    """How long a job waits for a model, a git server or a code host that is away, before it fails. 0: it fails at
    once.
    """
    check_external: bool = True
    """Whether a job may ask other sites if the links to them work; they learn the address of the link."""
    author: str = "Docsmith <docsmith@users.noreply.localhost>"
    """Author of the commits."""
    mention: Annotated[str, Meta(pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.-]{0,99})?$")] = "docsmith"
    """The name by which a comment on a pull request addresses the agent, after ``@``; empty: comments are not read."""
    comments_per_hour: Annotated[int, Meta(ge=1)] = 10
    """Comments on one pull request that become messages within an hour."""
    comment_poll_minutes: Annotated[float, Meta(ge=0)] = 2
    """How often the comments of an open pull request are looked at; 0: only when a webhook reports one."""


class AssistantSection(Struct, frozen=True, forbid_unknown_fields=True):
    model: str = ""
    planner: str = ""
    """The model that plans the search for a question that its words alone do not find: an alias below, of a small, fast
    model, for the reader waits for the plan. Empty or ``off``: no search is planned.
    """
    suggestions: bool = True
    withhold_unsupported_code: bool = False
    """Whether readers get a sentence in place of code that names what no passage has."""
    max_searches: Annotated[int, Meta(ge=0)] = 3
    """Further searches and page reads that a model may make for one answer."""
    max_context_tokens: Annotated[int, Meta(ge=500)] = 32_000
    """Limit for the passages of an answer's first prompt, whatever page size a client asks for. What the model then
    searches itself adds at most as much again.
    """
    max_minutes: Annotated[float, Meta(gt=0)] = 10.0
    """Time of a whole answer, its searches included; a model that is still writing then is stopped."""
    max_cost_usd_day: Annotated[float, Meta(ge=0)] = 0.0
    """For all replies of one site in a day of UTC; past it, the builtin model answers. 0: no bound."""
    concurrent_replies: Annotated[int, Meta(ge=1)] = 2000
    """Limit for replies at a time; questions beyond it wait, before their search step. Each reply needs about 0.2 MB.
    """


class SearchSection(Struct, frozen=True, forbid_unknown_fields=True):
    embedding_model: str = ""
    """An alias below, or any embedding model that litellm knows: search then goes by meaning, too. Every section, and
    every question, is sent to it.
    """
    embedding_wait_ms: Annotated[int, Meta(ge=1, le=10_000)] = 300
    """For a question's vector; after it, words alone decide."""


class OidcSection(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the identity provider that signs people in (OpenID Connect)."""

    issuer: str = ""
    """The provider's address, as it names itself, such as ``https://login.example.com/realms/main``. Empty: none."""
    client_id: str = ""
    client_secret_env: str = ""
    """The variable that holds the client's secret. Empty for a public client."""
    name: str = ""
    """The name on the button; the issuer's host when empty."""
    viewer_domains: str | tuple[str, ...] = ()
    """Domains of email addresses whose people become viewers of an organization when they first sign in; as one text,
    separated by commas. Empty: only people who were added before sign in.
    """
    viewer_organization: str = ""
    """The id of that organization."""


class SignInSection(Struct, frozen=True, forbid_unknown_fields=True):
    oidc: OidcSection = OidcSection()


class ThreadsSection(Struct, frozen=True, forbid_unknown_fields=True):
    require_key: bool = False
    grace_seconds: Annotated[float, Meta(ge=0, le=3600)] = 0.0
    """How long a reply goes on after its reader's connection has broken, for a client that can resume it (it has sent a
    chat id). 0: not at all. A client's stop is a broken connection like any other, so with more than 0 the model writes
    on for so long after it.
    """


class AuditSection(Struct, frozen=True, forbid_unknown_fields=True):
    checkpoint_minutes: Annotated[float, Meta(ge=0)] = 60
    """How often the log's state is signed while it grows; 0 for never."""


class NetworkSection(Struct, frozen=True, forbid_unknown_fields=True):
    allow_private: bool = False
    """Addresses that people name (webhooks, websites, context repositories) may be on this machine and in private
    networks, and may be plain http.
    """
    local_folders: str | tuple[str, ...] = ()
    """Folders of this machine: people in a browser, and callers of the API, may make projects of what is in them. As
    one text, parted by commas.
    """

    @property
    def folders(self) -> tuple[str, ...]:
        return listed(self.local_folders)


def listed(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of a list that may be one text, parted by commas."""
    values = value.split(",") if isinstance(value, str) else value
    return tuple(one.strip() for one in values if one.strip())


class IndexSection(Struct, frozen=True, forbid_unknown_fields=True):
    poll_minutes: Annotated[float, Meta(ge=0)] = 0
    """How often repositories on other code hosts, and live websites, are looked at for changes; 0 for never. Those that
    send webhooks need no looking.
    """


class HostedSection(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the repositories that the service hosts itself."""

    allow_force_push: bool = False
    """Whether a push to the default branch may remove commits from it."""
    act_by_link: bool = False
    """Whether anyone who has the link of a pull request may merge and close it, without signing in."""


class InstancesSection(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of one instance among several of a log in PostgreSQL."""

    url: Annotated[str, Meta(pattern=r"^(https?://[^/?#@]+/?)?$")] = ""
    """Where the other instances reach this one. Empty: the address that it listens on; for one that listens on all
    addresses, the one from which it connects to PostgreSQL.
    """
    home: bool | None = None
    """Whether this one has the repositories of the embedded code host, and the others pass requests for them on. None:
    it has, if there are any in its data folder, or there is no project of the embedded code host yet, and no home.
    """
    hosted_folder: Annotated[str, Meta(pattern=r"^(/.*)?$")] = ""
    """A folder that all instances share, for the repositories of the embedded code host. Empty: the data folder of the
    home.
    """


class VaultSection(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of a wrapped vault in PostgreSQL."""

    rotate_days: Annotated[float, Meta(ge=1)] = 30
    """After which its keys are wrapped under a new wrapping key."""
    keep_days: Annotated[float, Meta(ge=0)] = 30
    """How long the wrapping key before is kept, for archives of the database that may have to be restored."""
    copies: Annotated[str, Meta(pattern=r"^(/.*)?$")] = ""
    """A folder on another disk that gets a copy of each wrapping key before it is used; empty: none."""


class WebhooksSection(Struct, frozen=True, forbid_unknown_fields=True):
    concurrent_deliveries: Annotated[int, Meta(ge=1, le=1000)] = 100
    timeout_seconds: Annotated[float, Meta(gt=0, le=60)] = 15.0
    """For one attempt, from looking up the name to the answer."""


class LimitsSection(Struct, frozen=True, forbid_unknown_fields=True):
    """Accepted requests in a sliding window; 0 for any number."""

    assistant_key_month: Annotated[int, Meta(ge=0)] = 10_000
    """A month here is 30 days."""
    organization_hour: Annotated[int, Meta(ge=0)] = 10_000
    address_day: Annotated[int, Meta(ge=0)] = 10_000
    project_hour: Annotated[int, Meta(ge=0)] = 100
    """Jobs that are created or followed up within an hour, together."""
    reader_5_minutes: Annotated[int, Meta(ge=0)] = 20
    """Questions of one reader of a site, for keys with origins: by ``fp`` and by address, whichever has more."""
    reader_day: Annotated[int, Meta(ge=0)] = 200
    key_searches_minute: Annotated[int, Meta(ge=0)] = 600
    """Searches with one key that has no origins."""
    address_searches_minute: Annotated[int, Meta(ge=0)] = 60
    """Searches of a site from one address, for keys with origins, and without a key."""
    address_tokens_minute: Annotated[int, Meta(ge=0)] = 10
    """Reader tokens for a site from one address."""
    proof_hour: Annotated[int, Meta(ge=0)] = 60
    """Questions of readers, or reader tokens, of a site in an hour: over this number, and over 3 times the site's
    median hour of the last 7 days, a page solves a short task before it gets a reader token. 0: never.
    """
    public_site_day: Annotated[int, Meta(ge=0)] = 1_000
    """Questions to a public site without a key."""
    public_address_hour: Annotated[int, Meta(ge=0)] = 60
    """Questions to a public site without a key, from one address."""
    public_searches_minute: Annotated[int, Meta(ge=0)] = 600
    """Searches of a public site without a key, and reads of its pages."""
    organization_jobs_day: Annotated[int, Meta(ge=0)] = 1_000
    """Jobs that an organization creates or follows up, in all its projects."""
    organization_projects_day: Annotated[int, Meta(ge=0)] = 100
    """Projects that are created in a browser or by the API; a try counts, too. So it is with the next two."""
    organization_uploads_day: Annotated[int, Meta(ge=0)] = 300
    organization_keys_day: Annotated[int, Meta(ge=0)] = 200
    organization_cost_usd_day: Annotated[float, Meta(ge=0)] = 100.0
    """For replies of all sites of an organization together, in a day of UTC."""
    public_cost_usd_day: Annotated[float, Meta(ge=0)] = 0.0
    """For replies of a public site that were asked for without a key, in a day of UTC. 0: none, so that such replies
    are the builtin model's unless the model costs nothing, or ``assistant.max_cost_usd_day`` bounds it.
    """


class LogSection(Struct, frozen=True, forbid_unknown_fields=True):
    level: Literal["debug", "info", "warning", "error"] = "info"
    """``warning`` leaves out the line for each request."""
    format: Literal["auto", "json", "console"] = "auto"
    """``auto``: lines for people on a terminal, else JSON."""


class MetricsSection(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of ``/metrics``."""

    enabled: bool = True
    token_env: str = ""
    """The variable that holds the bearer token which reading them takes; empty: none."""
    port: Annotated[int, Meta(ge=0, le=65535)] = 0
    """A port for the metrics alone, so that the outside never sees them. 0: on the service's own port, and without a
    token only for callers on this machine.
    """
    host: str = "127.0.0.1"
    """Only for a port of their own."""


ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class ModelSection(Struct, frozen=True, forbid_unknown_fields=True):
    model: str
    """Any name that litellm knows, such as ``anthropic/claude-sonnet-5-5``; or ``builtin/…``."""
    api_base: str = ""
    """Where the provider is, if not where litellm knows it to be."""
    api_key_env: str = ""
    """The environment variable that holds the key. Empty: the provider's usual one, but none for an own ``api_base``,
    so that no key goes to a server that it was not meant for."""
    input_usd_per_million_tokens: Annotated[float, Meta(ge=0)] | None = None
    output_usd_per_million_tokens: Annotated[float, Meta(ge=0)] | None = None
    """Both or neither; without them the price is that of litellm's table."""
    max_output_tokens: Annotated[int, Meta(ge=1)] | None = None
    """Limit for a reply; without it, what litellm's table says of the model."""
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    reasoning_effort: ReasoningEffort | None = None
    """The three: without them, the provider's own default."""
    extra: dict[str, Any] = {}
    """Further parameters of the provider, passed on as they are."""
    context_tokens: Annotated[int, Meta(ge=1)] | None = None
    """Tokens of a prompt and its reply together, for models that litellm's table does not have."""
    refuses: str | tuple[str, ...] = ()
    """Parts of requests that its server refuses: they are left out, or sent another way. Refusals are learned, too."""
    accepts: str | tuple[str, ...] = ()
    """Parts that it accepts, whatever a refusal seemed to say."""
    fallback: str = ""
    """The alias of the model to ask when this one is down, overloaded or refuses its key."""
    first_token_timeout_seconds: Annotated[float, Meta(gt=0)] = 120.0
    """Until the first bytes of an answer; a large model on a small machine takes long to read a prompt."""
    idle_timeout_seconds: Annotated[float, Meta(gt=0)] = 60.0
    """Between one piece of an answer and the next."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    server: ServerSection = ServerSection()
    sign_in: SignInSection = SignInSection()
    agent: AgentSection = AgentSection()
    assistant: AssistantSection = AssistantSection()
    search: SearchSection = SearchSection()
    threads: ThreadsSection = ThreadsSection()
    audit: AuditSection = AuditSection()
    limits: LimitsSection = LimitsSection()
    network: NetworkSection = NetworkSection()
    hosted: HostedSection = HostedSection()
    instances: InstancesSection = InstancesSection()
    vault: VaultSection = VaultSection()
    webhooks: WebhooksSection = WebhooksSection()
    index: IndexSection = IndexSection()
    log: LogSection = LogSection()
    metrics: MetricsSection = MetricsSection()
    models: dict[str, ModelSection] = {}

    @property
    def cost_bounds(self) -> CostBounds:
        return CostBounds(self.assistant.max_cost_usd_day, self.limits.public_cost_usd_day)


def drilled(settings: Settings) -> Settings:
    """Return the settings of a drill: builtin models alone, no crawl, no checkpoint."""
    return replace(
        settings,
        models={},
        agent=replace(settings.agent, model="builtin", mention=""),
        assistant=replace(settings.assistant, model="builtin", planner=""),
        search=replace(settings.search, embedding_model=""),
        audit=replace(settings.audit, checkpoint_minutes=0),
        index=replace(settings.index, poll_minutes=0),
    )
