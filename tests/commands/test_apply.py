"""A file of entries: what it creates and changes, twice as once, and what a killed run leaves for the next one."""

import stat

import pytest

from eventstore import Metadata, SQLiteEventStore, Views, execute
from service.commands.access.keys import revoke_key
from service.commands.apply.entries import read_declared
from service.commands.apply.files import apply, planned
from service.commands.apply.installation import Installation
from service.domain.access.keys import digest_of
from service.domain.errors import Conflict, Invalid, NotFound, ServiceError
from service.domain.sites import RecordIndex
from service.projections import all_projections
from service.queries.access.keys import KeyDirectory, list_keys
from service.queries.access.people import list_members, list_people
from service.queries.organizations import list_organizations
from service.queries.projects import project_of_domain
from service.queries.sites import get_site
from service.queries.webhooks import list_webhooks
from service.runtime import secret_files
from service.runtime.settings.settings import LimitsSection
from service.runtime.system import now
from service.streams import SITES
from service.views.sites import PaymentView
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource

METADATA = Metadata(actor="test")
WHOLE = """
[[organization]]
name = "Acme"

[[person]]
email = "Ada@example.com"
role = "owner"
[[person]]
email = "bob@example.com"
role = "owner"
operator = true

[[project]]
domain = "guide"
name = "Guide"
code_host = "gitea"
repository = "https://git.example/octo/guide"
git_token_env = "GUIDE_TOKEN"
labels = ["docs", "docs"]
docs_folder = "/docs/"
context = [{name = "code", repository = "https://git.example/octo/code", ref = "v2"}]
[[project]]
domain = "live"
website = "https://docs.example.com/"

[[site]]
domain = "guide"
public = true
origins = ["docs.example.com"]

[[key]]
name = "CI"
kind = "admin"
scope = "jobs"
addresses = ["192.0.2.9/24"]
token_file = "ci.key"
[[key]]
name = "Widget"
kind = "assistant"
domains = ["guide"]
origins = ["docs.example.com"]
expires_days = 30
token_file = "widget.key"

[[webhook]]
url_env = "HOOK_URL"
project = "guide"
events = ["job.failed"]
secret_file = "hook.secret"
[[webhook]]
url = "https://example.com/all"
secret_env = "HOOK_SECRET"
"""
ENVIRONMENT = {"HOOK_URL": "https://example.com/s3cret", "HOOK_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}


@pytest.fixture
async def store(tmp_path):
    (tmp_path / "data").mkdir()
    async with await SQLiteEventStore.open(
        tmp_path / "data" / "events.db", vault_path=tmp_path / "data" / "keys.db"
    ) as store:
        yield store


@pytest.fixture
async def views(tmp_path, store):
    views = await Views.open(tmp_path / "data" / "views.db", store, all_projections())
    yield views
    await views.close()


class Operator:
    """Applies files in a folder to one data folder."""

    def __init__(self, folder, store, views):
        self.folder, self.store, self.views = folder, store, views
        self.payment = PaymentView("builtin", 0.0, "")

    def installation(self):
        async def payment():
            return self.payment

        async def restricted_pages(_):
            return 3

        return Installation(
            self.store, self.views, FakeDocsSource({"index.md": "# Hi\n"}), {"gitea": FakeCodeHost()}, payment,
            restricted_pages, LimitsSection(), allow_private=False, folder=self.folder, environment=ENVIRONMENT,
            metadata=METADATA,
        )  # fmt: skip

    def declared(self, text):
        (self.folder / "entries.toml").write_text(text)
        return read_declared(self.folder / "entries.toml")

    async def plan(self, text):
        return await planned(self.installation(), self.declared(text))

    async def apply(self, text, on_change=lambda _: None):
        return await apply(self.installation, self.declared(text), self.folder / "data", on_change)

    def read(self, name):
        return (self.folder / name).read_text().strip()


@pytest.fixture
def operator(tmp_path, store, views):
    return Operator(tmp_path, store, views)


def done(applied):
    return [(change.action, change.kind, change.name) for change in applied.changes]


def fields(applied):
    return {one.name: (one.before, one.after) for change in applied.changes for one in change.fields}


async def test_file_creates_all_and_twice_changes_nothing(operator, store, views, tmp_path):
    plan = await operator.plan(WHOLE)
    assert await store.head() == 0
    made = await operator.apply(WHOLE)
    assert done(plan) == done(made)
    assert [action for action, *_ in done(made)].count("create") == 9
    head = await store.head()
    for again in (await operator.apply(WHOLE), await operator.plan(WHOLE)):
        assert (again.changes, again.unchanged) == ((), 10)
    assert await store.head() == head
    organization = (await list_organizations(views))[0]
    project = await project_of_domain(views, "guide")
    assert (project.labels, project.docs_folder, project.contexts[0].ref) == (("docs",), "docs", "v2")
    assert (await project_of_domain(views, "live")).code_host == "website"
    assert (await get_site(views, "guide")).view.origins == ("https://docs.example.com",)
    assert {one.email: one.role for one in await list_members(views, organization.id)} == {
        "ada@example.com": "owner", "bob@example.com": "owner",
    }  # fmt: skip
    assert [one.email for one in await list_people(views) if one.is_operator] == ["bob@example.com"]
    assert {one.url: one.events for one in await list_webhooks(views)}[ENVIRONMENT["HOOK_URL"]] == ("job.failed",)
    assert "s3cret" not in str(made)
    keys = KeyDirectory(store)
    await keys.catch_up()
    for name, file in (("CI", "ci.key"), ("Widget", "widget.key")):
        assert keys.find(digest_of(operator.read(file))).state.name == name
        assert stat.S_IMODE((tmp_path / file).stat().st_mode) == 0o600
        assert operator.read(file) not in str(made)


async def test_file_changes_only_what_it_names(operator, views):
    await operator.apply(WHOLE)
    changed = await operator.apply("""
        person = [
            {email = "ada@example.com", name = "Ada", role = "viewer"}, {email = "bob@example.com", operator = false},
        ]
        site = [{domain = "guide", public = false, title = " Help ", suggestions = ["How?", "Why?"], accent = "#0B6"}]
        key = [{name = "CI", addresses = []}]
        webhook = [{url = "https://example.com/all", events = ["job.active"]}]
        [[project]]
        domain = "guide"
        labels = []
        context = [{name = "code", public = true}, {name = "more", repository = "https://git.example/octo/more"}]
    """)
    assert fields(changed) == {
        "name": ("ada", "Ada"),
        "role": ("owner", "viewer"),
        "operator": ("yes", "no"),
        "public": ("yes", "no"),
        "title": ("", "Help"),
        "suggestions": ("", "How?, Why?"),
        "accent": ("", "#00bb66"),
        "addresses": ("192.0.2.0/24", ""),
        "events": ("job.active, job.completed, job.failed", "job.active"),
        "labels": ("docs", ""),
        "contexts": (
            "code=https://git.example/octo/code (ref v2)",
            "code=https://git.example/octo/code (ref v2, public), more=https://git.example/octo/more",
        ),
    }
    assert (await get_site(views, "guide")).view.origins == ("https://docs.example.com",)
    assert (await project_of_domain(views, "guide")).docs_folder == "docs"


async def test_opening_says_what_is_readable_and_who_pays(operator, store, views):
    plan = await operator.plan(WHOLE)
    (opened,) = (change for change in plan.changes if change.kind == "site")
    assert "guide, readable: nothing yet: docsmith index guide" in opened.notes
    await operator.apply(WHOLE.replace("public = true\norigins", "public = false\norigins"))
    indexed = RecordIndex("0" * 40, "index-1", 1_200, 5_000, skipped=(), seconds=1.0, now=now())
    await execute(store, SITES, "guide", indexed)
    await views.catch_up()
    operator.payment = PaymentView("openai/gpt-5.2", 7.5, "")
    for applied in (await operator.plan(WHOLE), await operator.apply(WHOLE)):
        notes = dict(note.removeprefix("guide, ").split(": ", 1) for note in applied.changes[0].notes)
        assert notes["readable"].startswith("1,197 pages of its index")
        assert notes["readable"].endswith("3 restricted to groups stay hidden")
        assert notes["origins"] == "https://docs.example.com"
        assert notes["limits"].startswith("1,000 questions a day")
        assert "you: openai/gpt-5.2, up to 7.50 USD a day" in notes["paid by"]


async def test_file_removes_only_what_it_says(operator, views):
    await operator.apply(WHOLE)
    assert done(await operator.apply("")) == []
    removal = """
        person = [{email = "ada@example.com", remove = true}]
        key = [{name = "CI", remove = true}]
        webhook = [{url_env = "HOOK_URL", project = "guide", remove = true}]
        project = [{domain = "guide", context = [{name = "code", remove = true}]}]
    """
    assert done(await operator.apply(removal)) == [
        ("remove", "person", "ada@example.com"), ("change", "project", "guide"), ("remove", "key", "CI"),
        ("remove", "webhook", "HOOK_URL"),
    ]  # fmt: skip
    assert done(await operator.apply(removal)) == []
    assert [key.status for key in await list_keys(views)] == ["revoked", "in_force"]
    assert len(await list_webhooks(views)) == 1
    assert (await project_of_domain(views, "guide")).contexts == ()


class Killed(Exception):
    """Stands for the end of the process."""


async def test_run_that_ended_early_is_gone_on_with(operator, store):
    whole = len((await operator.plan(WHOLE)).changes)

    def on_change(change):
        if change.action != "none":
            raise Killed

    for _ in range(whole):
        with pytest.raises(Killed):
            await operator.apply(WHOLE, on_change)
    await operator.apply(WHOLE)
    head = await store.head()
    assert (await operator.apply(WHOLE)).unchanged == whole
    assert await store.head() == head


@pytest.mark.parametrize("name", ["ci.key", "hook.secret"])
async def test_secret_recorded_by_a_killed_run_gets_its_file(operator, name, tmp_path, store):
    await operator.apply(WHOLE)
    secret, head = operator.read(name), await store.head()
    (tmp_path / name).rename(tmp_path / f".{name}.unfinished")
    assert len(done(await operator.plan(WHOLE))) == 1
    assert len(done(await operator.apply(WHOLE))) == 1
    assert (operator.read(name), await store.head()) == (secret, head)
    assert done(await operator.apply(WHOLE)) == []


async def test_secret_not_recorded_by_a_killed_run_is_replaced(operator, tmp_path):
    for name in ("ci.key", "hook.secret"):
        secret_files.keep_unfinished(tmp_path / name, "lost")
        (tmp_path / f".{name}.unfinished").chmod(0o644)
    await operator.apply(WHOLE)
    for name in ("ci.key", "hook.secret"):
        assert operator.read(name) != "lost"
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
        assert not (tmp_path / f".{name}.unfinished").exists()


async def test_files_in_the_way_are_not_written(operator, store, tmp_path):
    (tmp_path / "ci.key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Conflict, match="exists already"):
        await operator.apply(WHOLE)
    assert await store.head() == 0
    assert not (tmp_path / "elsewhere").exists()


async def test_revoked_key_is_created_again_once_its_file_is_away(operator, store, views, tmp_path):
    await operator.apply(WHOLE)
    before = operator.read("ci.key")
    await revoke_key(store, next(key.id for key in await list_keys(views) if key.name == "CI"), METADATA)
    await views.catch_up()
    (note,) = (await operator.apply(WHOLE)).changes
    assert (note.action, "is revoked" in note.notes[0]) == ("none", True)
    (tmp_path / "ci.key").unlink()
    assert done(await operator.apply(WHOLE)) == [("create", "key", "CI")]
    assert operator.read("ci.key") != before


async def test_one_process_applies_at_a_time(operator):
    declared = operator.declared('organization = [{name = "Acme"}]')

    async def second():
        await apply(operator.installation, declared, operator.folder / "data", lambda _: None)

    refused = []

    def on_change(_):
        try:
            second().send(None)
        except Conflict as error:
            refused.append(str(error))

    await apply(operator.installation, declared, operator.folder / "data", on_change)
    assert "Another process" in refused[0]
    await second()


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ('orgnization = [{name = "x"}]', Invalid, "Unknown table 'orgnization'; did you mean 'organization'?"),
        ('[organization]\nname = "x"', Invalid, r"write \[\[organization\]\] above each"),
        ('key = [{nam = "x"}]', Invalid, r"\[\[key\]\] 1: unknown name 'nam'; did you mean 'name'\?"),
        ('key = [{kind = "admin"}]', Invalid, r"\[\[key\]\] 1: name is required"),
        ('key = [{name = "x", kind = "amdin"}]', Invalid, "Expected one of 'admin', 'assistant'; got 'amdin'"),
        ('site = [{domain = "x", public = "yes"}]', Invalid, "public: Expected true or false"),
        ('project = [{domain = "x", context = [{name = "a", public = 1}]}]', Invalid, r"\(x\) context 1 \(a\): public"),
        ("a = [", Invalid, "entries.toml: "),
        ('site = [{domain = "x"}]', NotFound, "Site not found: x"),
        ('key = [{name = "x", kind = "admin", token_file = "a"}]', Invalid, "Declare an organization first"),
        ('person = [{email = "x", operator = true}]', Invalid, "Not an email address"),
        ('webhook = [{url = "https://x.example", url_env = "U"}]', Invalid, "url or url_env"),
        ('webhook = [{url_env = "NOT_SET"}]', Invalid, "NOT_SET is not set"),
        ('webhook = [{url_env = "whsec_="}]', Invalid, "name of an environment variable"),
    ],
)
async def test_mistakes_are_reported_with_their_place(operator, store, text, kind, says):
    with pytest.raises(kind, match=says):
        await operator.apply(text)
    assert await store.head() == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('key = [{name = "CI"}, {name = " CI "}]', "earlier entry"),
        ('key = [{name = "CI", kind = "admin", scope = "all"}]', "scope of the key CI cannot change"),
        ('key = [{name = "New", kind = "admin"}]', "token_file"),
        ('key = [{name = "New", token_file = "x"}]', "admin or assistant"),
        ('key = [{name = "New", kind = "admin", token_file = "no/x"}]', "does not exist"),
        ('key = [{name = "New", kind = "admin", token_file = "x", expires_days = 8}]', "7, 30, 60, 90"),
        ('key = [{name = "New", kind = "admin", token_file = "x", origins = ["x.example"]}]', "browser"),
        ('key = [{name = "New", kind = "assistant", domains = ["no"], token_file = "x"}]', "Site not found: no"),
        ('project = [{domain = "guide", code_host = "github"}]', "cannot change to github"),
        ('project = [{domain = "guide", labels = ["a,b"]}]', "without a comma"),
        ('project = [{domain = "guide", context = [{name = "new"}]}]', "needs its repository"),
        ('project = [{domain = "new"}]', "repository or a website"),
        ('webhook = [{url = "https://example.com/new"}]', "secret_file"),
        ('webhook = [{url = "http://example.com/new", secret_file = "x"}]', "https"),
        ('webhook = [{url_env = "HOOK_URL", project = "guide", secret_env = "HOOK_SECRET"}]', "cannot change"),
        ('person = [{email = "ada@example.com"}]', "needs a role"),
        ('site = [{domain = "live", accent = "red"}]', "not a colour"),
        ('person = [{email = "ada@example.com", organization = "Other", role = "owner"}]', "Organization not found"),
    ],
)
async def test_entries_that_do_not_fit_change_nothing(operator, store, text, says):
    await operator.apply(WHOLE)
    head = await store.head()
    right = 'person = [{email = "new@example.com", role = "viewer"}]'
    with pytest.raises(ServiceError, match=says):
        await operator.apply(f"{text}\n{'' if text.startswith('person') else right}")
    assert await store.head() == head


async def test_paid_site_without_a_bound_stays_private(operator):
    operator.payment = PaymentView("paid", 0.0, "paid costs money, and there is no cost limit a day.")
    with pytest.raises(Invalid, match="stays private"):
        await operator.plan(WHOLE)
    assert done(await operator.apply(WHOLE.replace("public = true", "public = false")))
