"""The steps of the GitHub Action, run as the runner's shell does, against a real service and a small GitHub."""

import asyncio
import json
import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.end_to_end.test_crashes import with_model
from tests.fakes.provider import ScriptedProvider
from tests.service_process import service_in, write_docs

ORIGINAL = Path(__file__).parent.parent.parent / ".github" / "actions" / "docsmith"
DESCRIPTION = yaml.safe_load((ORIGINAL / "action.yml").read_text(encoding="utf-8"))
SECRET = "ghs_of_a_workflow"
FIX = 'Replace "20 MB" with "23 MB" in install.md'

pytestmark = pytest.mark.slow


def test_inputs_reach_the_shell_as_variables_only():
    steps = DESCRIPTION["runs"]["steps"]
    assert len(steps) == 3
    for step in steps:
        assert "${{" not in step["run"]
        assert step["shell"] == "bash"


class FakeIssues:
    """The comments of GitHub's issues."""

    def __init__(self):
        self.comments, self.calls = [], []
        app = web.Application()
        app.router.add_get("/repos/octo/guide/issues/{number}/comments", self.list)
        app.router.add_post("/repos/octo/guide/issues/{number}/comments", self.create)
        app.router.add_patch("/repos/octo/guide/issues/comments/{id}", self.change)
        self.server = TestServer(app)

    async def list(self, request):
        assert request.headers["Authorization"] == f"Bearer {SECRET}"
        first = (int(request.query["page"]) - 1) * 100
        return web.json_response(self.comments[first : first + 100])

    async def create(self, request):
        self.calls.append(("POST", request.match_info["number"]))
        self.comments.append({"id": len(self.comments), **(await request.json())})
        return web.json_response(self.comments[-1], status=201)

    async def change(self, request):
        self.calls.append(("PATCH", request.match_info["id"]))
        self.comments[int(request.match_info["id"])] |= await request.json()
        return web.json_response({})


@pytest.fixture
async def github():
    fake = FakeIssues()
    async with fake.server:
        yield fake


