"""Somebody pushes while a job works: with git itself, over HTTP, to the embedded code host."""

import asyncio
import json
import re

import pytest

from tests.end_to_end.talk import create_job, get_job, job_events
from tests.end_to_end.test_crashes import with_model
from tests.fakes.provider import Call, ScriptedProvider
from tests.service_process import service_in, write_docs


@pytest.fixture
async def provider():
    async with ScriptedProvider() as provider:
        yield provider


@pytest.fixture
async def serving(tmp_path, provider):
    with service_in(tmp_path, with_model(provider)) as service:
        await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs"), index=False)
        await asyncio.to_thread(service.start)
        yield service


@pytest.fixture
def clone(serving, tmp_path, git):
    """Another person's clone: push a text to a path on a branch from it."""
    url = serving.url.replace("http://", f"http://docsmith:{serving.admin_key}@")
    folder = tmp_path / "clone"
    git("clone", "-q", f"{url}/hosted/{serving.project_id}.git", str(folder))

    def push(branch, path, text):
        git("-C", str(folder), "fetch", "-q")
        git("-C", str(folder), "checkout", "-q", "-B", branch, f"origin/{branch}")
        (folder / path).write_text(text)
        git("-C", str(folder), "add", path)
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
        git(*who, "-C", str(folder), "commit", "-q", "-m", f"Change {path}")
        git("-C", str(folder), "push", "-q", "origin", branch)
        return git("-C", str(folder), "rev-parse", "HEAD").strip()

    return push


def called(name, number, **arguments):
    return Call(name, (json.dumps(arguments),), id=f"call_{number}")


def edit(provider, held=None, *, old="20 MB", new="25 MB"):
    """One reply that edits and finishes, held back while somebody does something."""
    calls = (
        called("replace", 1, path="install.md", old=old, new=new),
        called("finish", 2, title="Correct the size", summary="It needs more."),
    )
    provider.will_reply("…", "…", calls=calls, **({"after": 1, "hold": held} if held else {}))


async def pushed_meanwhile(http, serving, provider, prompt, push):
    """A job during whose reply something is pushed; how it ended, and its events."""
    held = asyncio.Event()
    edit(provider, held)
    job = await create_job(http, serving, prompt)
    await provider.next_asked()
    theirs = await asyncio.to_thread(push)
    held.set()
    events = await job_events(http, serving, job["id"])
    return await get_job(http, serving, job["id"]), events, theirs


def hosted(serving, git):
    return lambda *arguments: git("-C", str(serving.data / "hosted" / f"{serving.project_id}.git"), *arguments)


async def test_job_is_rebased_on_what_was_pushed_to_main_meanwhile(http, serving, provider, clone, git):
    done, events, theirs = await pushed_meanwhile(
        http, serving, provider, "Correct it: it needs 25 MB", lambda: clone("main", "retry.md", "# Theirs\n")
    )
    assert (done["status"], done["failure"]) == ("completed", None)
    show = hosted(serving, git)
    assert show("rev-parse", f"{done['branch']}^").strip() == theirs
    assert show("show", f"{done['branch']}:retry.md") == "# Theirs\n"
    assert "25 MB" in show("show", f"{done['branch']}:install.md")
    assert "work-rebased" in [event["type"] for event in events]
    reproduced = await asyncio.to_thread(serving.cli, "audit", "reproduce", done["id"])
    assert reproduced["same"] is True


def resolve(provider, text):
    """One reply that writes the file in which there are conflicts."""
    calls = (
        called("write", 1, path="install.md", text=text),
        called("finish", 2, title="Correct the size", summary="Both were right."),
    )
    provider.will_reply("…", "…", calls=calls)


async def test_conflict_with_a_push_to_main_goes_to_the_model(http, serving, provider, clone, git):
    held = asyncio.Event()
    edit(provider, held)
    resolve(provider, "It needs 25 MB.\n")
    job = await create_job(http, serving, "Correct it: it needs 25 MB")
    await provider.next_asked()
    theirs = await asyncio.to_thread(lambda: clone("main", "install.md", "It needs 21 MB.\n"))
    held.set()
    await job_events(http, serving, job["id"])
    done = await get_job(http, serving, job["id"])
    assert (done["status"], done["failure"]) == ("completed", None)
    show = hosted(serving, git)
    assert show("show", f"{done['branch']}:install.md") == "It needs 25 MB.\n"
    assert show("rev-parse", f"{done['branch']}^").strip() == theirs


async def test_message_merges_main_into_the_pull_request(http, serving, provider, clone, git):
    edit(provider)
    job = await create_job(http, serving, "Correct it: it needs 25 MB")
    await job_events(http, serving, job["id"])
    theirs = await asyncio.to_thread(lambda: clone("main", "install.md", "It needs 21 MB.\n"))
    async with http.get((await get_job(http, serving, job["id"]))["prLink"]) as response:
        assert "send it a message such as “Merge main”" in await response.text()
    resolve(provider, "It needs 21 to 25 MB.\n")
    url = f"{serving.url}/v2/agent/{serving.project_id}/job/{job['id']}/message"
    async with http.post(url, json={"prompt": "Merge main"}, headers=serving.admin) as response:
        assert response.status == 200
    events = await job_events(http, serving, job["id"])
    done = await get_job(http, serving, job["id"])
    assert (done["outcome"], done["problems"]) == ("pull_request", [])
    show = hosted(serving, git)
    assert show("rev-parse", f"{done['branch']}^2").strip() == theirs
    assert show("show", f"{done['branch']}:install.md") == "It needs 21 to 25 MB.\n"
    merged = next(event for event in events if event["type"] == "base-merged")
    assert [(one["path"], one["kind"]) for one in merged["conflicts"]] == [("install.md", "changed")]
    async with http.get(done["prLink"]) as response:
        page = await response.text()
    assert "Cannot be merged" not in page
    async with http.get(done["prLink"] + "/" + re.findall(r'/(rendered/1-[0-9a-f-]+)"', page)[0]) as response:
        assert '<ins class="prose"><p>It needs 21 to 25 MB.</p>' in await response.text()
    async with http.get(done["prLink"] + "/job") as response:
        steps = await response.text()
    assert "1 conflict" in steps
    assert "install.md" in steps
    assert not any(words in steps for words in ("Correct it: it needs 25 MB", "Merge main", "21 MB", "Both were right"))
    reproduced = await asyncio.to_thread(serving.cli, "audit", "reproduce", done["id"])
    assert reproduced["same"] is True


async def test_a_further_round_builds_on_a_reviewers_commit(http, serving, provider, clone, git):
    edit(provider)
    job = await create_job(http, serving, "Correct it: it needs 25 MB")
    await job_events(http, serving, job["id"])
    job = await get_job(http, serving, job["id"])
    theirs = await asyncio.to_thread(clone, job["branch"], "retry.md", "# A reviewer's\n")
    edit(provider, old="25 MB", new="26 MB")
    url = f"{serving.url}/v2/agent/{serving.project_id}/job/{job['id']}/message"
    async with http.post(url, json={"prompt": "26, I think"}, headers=serving.admin) as response:
        assert response.status == 200
    await job_events(http, serving, job["id"])
    done = await get_job(http, serving, job["id"])
    assert (done["status"], done["prLink"]) == ("completed", job["prLink"])
    show = hosted(serving, git)
    assert show("rev-parse", f"{done['branch']}^").strip() == theirs
    assert show("show", f"{done['branch']}:retry.md") == "# A reviewer's\n"
    show("fsck", "--strict")
