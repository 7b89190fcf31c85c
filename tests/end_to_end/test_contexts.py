"""Two repositories, documentation and code: the documentation is brought up to date with the code's last change."""

import json

import pytest

from tests.end_to_end.talk import create_job, get_job, job_events
from tests.fakes.provider import Asked, Call, Reply, ScriptedProvider
from tests.service_process import free_port, service_in, write_docs

PAGE = "# Flying\n\nCall `fly(height)`. It takes a height.\n"
KITE = '"""Kites."""\n\n\ndef fly({arguments}):\n    """Let a kite rise."""\n    return height\n'


def call(tool, **arguments):
    return Call(tool, (json.dumps(arguments),))


STEPS = (
    Reply((), (call("history", path="@code"),)),
    Reply((), (call("diff", path="@code"), call("search", query="fly"))),
    Reply((), (call("replace", path="flying.md", old="`fly(height)`", new="`fly(height, max_wind=5)`"),)),
    Reply((), (call("finish", title="Document max_wind", summary="`fly` takes it now."),)),
)


def play(asked: Asked) -> Reply:
    return STEPS[sum(message["role"] == "assistant" for message in asked.body["messages"])]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    port = free_port()
    environment = {
        "SCRIPTED_KEY": "sk-scripted",
        "DOCSMITH_AGENT__MODEL": "scripted",
        "DOCSMITH_MODELS__SCRIPTED__MODEL": "openai/gpt-5.2",
        "DOCSMITH_MODELS__SCRIPTED__API_BASE": f"http://127.0.0.1:{port}/v1",
        "DOCSMITH_MODELS__SCRIPTED__API_KEY_ENV": "SCRIPTED_KEY",
    }
    folder = tmp_path_factory.mktemp("contexts")
    with service_in(folder, environment) as service:
        service.set_up(write_docs(folder / "docs", {"index.md": "# Kites\n", "flying.md": PAGE}))
        service.start()
        yield service, port, folder


async def test_docs_follow_the_last_change_of_the_code(http, served, git):
    service, port, folder = served
    code = folder / "code"
    git("init", "-q", "-b", "main", str(code))
    for arguments, subject in (("height", "Let kites fly"), ("height, *, max_wind=5", "Limit the wind")):
        (code / "kite.py").write_text(KITE.format(arguments=arguments), encoding="utf-8")
        git("-C", str(code), "add", ".")
        git("-C", str(code), "-c", "user.name=Ada", "-c", "user.email=ada@localhost", "commit", "-q", "-m", subject)
    commit = git("-C", str(code), "rev-parse", "HEAD").strip()
    shown = service.cli("project", "update", "kite", "--context", f"code={code}", "--context-public", "code")
    assert [(one["name"], one["public"]) for one in shown["contexts"]] == [("code", True)]

    async with ScriptedProvider(play, port=port) as provider:
        job = await create_job(http, service, "Update the docs for the last change.")
        events = await job_events(http, service, job["id"])
    done = await get_job(http, service, job["id"])
    assert (done["status"], done["outcome"], done["problems"]) == ("completed", "pull_request", [])

    opened = next(event for event in events if event["type"] == "contexts-opened")
    assert opened["contexts"] == [{"name": "code", "ref": "main", "commit": commit}]
    assert f"contexts-opened  @code main at {commit[:12]}\n" in service.run("job", "watch", job["id"]).stdout
    seen = "\n".join(str(message.get("content")) for message in provider.asked[-1].body["messages"])
    assert f"@code/ is at commit {commit[:12]} of main" in seen
    assert f"{commit[:10]} " in seen
    assert "Limit the wind" in seen
    assert "-def fly(height):\n+def fly(height, *, max_wind=5):\n" in seen

    async with http.get(done["prLink"]) as page:
        text = await page.text()
    assert "Sources of what is new:" in text
    assert "kite.py" in text
    assert f"line 4, of <code>@code</code> at <code>{commit[:12]}</code>" in text.replace(
        "`@code`", "<code>@code</code>"
    )
    assert "def fly(height, *, max_wind=5):" in text
    assert str(code) not in text

    assert any(clone for folder in service.folders for clone in (folder / "repos").glob("*@code-*.git"))
    assert service.cli("project", "update", "kite", "--no-context", "code")["contexts"] == []
    assert not any(clone for folder in service.folders for clone in (folder / "repos").glob("*@code-*.git"))
