"""Requests that are odd, but legal, and some that are not: no surprise."""

import json
import re

import pytest
from yarl import URL

from service.web.api.description.description import description
from tests.end_to_end.talk import create_job, job_events


@pytest.fixture
def jobs(service):
    return f"{service.url}/v2/agent/{service.project_id}/jobs"


async def problem_of(response):
    assert response.content_type == "application/problem+json"
    found = await response.json()
    assert found["status"] == response.status
    return found["code"]


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "*/*;q=0", "garbage;;;", "text/event-stream"])
async def test_answers_have_their_media_type_whatever_is_preferred(http, service, jobs, accept):
    async with http.get(jobs, headers={**service.admin, "Accept": accept}) as response:
        assert (response.status, response.content_type) == (200, "application/json")


async def test_head_is_get_without_the_body(http, service, jobs):
    job = await create_job(http, service, "Make it sing")
    await job_events(http, service, job["id"])
    one = jobs.removesuffix("s") + "/" + job["id"]
    for address in (jobs, one, f"{one}/events", f"{service.url}/docs", f"{service.url}/healthz"):
        async with http.get(address, headers=service.admin) as whole:
            await whole.read()
        async with http.head(address, headers=service.admin) as response:
            assert (response.status, response.content_type) == (200, whole.content_type), address
            assert await response.read() == b""


async def test_head_request_does_not_resume_a_reply(http, service):
    address = f"{service.url}/discovery/v2/assistant/{service.domain}/message/chat/stream"
    async with http.head(address, headers=service.assistant) as response:
        assert (response.status, response.headers["Allow"]) == (405, "GET")


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_unknown_expectation_is_answered(http, jobs, method):
    async with http.request(method, jobs, headers={"Expect": "tea", "Connection": "close"}) as response:
        assert (response.status, await problem_of(response)) == (417, "expectation_failed")


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "PATCH", "DELETE", "POST", "TRACE", "QUERY"])
async def test_other_methods_are_refused_by_name(http, service, jobs, method):
    async with http.request(method, jobs, headers=service.admin) as response:
        assert (response.status, response.headers["Allow"]) == (405, "GET,HEAD")
        assert await problem_of(response) == "method_not_allowed"


@pytest.mark.parametrize(
    "path",
    [
        "{jobs}/",
        "/{jobs}",
        "{base}//{id}/jobs",
        "{base}/{id}%2Fjobs",
        "{base}/../agent/{id}/jobs",
        "{jobs}%00",
        "{upper}",
    ],
)
async def test_an_address_has_one_spelling(http, service, path):
    base = "/v2/agent"
    jobs = f"{base}/{service.project_id}/jobs"
    address = path.format(base=base, id=service.project_id, jobs=jobs, upper=jobs.replace("v2", "V2"))
    async with http.get(_raw(service, address), headers=service.admin, allow_redirects=False) as response:
        assert (response.status, await problem_of(response)) == (404, "not_found")


@pytest.mark.parametrize("name", ["%2e%2e", "%ff%fe", "%zz", "%0a", "%2F", "x" * 4000])
async def test_invalid_name_is_not_found(http, service, name):
    async with http.get(_raw(service, f"/v2/agent/{name}/jobs"), headers=service.admin) as response:
        assert response.status == 404
        assert await problem_of(response) in ("project_not_found", "not_found")


@pytest.mark.parametrize("path", ["/" + "a" * 9000, "/healthz?" + "x=1&" * 2500])
async def test_a_long_address_is_refused(http, service, path):
    async with http.get(_raw(service, path)) as response:
        assert (response.status, await problem_of(response)) == (431, "head_too_large")


@pytest.mark.parametrize(
    "query",
    [
        "limit=1&limit=2",
        "status=active&status=failed",
        "cursor=a&cursor=b",
        "includeArchived=true&includeArchived=false",
    ],
)
async def test_a_parameter_comes_once(http, service, jobs, query):
    async with http.get(f"{jobs}?{query}", headers=service.admin) as response:
        assert response.status == 400
        name = query.partition("=")[0]
        assert (await response.json())["errors"] == [{"path": f"?{name}", "message": "comes once"}]


