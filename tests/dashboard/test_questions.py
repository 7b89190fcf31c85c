"""The pages about readers: questions, conversations, gaps and analytics."""

import re

import aiohttp
import pytest

ANSWERED, UNANSWERED, ERASED = "How long is the retry delay?", "How to rotate zygomorphic certificates?", "Quux Xyzzy?"
SITE = "asked"
"""A site of these tests alone: others ask theirs, too."""
_ASKED: dict[str, str] = {}


@pytest.fixture(scope="module")
def site(service):
    """The site's project and its assistant key."""
    docs = str(service.data.parent / "docs")
    ours = ("--organization", service.organization_id)
    made = service.cli("project", "create", "--name", SITE, "--repository", docs, "--domain", SITE, *ours)
    service.cli("index", SITE)
    key = service.cli("key", "create", "--kind", "assistant", "--domain", SITE, *ours)
    return made["id"], key["token"]


@pytest.fixture
async def asked(service, site):
    """The threads of the site's questions, by their text: one that its pages answer, two that they do not."""
    if not _ASKED:
        for text in (ANSWERED, UNANSWERED, ERASED):
            _ASKED[text] = await ask(service, site, text)
    return _ASKED


async def ask(service, site, text):
    body = {"fp": "anonymous", "messages": [{"role": "user", "content": text}]}
    url = f"{service.url}/discovery/v2/assistant/{SITE}/message"
    headers = {"Authorization": f"Bearer {site[1]}"}
    async with aiohttp.ClientSession(headers=headers) as client, client.post(url, json=body) as answer:
        assert "[DONE]" in await answer.text()
        return answer.headers["X-Thread-Id"]


async def page(client, path, status=200):
    async with client.get(path) as answer:
        assert answer.status == status, await answer.text()
        assert answer.headers["Cache-Control"] == "no-store"
        return await answer.text()


async def posted(client, path, **form):
    async with client.post(path, data=form, allow_redirects=False) as answer:
        return answer.status, answer.headers.get("Location", ""), await answer.text()


@pytest.fixture
def base(service):
    return f"/dashboard/{service.organization_id}"


async def test_questions_are_listed_and_filtered(viewer, base, asked):
    everything = await page(viewer, f"{base}/questions")
    assert ANSWERED in everything
    assert UNANSWERED in everything
    gaps = await page(viewer, f"{base}/questions?outcome=unanswered&caller=api")
    assert ANSWERED not in gaps
    assert UNANSWERED in gaps
    assert "No question matches this filter." in await page(viewer, f"{base}/questions?rating=down&outcome=failed")
    assert "No question matches this filter." in await page(viewer, f"{base}/questions?site=of-others")
    assert UNANSWERED in await page(viewer, f"{base}/questions?outcome=what&days=minus&cursor=x")


async def test_questions_are_found_by_words_that_are_not_recorded(service, viewer, base, asked):
    words = UNANSWERED.split()
    found = await page(viewer, f"{base}/questions?text={words[-2]}+{words[-1].strip('?')}")
    assert UNANSWERED in found
    assert ANSWERED not in found
    assert "No question matches this filter." in await page(viewer, f"{base}/questions?text=ermentrude")
    assert "too long to search for" in await page(viewer, f"{base}/questions?text={'a+' * 100}b", status=400)
    reads = service.cli("audit", "show", "--type", "audit-read", "--limit", "1000")["events"]
    assert [one["data"]["filters"]["text"] for one in reads if "text" in one["data"]["filters"]] == ["given"]
    headers = {"Authorization": f"Bearer {service.admin_key}"}
    async with aiohttp.ClientSession(headers=headers) as client:
        async with client.get(f"{service.url}/v2/questions?text=ermentrude") as answer:
            assert (await answer.json())["conversations"] == []
        async with client.get(f"{service.url}/v2/questions?text={'a' * 201}") as answer:
            assert answer.status == 400


async def test_conversation_shows_sources_and_checks(viewer, outsider, base, asked):
    found = await page(viewer, f"{base}/questions/{asked[ANSWERED]}")
    assert ANSWERED in found
    assert re.search(r"<code>retry\.md:\d+-\d+</code> <span class=\"soft\">at commit <code>[0-9a-f]{10}</code>", found)
    assert "supported by the sources" in found
    cited = re.search(r'href="#([^"]+)"[^>]*>\[1\]', found)
    assert f'id="{cited[1]}"' in found
    assert "/erase" not in found
    path = re.search(rf"questions/{asked[ANSWERED]}/sources/\w+/1", found)[0]
    lines = await page(viewer, f"{base}/{path}")
    assert re.search(r'class="cited"><th scope="row">\d+</th><td><code>Set `retryDelaySecs`', lines)
    await page(viewer, f"{base}/{path}7", status=404)
    await page(outsider, f"{base}/{path}", status=404)
    await page(viewer, f"{base}/questions/unknown", status=404)


