"""What readers think, and what operators read of it, over HTTP."""

import csv
import io
import json

import pytest

from service.web.http.answers.tables import as_csv
from tests.end_to_end.talk import ask, files_with, question, words_gone


@pytest.fixture
def talk(http, service):
    """Ask something; thread id and reply id."""

    async def talk(text, **more):
        found = await ask(http, service, question(text, **more))
        start = next(chunk for chunk in found if chunk["type"] == "start")
        return found[0]["X-Thread-Id"], start["messageId"]

    return talk


@pytest.fixture
def rate(http, service):
    async def rate(thread_id, message_id, rating, status=204, **more):
        body = {"threadId": thread_id, "messageId": message_id, "rating": rating, **more}
        url = f"{service.url}/discovery/v1/feedback/{service.domain}"
        async with http.post(url, json=body, headers=service.assistant) as response:
            assert response.status == status, await response.text()
            return await response.json() if status >= 400 else await response.read()

    return rate


@pytest.fixture
def read(http, service):
    async def read(path, status=200, *, headers=None, key=None, raw=False, **query):
        url = f"{service.url}/v1/analytics/{service.project_id}/{path}"
        headers = {**(service.admin if key is None else key), **(headers or {})}
        async with http.get(url, params=query, headers=headers) as response:
            assert response.status == status, await response.text()
            assert "Access-Control-Allow-Origin" not in response.headers
            return (await response.text(), response.headers) if raw else await response.json()

    return read


async def test_question_is_shown_with_answer_sources_and_rating(talk, rate, read):
    thread_id, reply_id = await talk("How do I install Kite?", currentPath="/retry")
    assert await rate(thread_id, reply_id, "down") == b""
    await rate(thread_id, reply_id, "up", comment="It works")
    [row] = [one for one in (await read("assistant"))["conversations"] if one["threadId"] == thread_id]
    assert (row["query"], row["messageId"], row["page"]) == ("How do I install Kite?", reply_id, "/retry")
    assert (row["resolutionStatus"], row["state"]) == ("answered", "completed")
    assert "kite.example" in row["response"]
    assert row["conversationId"] == thread_id
    source = row["sources"][0]
    assert (source["path"], source["title"], len(source["commit"])) == ("install.md", "Install", 40)
    assert (row["feedback"]["rating"], row["feedback"]["comment"]) == ("up", "It works")
    transcript = await read(f"assistant/threads/{thread_id}")
    assert [message["role"] for message in transcript["messages"]] == ["user", "assistant"]
    assert transcript["messages"][1]["content"] == row["response"]
    assert await read(f"assistant/threads/{row['id']}") == transcript
    [given] = [one for one in (await read("feedback"))["feedback"] if one["threadId"] == thread_id]
    assert (given["rating"], given["comment"], given["query"]) == ("up", "It works", "How do I install Kite?")
    down = (await read("feedback", rating="down"))["feedback"]
    assert thread_id not in [one["threadId"] for one in down]
    assert all(one["rating"] == "down" for one in down)


async def test_feedback_is_for_a_reply_of_that_thread(talk, rate):
    thread_id, reply_id = await talk("How do I install Kite?")
    other_thread, _ = await talk("How do I install Kite?")
    assert (await rate(other_thread, reply_id, "up", 404))["code"] == "message_not_found"
    assert (await rate("unknown", reply_id, "up", 404))["code"] == "thread_not_found"
    assert (await rate(thread_id, reply_id, "sideways", 400))["errors"][0]["path"] == "$.rating"
    assert (await rate(thread_id, reply_id, "up", 400, comment="x" * 4001))["errors"][0]["path"] == "$.comment"


async def test_unanswered_questions_are_grouped_by_wording(talk, read):
    for text in ("Can I pay with Zorkmids?", "pay zorkmids", "How can I pay, with ZORKMIDS?"):
        await talk(text)
    groups = (await read("assistant/unanswered"))["questions"]
    [group] = [one for one in groups if one["wording"] == "pay zorkmids"]
    assert group["count"] == 3
    assert group["examples"][0]["query"] == "How can I pay, with ZORKMIDS?"
    rows = (await read("assistant", resolutionStatus="unanswered"))["conversations"]
    assert {row["resolutionStatus"] for row in rows} == {"unanswered"}
    assert len([row for row in rows if "zorkmids" in row["query"].lower()]) == 3
    first = await read("assistant/unanswered", limit="1")
    assert (first["questions"], first["hasMore"]) == (groups[:1], len(groups) > 1)


async def test_rows_come_in_pages_and_by_time(talk, read):
    threads = [(await talk("How do I install Kite?"))[0] for _ in range(3)]
    seen, query = [], {"limit": "2"}
    while True:
        page = await read("assistant", **query)
        seen += [(row["threadId"], row["id"]) for row in page["conversations"]]
        if not page["hasMore"]:
            assert page["nextCursor"] is None
            break
        query["cursor"] = page["nextCursor"]
    assert [thread_id for thread_id, _ in seen[:3]] == threads[::-1]
    assert len(seen) == len(set(seen))
    rows = (await read("assistant", limit="3"))["conversations"]
    newest, oldest = rows[0]["timestamp"], rows[2]["timestamp"]
    found = (await read("assistant", dateFrom=oldest, dateTo="2999-01-01"))["conversations"]
    assert [row["threadId"] for row in found][:2] == threads[:0:-1]
    assert (await read("assistant", dateFrom="2000-01-01", dateTo="2001-01-01"))["conversations"] == []
    assert newest not in [row["timestamp"] for row in (await read("assistant", dateTo=newest))["conversations"]]