@pytest.mark.parametrize("query", ["dateFrom=", "dateTo=", "limit=1&limit=2", "rating=up&rating=down", "format="])
async def test_empty_filter_is_refused(http, service, query):
    address = f"{service.url}/v1/analytics/{service.project_id}/feedback?{query}"
    async with http.get(address, headers=service.admin) as response:
        assert (response.status, await problem_of(response)) == (400, "invalid_request")


@pytest.mark.parametrize(
    "seconds", ["0", "0.0", "-0.0", "3.529694684427084e-72", "5E-324", "1e-05", "1e%2B0", "0.12345678901234567"]
)
async def test_any_way_to_write_a_number_of_seconds_is_taken(http, service, jobs, seconds):
    job = await create_job(http, service, "Make it sing")
    await job_events(http, service, job["id"])
    path = f"{jobs.removeprefix(service.url).removesuffix('s')}/{job['id']}?wait={seconds}"
    async with http.get(_raw(service, path), headers=service.admin) as response:
        assert response.status == 200


@pytest.mark.parametrize("limit", ["20", "20.0", "2e1", "020"])
async def test_any_way_to_write_a_whole_number_is_taken(http, service, jobs, limit):
    for path in (jobs.removeprefix(service.url), f"/v1/analytics/{service.project_id}/feedback"):
        async with http.get(_raw(service, f"{path}?limit={limit}"), headers=service.admin) as response:
            assert response.status == 200


@pytest.mark.parametrize(
    "moment",
    [
        "2026-01-31", "2026-01-31t09:30:00z", "2016-12-31T23:59:60Z", "2016-12-31T23:59:60.5Z", "0000-01-01",
        "0000-02-29T00:00:00Z", "0001-01-01T00:00:00%2B23:59", "9999-12-31T23:59:59-23:59",
        "2026-01-31T09:30:00.123456789012Z", "2026-01-31T09:30:00-00:00",
    ],
)  # fmt: skip
async def test_any_moment_of_the_description_is_taken(http, service, moment):
    path = f"/v1/analytics/{service.project_id}/feedback"
    for name in ("dateFrom", "dateTo"):
        async with http.get(_raw(service, f"{path}?{name}={moment}"), headers=service.admin) as response:
            assert response.status == 200, await response.text()


BLANK = {"role": "user", "content": " \u001c"}
SAID = {"role": "user", "content": "How?"}


@pytest.mark.parametrize(
    "messages",
    [
        [SAID], [BLANK], [BLANK, SAID], [{"role": "system", "content": "How?"}], [{"role": "user"}],
        [{"role": "user", "parts": [{"type": "text", "text": "How?"}]}], [{"role": "user", "parts": []}],
        [{"role": "user", "parts": [{"type": "file", "text": "How?"}]}], [{**SAID, "parts": []}],
        [{**SAID, "parts": None}], [{**SAID, "parts": [{"type": "text", "text": " "}]}],
        [{"role": "user", "content": "x" * 32_769}],
        [{"role": "user", "parts": [{"type": "text", "content": "How?"}]}],
        [{"role": "user", "parts": [{"type": "text", "text": "", "content": "How?"}], "id": 7}],
        [{"role": "user", "parts": [{"type": "text", "content": ["How?"]}]}],
        [{"role": "user", "parts": [{"content": "How?"}]}],
        [{"role": "user", "content": [{"type": "image", "url": "x"}, {"type": "text", "text": "How?"}]}],
        [{"role": "user", "content": [{"type": "image", "text": "How?"}, "How?"]}],
        [{"role": "user", "content": [{"type": "text", "text": "How?"}], "parts": [{"type": "file"}]}],
    ],
)  # fmt: skip
async def test_chat_without_question_does_not_fit_the_description(http, service, messages):
    body = {"fp": "anonymous", "messages": messages}
    for version in (1, 2):
        path = f"/discovery/v{version}/assistant/{{domain}}/message"
        address = service.url + path.format(domain=service.domain)
        async with http.post(address, json=body, headers=service.assistant) as response:
            assert (response.status == 200) == fits(path, body)


@pytest.mark.parametrize("messages", [[SAID], [BLANK], [BLANK, SAID], [{"role": "system", "content": "How?"}]])
async def test_job_of_blank_messages_does_not_fit_the_description(http, service, messages):
    path, body = "/v1/agent/{projectId}/job", {"messages": messages, "model": "builtin"}
    address = service.url + path.format(projectId=service.project_id)
    async with http.post(address, json=body, headers=service.admin) as response:
        assert (response.status == 200) == fits(path, body)