async def test_suggestions_are_no_part_of_the_answers_text(service, site, viewer, base):
    thread_id = await ask(service, site, "What does retryDelaySecs default to in Kite?")
    found = await page(viewer, f"{base}/questions/{thread_id}")
    assert "Offered to read next: " in found
    assert ")[/" not in found


async def test_reading_is_recorded_once_for_each_filter(service, viewer, base, asked):
    for _ in range(2):
        await page(viewer, f"{base}/questions/{asked[UNANSWERED]}")
    reads = service.cli("audit", "show", "--type", "audit-read", "--limit", "1000")["events"]
    of_thread = [read for read in reads if read["data"]["filters"].get("thread") == asked[UNANSWERED]]
    assert [read["data"]["command"] for read in of_thread] == ["page conversation"]
    assert of_thread[0]["actor"].startswith("person:")


async def test_gap_becomes_one_job(editor, viewer, base, asked):
    found = await page(editor, f"{base}/gaps")
    action = re.search(rf'{UNANSWERED.replace("?", ".")}.*?action="[^"]*?/gaps/(\w+)/job', found, re.DOTALL)
    path = f"{base}/gaps/{action[1]}/job"
    assert "/job?" not in await page(viewer, f"{base}/gaps")
    assert (await posted(viewer, path, prompt="Write it."))[0] == 403
    assert (await posted(editor, path, prompt=""))[0] == 400
    status, job, _ = await posted(editor, path, prompt="Write it.")
    assert (status, await posted(editor, path, prompt="Write it.")) == (303, (303, job, ""))
    assert (await posted(editor, path, prompt="Write more."))[0] == 409
    assert "Open the job" in await page(viewer, f"{base}/gaps")
    assert (await posted(editor, f"{base}/gaps/0000/job", prompt="Write it."))[0] == 404


async def test_gap_is_dismissed_and_restored(service, site, editor, viewer, base):
    await ask(service, site, "Where are airships moored overnight?")
    found = await page(editor, f"{base}/gaps")
    gap = re.search(r"airships.*?/gaps/(\w+)/dismiss", found, re.DOTALL)[1]
    assert "/dismiss" not in await page(viewer, f"{base}/gaps")
    assert (await posted(viewer, f"{base}/gaps/{gap}/dismiss"))[0] == 403
    assert (await posted(editor, f"{base}/gaps/{gap}/dismiss"))[0] == 303
    assert "airships" not in await page(editor, f"{base}/gaps")
    dismissed = await page(viewer, f"{base}/gaps?state=dismissed")
    assert re.search(r"airships.*?Dismissed by editor,", dismissed, re.DOTALL)
    assert "/restore" not in dismissed
    assert (await posted(editor, f"{base}/gaps/{gap}/restore"))[0] == 303
    assert "airships" in await page(editor, f"{base}/gaps")
    assert (await posted(editor, f"{base}/gaps/0000/dismiss"))[0] == 404


async def test_erased_conversation_has_no_text(owner, editor, base, asked):
    path = f"{base}/questions/{asked[ERASED]}"
    assert (await posted(editor, f"{path}/erase"))[0] == 403
    assert "/erase" in await page(owner, path)
    assert (await posted(owner, f"{path}/erase"))[0] == 303
    found = await page(owner, path)
    assert "The text of this conversation was erased." in found
    assert ERASED not in found + await page(owner, f"{base}/questions") + await page(owner, f"{base}/gaps")


async def test_analytics_show_numbers_and_tables(viewer, base, asked):
    found = await page(viewer, f"{base}/analytics?days=7&site={SITE}")
    assert "Questions a day" in found
    assert "rating=up" in found
    assert re.search(r"<th scope=\"row\">Retries</th><td data-column=\"File\"><code>retry.md</code>", found)
    assert "builtin/extractive" in found
    assert re.search(
        r"<th scope=\"row\">Install</th><td><code>install.md</code>", found.split("<h2>Pages that no answer cites")[1]
    )
    assert ANSWERED not in found
    assert "Nothing was asked in this time." in await page(viewer, f"{base}/analytics?site=of-others")