@pytest.mark.parametrize(
    "query",
    [
        {"dateFrom": "yesterday"},
        {"dateFrom": "2026-02-30"},
        {"dateFrom": "2026-02-02", "dateTo": "2026-02-01"},
        {"limit": "0"},
        {"limit": "1001"},
        {"limit": "all"},
        {"cursor": "-1"},
        {"cursor": "9" * 30},
        {"format": "xml"},
        {"resolutionStatus": "maybe"},
    ],
)
async def test_a_query_that_does_not_fit_is_refused(read, query):
    told = await read("assistant", 400, **query)
    assert told["errors"][0]["path"] in query


async def test_analytics_need_an_admin_key_of_the_project(read, service):
    assert (await read("assistant", 403, key=service.assistant))["code"] == "wrong_key_kind"
    assert (await read("assistant", 401, key={}))["code"] == "unauthorized"
    assert (await read("../unknown/assistant", 404))["code"] == "project_not_found"
    assert (await read("assistant/threads/unknown", 404))["code"] == "thread_not_found"


async def test_a_whole_period_is_exported_as_lines_and_as_a_table(talk, rate, read):
    formula = '=HYPERLINK("https://evil.example","Kite"),\n@SUM(1)'
    thread_id, reply_id = await talk(formula)
    await rate(thread_id, reply_id, "down", comment="-2+3")
    text, headers = await read("assistant", raw=True, format="jsonl")
    rows = [json.loads(line) for line in text.splitlines()]
    assert headers["Content-Type"] == "application/jsonl; charset=utf-8"
    assert [row["query"] for row in rows if row["threadId"] == thread_id] == [formula]
    text, headers = await read("assistant", raw=True, headers={"Accept": "text/csv"})
    assert headers["Content-Disposition"] == 'attachment; filename="conversations.csv"'
    table = list(csv.DictReader(io.StringIO(text, newline="")))
    assert len(table) == len(rows)
    [line] = [line for line in table if line["threadId"] == thread_id]
    assert (line["query"], line["comment"]) == (f"'{formula}", "'-2+3")
    few, _ = await read("assistant", raw=True, format="jsonl", limit="1")
    assert len(few.splitlines()) == 1
    for path in ("feedback", "assistant/unanswered"):
        text, _ = await read(path, raw=True, format="csv")
        assert len(list(csv.reader(io.StringIO(text, newline="")))) > 1


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "  =", "\ufeff=", "＝", "|", "%"])  # noqa: RUF001
def test_no_cell_of_a_table_is_a_formula(start):
    [[cell]] = csv.reader(io.StringIO(as_csv([f"{start}cmd"], {"a": str}).decode(), newline=""))
    assert cell == f"'{start}cmd"


async def test_an_erased_thread_leaves_no_word_behind(talk, rate, read, service):
    thread_id, reply_id = await talk("How do I install Kite for Xanthippe?")
    await rate(thread_id, reply_id, "down", comment="Xanthippe is not amused")
    assert files_with(b"xanthippe", *service.folders) != []
    service.cli("audit", "erase", f"thread-{thread_id}", "--yes")
    await words_gone(b"xanthippe", service)
    [row] = [one for one in (await read("assistant"))["conversations"] if one["threadId"] == thread_id]
    assert (row["query"], row["response"], row["page"]) == ("[erased]", "[erased]", "[erased]")
    assert row["feedback"]["comment"] == "[erased]"
    assert (await rate(thread_id, reply_id, "up", 404))["code"] == "thread_not_found"
    service.cli("audit", "replay")  # fails where the rows differ from those made anew


async def test_verdicts_are_streamed_on_request_and_summed_up(talk, read, http, service):
    found = await ask(http, service, question("How do I install Kite?", features=["checks", "more"]))
    parts = [chunk for chunk in found if chunk["type"] == "data-docsmith-check"]
    assert {part["id"] for part in parts} == {"checks"}
    checks = parts[-1]["data"]
    assert checks["supported"] == len(checks["sentences"]) > 0
    assert all(one["passage"] and one["startLine"] <= one["endLine"] for one in checks["sentences"])
    plain = await ask(http, service, question("How do I install Kite?"))
    assert [chunk for chunk in plain if chunk["type"] == "data-docsmith-check"] == []
    [row] = [one for one in (await read("assistant"))["conversations"] if one["threadId"] == found[0]["X-Thread-Id"]]
    assert (row["checks"]["supported"], row["checks"]["sentences"]) == (checks["supported"], [])
    summary = await read("assistant/checks")
    assert summary["answers"] >= 2
    assert summary["supported"] >= 2 * checks["supported"]