def fits(path, body):
    """Whether the description takes a body."""
    from jsonschema import Draft202012Validator  # it takes seconds, which each process that collects would wait for

    whole = description()
    schema = whole["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    return Draft202012Validator({**schema, "components": whole["components"]}).is_valid(body)


def test_limits_are_no_promise_of_the_description():
    """They can be off: then no answer has their fields."""
    headers = description()["components"]["headers"]
    assert not headers["RateLimit"].get("required")
    assert not headers["RateLimit-Policy"].get("required")


async def test_a_key_is_shown_once(http, service, jobs):
    for keys in ([service.admin_key, "other"], ["other", service.admin_key]):
        headers = [("Authorization", f"Bearer {key}") for key in keys]
        async with http.get(jobs, headers=headers) as response:
            assert (response.status, await problem_of(response)) == (401, "unauthorized")


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json; charset=utf-8", 200), ("application/json; charset=nonsense", 200),
        ("APPLICATION/JSON", 200), ("application/vnd.api+json", 200),
        ("application/json, text/plain", 415), ("text/plain", 415), ("application/x-www-form-urlencoded", 415),
    ],
)  # fmt: skip
async def test_json_is_utf_8_whatever_the_charset_says(http, service, content_type, status):
    headers = {**service.assistant, "Content-Type": content_type}
    address = f"{service.url}/discovery/v1/search/{service.domain}"
    async with http.post(address, data='{"query":"Größe"}'.encode(), headers=headers) as response:
        assert response.status == status
    if status == 200:
        async with http.post(address, data='{"query":"Größe"}'.encode("utf-16"), headers=headers) as response:
            assert (response.status, await problem_of(response)) == (400, "invalid_json")


@pytest.mark.parametrize("text", ["", " ", "\x1d", "\x85", "\u3000\n", "a", " ä "])
async def test_blank_text_is_blank_by_the_description_too(http, service, text):
    schema = description()["components"]["schemas"]["SearchBody"]["properties"]["query"]
    address = f"{service.url}/discovery/v1/search/{service.domain}"
    async with http.post(address, json={"query": text}, headers=service.assistant) as response:
        assert (response.status == 200) == bool(re.search(schema["pattern"], text))


@pytest.mark.parametrize("parts", [{}, "How?", [5], [{"type": 5}], [{"type": "text", "text": 5}]])
async def test_invalid_parts_of_a_message_are_refused(http, service, parts):
    body = {"fp": "anonymous", "messages": [{"role": "user", "content": "How?", "parts": parts}]}
    for version in (1, 2):
        address = f"{service.url}/discovery/v{version}/assistant/{service.domain}/message"
        async with http.post(address, data=json.dumps(body), headers=_json(service)) as response:
            assert response.status == 400
            assert (await response.json())["errors"][0]["path"].startswith("$.messages[0].parts")


@pytest.mark.parametrize(
    ("what", "body"),
    [
        (
            "v2/assistant/{}/message",
            r'{"fp":"a\udc00","messages":[{"role":"user","parts":[{"type":"text","text":"%s"}]}]}',
        ),
        ("v1/assistant/{}/message", r'{"fp":"a","messages":[{"role":"user","content":"%s"}],"currentPath":"\ud83d"}'),
        ("v1/search/{}", r'{"query":"%s"}'),
    ],
)
async def test_half_an_emoji_is_replaced_in_any_text(http, service, what, body):
    """As ``JSON.stringify`` writes the half of an emoji that a client has cut in two."""
    address = f"{service.url}/discovery/{what.format(service.domain)}"
    asked = body.replace("%s", r"How do I install Kite? \ud83e\ude81 \ud83d \\ud83d")
    async with http.post(address, data=asked, headers=_json(service)) as response:
        told = await response.text()
        assert (response.status, "curl -sSf kite.example/install | sh" in told) == (200, True), told
    async with http.post(address, data=asked.replace(r"\ud83d \\", r"\udxyz \\"), headers=_json(service)) as response:
        assert (response.status, await problem_of(response)) == (400, "invalid_json")


def _json(service):
    return {**service.assistant, "Content-Type": "application/json"}


def _raw(service, path):
    """An address as it is, not made tidy by the client."""
    return URL(service.url + path, encoded=True)
