"""A message merges the documentation's branch into a pull request on somebody else's code host, over git's own HTTP."""

import asyncio

import pytest

from tests.end_to_end.talk import get_job, job_events
from tests.end_to_end.test_code_hosts import PATHS, cli, finished, setting  # noqa: F401 - a fixture
from tests.fakes.git_server import GIT, git

pytestmark = [
    pytest.mark.skipif(GIT is None, reason="asks git itself; install git to run it"),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest.mark.parametrize(("kind", "reviewed"), [("gitea", True), ("gitlab", False), ("github", True)])
async def test_message_merges_main_on_the_code_host(setting, kind, reviewed):  # noqa: F811
    served, clone = setting.server.root / PATHS[kind], setting.folder / f"clone-{kind}"

    def commit(branch, path, change):
        git("checkout", "-q", "-B", branch, f"origin/{branch}", cwd=clone)
        (clone / path).write_text(change((clone / path).read_text()))
        git("commit", "-qam", f"Change {path}", cwd=clone)
        git("push", "-q", "origin", branch, cwd=clone)
        return git("rev-parse", "HEAD", cwd=clone)

    done = await finished(setting, kind, 'Replace "20 MB" with "25 MB" in install.md')
    await asyncio.to_thread(git, "clone", "-q", str(served), str(clone))
    head = git("rev-parse", done["branch"], cwd=served)
    if reviewed:  # where the branches parted is then asked of the history
        head = commit(done["branch"], "retry.md", lambda text: f"{text}\nA reviewer's line.\n")
    commit("main", "index.md", lambda text: f"{text}\nOthers' line.\n")
    theirs = commit("main", "install.md", lambda text: text.replace("20 MB", "21 MB"))
    url = f"{setting.service.url}/v2/agent/{setting.projects[kind]['id']}/job/{done['id']}/message"
    async with setting.http.post(url, json={"prompt": "keep ours"}, headers=setting.service.admin) as response:
        assert response.status == 200
    await job_events(setting.http, setting.service, done["id"])
    done = await get_job(setting.http, setting.service, done["id"])
    assert (done["outcome"], done["problems"]) == ("pull_request", [])
    assert git("rev-parse", f"{done['branch']}^1", f"{done['branch']}^2", cwd=served).split() == [head, theirs]
    assert "25 MB" in git("show", f"{done['branch']}:install.md", cwd=served)
    assert "Others' line." in git("show", f"{done['branch']}:index.md", cwd=served)
    assert ("A reviewer's line." in git("show", f"{done['branch']}:retry.md", cwd=served)) is reviewed
    assert git("merge-base", "main", done["branch"], cwd=served) == theirs
    assert (await cli(setting, "audit", "reproduce", done["id"]))["same"] is True
