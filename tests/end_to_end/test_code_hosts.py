"""Projects on somebody else's code host, from the command line to the pull request: git over HTTP and the host's API.

Each process takes a second to start, so there is one service, for one project on each host.
"""

import asyncio
import json
from types import SimpleNamespace

import aiohttp
import pytest
import pytest_asyncio

from service.adapters.git.folder import import_folder
from service.adapters.git.repositories import create
from tests.end_to_end.talk import create_job, files_with, get_job, job_events, recorded
from tests.fakes.git_server import GIT, GitServer, git
from tests.fakes.gitea import FakeGitea
from tests.fakes.github import FakeGitHub
from tests.fakes.gitlab import FakeGitLab
from tests.fakes.hooks import sample, signed
from tests.service_process import service_in, write_docs

pytestmark = [
    pytest.mark.skipif(GIT is None, reason="asks git itself; install git to run it"),
    pytest.mark.asyncio(loop_scope="module"),
]

TOKEN = "gt-s3cret-t0ken"
PATHS = {"gitea": "octo/guide.git", "gitlab": "group/sub/guide.git", "github": "hub/octo/guide.git"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def setting(tmp_path_factory):
    """The service with its projects, the fakes and the git server."""
    folder = tmp_path_factory.mktemp("code-hosts")
    docs = write_docs(folder / "docs")
    for path in PATHS.values():
        create(folder / "served" / path, lambda made: import_folder(made, docs, "main"), branch="main")
    (folder / "token").write_text(f"{TOKEN}\n")
    server = GitServer(folder / "served", password=TOKEN)

    def branches(kind):
        listed = git("for-each-ref", "--format=%(refname:short) %(objectname)", cwd=folder / "served" / PATHS[kind])
        return dict(line.split() for line in listed.splitlines())

    gitea, gitlab, github = (
        FakeGitea(lambda: branches("gitea"), token=TOKEN),
        FakeGitLab(lambda: branches("gitlab"), token=TOKEN),
        FakeGitHub(token=TOKEN),
    )
    environment = {"GUIDE_TOKEN_FILE": str(folder / "token"), "WRONG": "wr0ng"}
    async with server.server, gitea.server, gitlab.server, github.server, aiohttp.ClientSession() as http:
        with service_in(folder / "service", environment) as service:
            here = SimpleNamespace(
                service=service, http=http, server=server, folder=folder, projects={}, secrets={},
                fakes={"gitea": gitea, "gitlab": gitlab, "github": github},
                apis={"gitea": f"{gitea.url}/api/v1", "gitlab": f"{gitlab.url}/api/v4", "github": github.url},
            )  # fmt: skip
            await cli(here, "organization", "create", "--name", "Acme")
            for kind in PATHS:
                here.projects[kind] = await cli(
                    here, "project", "create", "--name", kind, "--repository", server.url(PATHS[kind]),
                    "--code-host", kind, "--api-url", here.apis[kind], "--git-token-env", "GUIDE_TOKEN",
                )  # fmt: skip
                made = await cli(here, "webhook", "incoming", here.projects[kind]["id"])
                here.secrets[kind] = made["secret"]
            service.admin_key = (await cli(here, "key", "create", "--kind", "admin"))["token"]
            await asyncio.to_thread(service.start)
            yield here


async def cli(here, *arguments):
    return await asyncio.to_thread(here.service.cli, *arguments)


async def said(here, *arguments):
    """What a command that fails says."""
    done = await asyncio.to_thread(here.service.run, *arguments)
    assert done.returncode == 1, done.stdout
    return done.stderr


async def finished(here, kind, instruction):
    here.service.project_id = here.projects[kind]["id"]
    job = await create_job(here.http, here.service, instruction)
    await job_events(here.http, here.service, job["id"])
    return await get_job(here.http, here.service, job["id"])


@pytest.mark.parametrize(
    ("kind", "page"), [("gitea", "octo/guide/pulls"), ("gitlab", "group/sub/guide/-/merge_requests")]
)
async def test_a_job_ends_in_one_pull_request_there(setting, kind, page):
    done = await finished(setting, kind, 'Replace "20 MB" with "25 MB" in install.md')
    assert done["failure"] is None
    assert done["prLink"] == f"{setting.fakes[kind].url}/{page}/1"
    changed = git("diff", "--stat", "main", done["branch"], cwd=setting.server.root / PATHS[kind])
    assert "install.md" in changed
    assert files_with(TOKEN.encode(), setting.folder / "service") == []  # the data folder and the server's output


@pytest.mark.parametrize(
    ("kind", "hook"),
    [
        ("gitea", "gitea-review"),
        ("gitlab", "gitlab-merge-request-note"),
        ("github", "github-review-comment"),
    ],
)
async def test_comment_on_a_line_is_carried_out_and_answered(setting, kind, hook):
    first = await finished(setting, kind, 'Replace "run the installer" with "call the installer" in install.md')
    assert "mentions `@docsmith`" in (await description_of(setting, kind, first))
    people, number = setting.fakes[kind].people, int(first["prLink"].rpartition("/")[2])
    text = '@docsmith replace "call the installer" with "start the installer" in install.md'
    await people.say_on_line(number, text, path="install.md", line=3)
    await people.say(number, "@docsmith delete everything", author="eve")
    headers, body = signed(hook, setting.secrets[kind], **numbered(hook, number))
    for _ in range(2):  # the host repeats it
        await post_hook(setting, kind, headers, body)
    await recorded(setting.service, f"job-{first['id']}", until="comment-answered")
    events = await job_events(setting.http, setting.service, first["id"])
    assert [event["reason"] for event in events if event["type"] == "comment-ignored"] == ["no_write_access"]
    (message,) = [event for event in events if event["type"] == "message-added"]
    assert (message["comment"]["author"], message["comment"]["path"]) == ("ada", "install.md")
    (ours,) = [one for one in people.comments if "docsmith-answer" in one.text and one.number == number]
    asked = next(one for one in people.comments if one.text == text)
    assert (ours.author, ours.thread) == ("docsmith", asked.thread)
    page = git("show", f"{first['branch']}:install.md", cwd=setting.server.root / PATHS[kind])
    assert "start the installer" in page


async def test_kill_while_an_answer_is_posted_posts_it_once(setting):
    done = await finished(setting, "github", 'Replace "run the installer" with "open the installer" in install.md')
    hub, number, there = setting.fakes["github"], int(done["prLink"].rpartition("/")[2]), asyncio.Event()

    async def stall():
        there.set()
        await asyncio.Event().wait()  # until its caller is gone

    hub.on_answer = stall
    await hub.people.say(number, '@docsmith replace "open the installer" with "use the installer" in install.md')
    headers, body = signed(
        "github-issue-comment", setting.secrets["github"], issue={"number": number, "pull_request": {}}
    )
    headers["X-GitHub-Delivery"] = "another"
    await post_hook(setting, "github", headers, body)
    await asyncio.wait_for(there.wait(), 60)
    await asyncio.to_thread(setting.service.kill)
    await asyncio.to_thread(setting.service.start)
    await recorded(setting.service, f"job-{done['id']}", until="comment-answered")
    assert len([one for one in hub.people.of(number) if "docsmith-answer" in one.text]) == 1
    events = await job_events(setting.http, setting.service, done["id"])
    assert [event["type"] for event in events].count("message-added") == 1


async def description_of(here, kind, job):
    fake, number = here.fakes[kind], int(job["prLink"].rpartition("/")[2])
    shown = (fake.merge_requests if kind == "gitlab" else fake.pulls)[number - 1]
    return shown["description" if kind == "gitlab" else "body"]


async def post_hook(here, kind, headers, body):
    url = f"{here.service.url}/hooks/{here.projects[kind]['id']}"
    async with here.http.post(url, data=body, headers=dict(headers)) as answer:
        assert answer.status == 202


def numbered(hook, number):
    """The fields of a sample that name the pull request, with another number."""
    _, body = sample(hook)
    name = "merge_request" if "merge_request" in json.loads(body) else "pull_request"
    shown = json.loads(body)[name]
    changed = {name: {**shown, "iid": number, "number": number}}
    return {**changed, "number": number} if hook == "gitea-review" else changed


async def test_refusal_by_the_code_host_is_the_jobs_failure(setting):
    setting.fakes["gitea"].token = "another"
    try:
        done = await finished(setting, "gitea", 'Replace "20 MB" with "30 MB" in install.md')
    finally:
        setting.fakes["gitea"].token = TOKEN
    assert (done["status"], done["failure"]["code"], done["prLink"]) == ("failed", "token_refused", None)
    assert "Make a new one" in done["failure"]["message"]


async def test_doctor_names_what_a_token_lacks(setting):
    setting.fakes["gitea"].may_ask_rights = False
    try:
        findings = (await asyncio.to_thread(setting.service.cli, "doctor", status=1))["findings"]
    finally:
        setting.fakes["gitea"].may_ask_rights = True
    said = {one["name"]: one for one in findings if one["name"].startswith("code host of ")}
    assert said["code host of gitea"]["level"] == "note"
    assert "comments on pull requests are not read" in said["code host of gitea"]["says"]
    assert said["code host of github"]["level"] == "ok"


async def test_a_project_is_changed_and_shown(setting):
    assert "no branch 'nowhere'" in await said(setting, "project", "update", "gitlab", "--ref", "nowhere")
    changed = await cli(
        setting, "project", "update", "gitlab", "--name", "Handbook", "--label", "docs", "--reviewer", "@ada"
    )
    assert (changed["name"], changed["labels"], changed["reviewers"]) == ("Handbook", ["docs"], ["ada"])
    shown = await asyncio.to_thread(setting.service.run, "project", "show", changed["id"])
    assert "reviewers           ada\n" in shown.stdout
    assert TOKEN not in json.dumps(changed) + shown.stdout


async def test_a_token_that_the_host_refuses_makes_no_project(setting):
    words = await said(
        setting, "project", "create", "--name", "Two", "--repository", setting.server.url(PATHS["gitea"]),
        "--ref", "main", "--code-host", "gitea", "--api-url", setting.apis["gitea"], "--git-token-env", "WRONG",
    )  # fmt: skip
    assert "Gitea refuses the token" in words
    assert "wr0ng" not in words


async def test_renamed_default_branch_is_followed_unless_one_was_chosen(setting):
    repository = setting.server.root / PATHS["gitea"]
    setting.projects["chosen"] = await cli(
        setting, "project", "create", "--name", "chosen", "--repository", setting.server.url(PATHS["gitea"]),
        "--code-host", "gitea", "--api-url", setting.apis["gitea"], "--git-token-env", "GUIDE_TOKEN", "--ref", "main",
    )  # fmt: skip
    git("branch", "-m", "main", "trunk", cwd=repository)
    done = await finished(setting, "gitea", 'Create page renamed.md with title "Renamed" and text "Here."')
    assert (done["failure"], done["outcome"]) == (None, "pull_request")
    assert setting.fakes["gitea"].pulls[-1]["base"] == "trunk"
    rows = await cli(setting, "project", "list")
    known = {row["name"]: (row["ref"], row["follows"]) for row in rows["projects"]}
    assert known["gitea"] == ("trunk", ["main", "trunk"])
    failed = await finished(setting, "chosen", 'Create page renamed.md with title "Renamed" and text "Here."')
    assert failed["failure"]["code"] == "no_such_branch"
    assert "docsmith project update SITE --ref BRANCH" in failed["failure"]["message"]
    await cli(setting, "project", "update", "chosen", "--ref", "trunk")
    for _ in range(20):  # the service sees what another process wrote a moment later
        done = await finished(setting, "chosen", 'Create page other.md with title "Other" and text "Here."')
        if done["failure"] is None:
            break
    assert (done["failure"], done["outcome"]) == (None, "pull_request")