async def test_readers_text_is_for_members_alone(outsider, nobody, base, asked):
    for path in ("questions", f"questions/{asked[ANSWERED]}", "gaps", "analytics"):
        await page(outsider, f"{base}/{path}", status=404)
        async with nobody.get(f"{base}/{path}", allow_redirects=False) as answer:
            assert answer.status == 303
    assert (await posted(outsider, f"{base}/questions/{asked[ANSWERED]}/erase"))[0] == 404
    assert (await posted(nobody, f"{base}/questions/{asked[ANSWERED]}/erase"))[0] == 401


async def answered(service, path, key="", **query):
    headers = {"Authorization": f"Bearer {key or service.admin_key}"}
    async with aiohttp.ClientSession(service.url, headers=headers) as client, client.get(path, params=query) as answer:
        return answer.status, await answer.json()


async def test_api_has_what_the_pages_show(service, site, asked):
    newest, cursor = [], {}
    while cursor is not None:
        _, some = await answered(service, "/v2/questions", limit="1", caller="api", **cursor)
        newest += some["conversations"]
        cursor = {"cursor": some["nextCursor"]} if some["hasMore"] else None
    threads = [one["threadId"] for one in newest]
    assert [one["timestamp"] for one in newest] == sorted((one["timestamp"] for one in newest), reverse=True)
    assert set(asked.values()) <= set(threads)
    gap = newest[threads.index(asked[UNANSWERED])]
    assert (gap["caller"], gap["isGap"], gap["projectId"]) == ("api", True, site[0])
    _, answered_ones = await answered(service, "/v2/questions", outcome="answered", projectId=site[0])
    assert ANSWERED in [one["query"] for one in answered_ones["conversations"]]
    assert UNANSWERED not in [one["query"] for one in answered_ones["conversations"]]
    assert (await answered(service, "/v2/questions", outcome="good"))[0] == 400
    _, thread = await answered(service, f"/v2/threads/{asked[ANSWERED]}")
    reply = thread["messages"][1]
    assert reply["sources"][0]["path"] == "retry.md"
    source = f"/v2/threads/{asked[ANSWERED]}/sources/{reply['id']}/{reply['sources'][0]['number']}"
    status, passage = await answered(service, source)
    assert (status, passage["source"]) == (200, reply["sources"][0])
    assert any("retryDelaySecs" in line["text"] for line in passage["lines"] if line["isCited"])
    assert (await answered(service, f"{source}7"))[1]["code"] == "source_not_found"
    _, found = await answered(service, "/v2/gaps", limit="50")
    assert UNANSWERED in [gap["question"] for gap in found["gaps"]]
    _, sums = await answered(service, "/v2/analytics", days="2", projectId=site[0])
    assert len(sums["days"]) == 2
    assert sums["totals"]["answered"] == len(answered_ones["conversations"])
    _, sums = await answered(service, "/v2/analytics", projectId=site[0])
    assert "retry.md" not in [page["path"] for page in sums["uncitedPages"]["pages"]]
    assert sums["uncitedPages"]["count"] == 2


async def test_gap_names_the_job_that_the_api_made_of_it(service, site):
    text = "How to calibrate a frobnicating theremin?"
    await ask(service, site, text)

    async def gap():
        _, found = await answered(service, "/v2/gaps", limit="50")
        (one,) = [gap for gap in found["gaps"] if gap["question"] == text]
        return one

    made = await gap()
    key = f"gap {made['id']} {made['examples'][0]['id']}"
    headers = {"Authorization": f"Bearer {service.admin_key}", "Idempotency-Key": key}
    path = f"/v2/agent/{made['projectId']}/job"
    async with (
        aiohttp.ClientSession(service.url, headers=headers) as client,
        client.post(path, json={"prompt": made["prompt"]}) as answer,
    ):
        assert (made["jobId"], answer.status) == (None, 201)
        assert (await gap())["jobId"] == (await answer.json())["id"]


async def test_api_shows_and_erases_nothing_of_others(service, people, asked):
    other = service.cli("key", "create", "--kind", "admin", "--organization", people.other_organization_id)["token"]
    assert (await answered(service, "/v2/questions", other))[1]["conversations"] == []
    assert (await answered(service, "/v2/gaps", other))[1]["gaps"] == []
    assert (await answered(service, "/v2/analytics", other))[1]["totals"]["questions"] == 0
    path = f"/v2/threads/{asked[ANSWERED]}"
    assert (await answered(service, path, other))[0] == 404
    assert (await answered(service, f"{path}/sources/x/1", other))[1]["code"] == "thread_not_found"
    headers = {"Authorization": f"Bearer {other}"}
    async with (
        aiohttp.ClientSession(service.url, headers=headers) as client, client.post(f"{path}/erase") as answer
    ):  # fmt: skip
        assert answer.status == 404