@dataclass
class Run:
    """One run of a workflow, which may be repeated."""

    folder: Path
    action: Path
    inputs: dict[str, str]
    github: FakeIssues
    id: str = "7001"
    attempt: int = 0
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    log: str = ""
    summary: str = ""

    async def repeat(self):
        """Run the steps; return whether all went well."""
        self.attempt += 1
        self.outputs, self.log, went_well = {}, "", True
        for step in DESCRIPTION["runs"]["steps"]:
            wanted = step.get("if", "")
            if not (went_well or wanted.startswith("always()")) or not self._holds(wanted):
                continue
            went_well = await self._step(step) and went_well
        return went_well

    def _value(self, text):
        defaults = {name: one.get("default", "") for name, one in DESCRIPTION["inputs"].items()}
        inputs = {**defaults, "github-token": SECRET, **self.inputs}

        def value(found):
            match found[1].split("."):
                case ["inputs", name]:
                    return inputs[name]
                case ["steps", step, "outputs", name]:
                    return self.outputs.get(step, {}).get(name, "")

        return re.sub(r"\${{ ([\w.-]+) }}", value, text)

    def _holds(self, condition):
        parts = [part for part in condition.split(" && ") if part not in ("", "always()")]
        for part in parts:
            name, operator, wanted = part.split()
            is_equal = self._value(f"${{{{ {name} }}}}") == wanted.strip("'")
            if is_equal != (operator == "=="):
                return False
        return True

    async def _step(self, step):
        files = {name: self.folder / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        environment = {
            "PATH": os.environ["PATH"],
            "no_proxy": "127.0.0.1",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(self.action),
            "GITHUB_API_URL": str(self.github.server.make_url("")).rstrip("/"),
            "GITHUB_EVENT_PATH": str(self.folder / "event.json"),
            "GITHUB_REPOSITORY": "octo/guide",
            "GITHUB_RUN_ATTEMPT": str(self.attempt),
            "GITHUB_RUN_ID": self.id,
            "GITHUB_SERVER_URL": "https://github.example",
            **{name: str(file) for name, file in files.items()},
            **{name: self._value(text) for name, text in step["env"].items()},
        }
        process = await asyncio.create_subprocess_exec(
            *("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]),
            cwd=self.folder,
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        self.log += said.decode()
        outputs = re.findall(
            r"^([\w-]+)<<(\w+)\n(.*?)\n\2$", files["GITHUB_OUTPUT"].read_text(), re.MULTILINE | re.DOTALL
        )
        self.outputs[step["id"]] = {name: value for name, _, value in outputs}
        self.summary += files["GITHUB_STEP_SUMMARY"].read_text()
        return process.returncode == 0


@pytest.fixture(scope="session")
def copied_action(tmp_path_factory):
    """The action in another repository, as a person copied it there: its files are not executable."""
    folder = tmp_path_factory.mktemp("action")
    for file in ORIGINAL.iterdir():
        shutil.copyfile(file, folder / file.name)
    return folder


@pytest.fixture
def run(service, github, tmp_path, copied_action):
    for tool in ("bash", "curl", "git", "jq"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is missing: install it to run the action")
    (tmp_path / "event.json").write_text('{"pull_request": {"number": 5}}')

    def run(prompt, **more):
        given = {"url": service.url, "key": service.admin_key, "project": service.project_id, "comment": "true"}
        inputs = {**given, "prompt": prompt, **{name.replace("_", "-"): one for name, one in more.items()}}
        return Run(tmp_path, copied_action, inputs, github)

    return run


async def test_run_creates_waits_and_comments_once(run, github, service):
    github.comments = [{"id": number, "body": "Thanks"} for number in range(120)]
    first = run(FIX)
    assert await first.repeat(), first.log
    done, job = first.outputs["wait"], first.outputs["create"]["job-id"]
    assert (done["status"], done["outcome"]) == ("completed", "pull_request")
    assert done["pull-request"].startswith(service.url)
    assert github.calls == [("POST", "5")]
    assert github.comments[-1]["body"].startswith(
        f"<!-- docsmith job {job} -->\n\n**Docsmith** opened a pull request: "
    )
    assert done["pull-request"] in first.summary
    assert f"::add-mask::{service.admin_key}" in first.log
    assert first.log.count(service.admin_key) == 2  # the masks of two steps
    assert SECRET not in first.log
    assert await first.repeat(), first.log
    assert first.outputs["create"]["job-id"] == job
    assert github.calls[1:] == [("PATCH", "120")]
    other = run(FIX)
    other.id = "7002"
    await other.repeat()
    assert other.outputs["create"]["job-id"] != job


async def test_hostile_prompt_is_text(run, tmp_path, service, http):
    prompt = 'Replace "$(touch a)" `touch b`; touch c\n::set-output name=x::y\n##[error]no\n\'"; touch d #'
    one = run(prompt, comment="false", context='${{ secrets.KEY }} \\u0000 "', branch="$(touch e)")
    await one.repeat()
    job = one.outputs["create"]["job-id"]
    assert {file.name for file in tmp_path.iterdir()} <= {"event.json", "github_output", "github_step_summary"}
    url = f"{service.url}/v2/agent/{service.project_id}/job/{job}/steps"
    async with http.get(url, headers=service.admin) as response:
        assert json.dumps(prompt)[1:-1] in await response.text()
    outside = re.sub(r"::stop-commands::(\w+)\n.*?\n::\1::", "", one.log, flags=re.DOTALL)
    assert not re.search(r"::set-output|##\[", outside)


async def test_failed_job_fails_the_run_and_a_repeat_retries_it(run, github, http, tmp_path):
    async with ScriptedProvider() as provider:
        with service_in(tmp_path / "scripted", with_model(provider)) as service:
            await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs"))
            await asyncio.to_thread(service.start)
            one = run("Think about it", url=service.url, key=service.admin_key, project=service.project_id)
            provider.will_reply("Hm", "…", after=1, hold=asyncio.Event())
            running = asyncio.create_task(one.repeat())
            await provider.next_asked()
            jobs = f"{service.url}/v2/agent/{service.project_id}/job"
            async with http.get(f"{jobs}s", headers=service.admin) as response:
                job = (await response.json())["jobs"][0]["id"]
            async with http.post(f"{jobs}/{job}/cancel", headers=service.admin) as response:
                assert response.status == 200
            assert not await running
            assert re.search(r"^::error title=Docsmith::The job failed: .*\(cancelled\)$", one.log, re.MULTILINE)
            assert "did not finish the job." in github.comments[0]["body"]
            for _ in range(4):  # the agent asks again before it takes words for the end of the work
                provider.will_reply("Nothing to do.")
            assert await one.repeat(), one.log
            assert one.outputs["create"]["job-id"] == job
            assert one.outputs["wait"]["status"] == "completed"
            assert len(github.comments) == 1
            assert "did not finish the job." not in github.comments[0]["body"]


async def test_job_that_goes_on_is_awaited_by_a_repeat(run):
    one = run(FIX, timeout_minutes="0", comment="false")
    assert await one.repeat(), one.log
    assert one.outputs["wait"]["status"] in ("active", "completed")
    one.inputs["timeout-minutes"] = "5"
    assert await one.repeat(), one.log
    assert one.outputs["wait"]["status"] == "completed"


async def test_service_that_refuses_ends_the_run_with_its_words(run, service):
    wrong = run("Fix it", key="docsmith_wrong")
    assert not await wrong.repeat()
    assert re.search(r"^::error title=Docsmith::.*\(unauthorized\): status 401$", wrong.log, re.MULTILINE)
    assert wrong.outputs["create"] == {}
    for given in ({"project": "../x"}, {"key": 'a" \n url="x'}):
        assert not await run("Fix it", **given).repeat()


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "docs.example.com", "", "http://docs.example.com", "http://localhost@docs.example.com",
        "http://127.0.0.1.example.com", "http://localhost:80@docs.example.com/", "HTTP://docs.example.com",
    ],
)  # fmt: skip
async def test_invalid_url_is_refused_without_a_request(run, url):
    wrong = run("Fix it", url=url)
    assert not await wrong.repeat()
    assert "::error title=Docsmith::The input url is invalid" in wrong.log
    assert "cannot be reached" not in wrong.log


@pytest.fixture
async def answers():
    """What a server says, by method, that is no Docsmith; and its address."""
    said = {}

    async def answer(request):
        return web.json_response(said[request.method], status=201 if request.method == "POST" else 200)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        yield said, str(server.make_url("")).rstrip("/")


async def test_answers_of_another_server_are_no_commands(run, github, answers):
    said, url = answers
    for job in ("x\n::add-mask::y", "../../x", "x --> y", "", None):
        said["POST"] = {"id": job, "status": "active"}
        one = run("Fix it", url=url)
        assert not await one.repeat()
        assert "::add-mask::y" not in one.log
        assert one.outputs == {"create": {}}
    said["POST"] = {"id": "job-1", "status": "active"}
    said["GET"] = {
        "title": "a\n::error::b", "status": "completed", "outcome": "pull_request", "message": "@all\n<!-- c",
        "prLink": "https://x.example/<img>@all\nx=y", "failure": None, "waiting": None,
    }  # fmt: skip
    one = run("Fix it", url=url, timeout_minutes="08")
    assert await one.repeat(), one.log
    assert set(one.outputs["wait"]) == {"status", "outcome", "pull-request", "message"}
    assert not re.search("<img|<!-- c|@all", github.comments[0]["body"] + one.summary.replace("@all", ""))
    outside = re.sub(r"::stop-commands::(\w+)\n.*?\n::\1::", "", one.log, flags=re.DOTALL)
    assert "::error::" not in outside


async def test_key_of_two_lines_is_not_shown(run):
    one = run("Fix it", key="docsmith_first\ndocsmith_second")
    assert not await one.repeat()
    assert "docsmith_" not in one.log


async def test_workflow_without_a_pull_request_comments_on_none(run, github, tmp_path):
    (tmp_path / "event.json").write_text('{"ref": "refs/heads/main"}')
    one = run(FIX)
    assert await one.repeat(), one.log
    assert github.calls == []
