"""What is refused at the door: the answer says why, and the log holds no trace of it."""

import asyncio
import io
import json

import pytest

from tests.end_to_end.talk import message_url, question, trace
from tests.service_process import service_in, write_docs


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """One that nobody else has left something to do: what is refused here is to leave its log as it is."""
    folder = tmp_path_factory.mktemp("errors")
    with service_in(folder) as service:
        service.set_up(write_docs(folder / "docs"))
        service.start()
        yield service


def job_url(service):
    return f"{service.url}/v2/agent/{service.project_id}/job"


async def refused(http, service, status, code, method, url, **request):
    before = trace(service)
    async with http.request(method, url, **request) as response:
        body = await response.json()
        assert response.status == status, body
        assert response.content_type == "application/problem+json"
        assert body["code"] == code
        assert body["status"] == status
        assert body["type"] == f"/docs/errors/{code}"
        assert body["detail"] == body["error"]
        assert body["title"]
        assert body["requestId"] == response.headers["X-Request-Id"]
        headers = response.headers
    assert trace(service) == before
    async with http.get(service.url + body["type"]) as page:
        assert page.status == 200
        assert page.content_type == "text/html"
    return body, headers


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer x", "Basic eDp5", "Bearer docsmith_" + "0" * 36, "Bearer docsmith_dsc_" + "A" * 36],
)
async def test_no_usable_key(http, service, authorization):
    headers = {} if authorization is None else {"Authorization": authorization}
    for url, body in ((job_url(service), {"prompt": "x"}), (message_url(service), question("x"))):
        _, answer = await refused(http, service, 401, "unauthorized", "POST", url, json=body, headers=headers)
        is_key = (authorization or "").startswith("Bearer ")
        assert answer["WWW-Authenticate"] == ('Bearer error="invalid_token"' if is_key else "Bearer")


async def test_a_revoked_key(http, service):
    made = service.cli("key", "create", "--kind", "admin")
    url, headers = job_url(service) + "/nothing", {"Authorization": f"Bearer {made['token']}"}
    await refused(http, service, 404, "job_not_found", "GET", url, headers=headers)
    service.cli("key", "revoke", made["id"])
    status = 0
    async with asyncio.timeout(60):  # by another process: it is told within a second
        while status != 401:
            async with http.get(url, headers=headers) as response:
                status = response.status


async def test_the_wrong_kind_of_key(http, service):
    await refused(
        http, service, 403, "wrong_key_kind", "POST", job_url(service), json={"prompt": "x"}, headers=service.assistant
    )
    await refused(
        http, service, 403, "wrong_key_kind", "POST", message_url(service), json=question("x"), headers=service.admin
    )


async def test_missing_things_and_those_of_others_look_alike(http, service):
    other = service.cli("organization", "create", "--name", "Other")["id"]
    foreign = service.cli("key", "create", "--kind", "admin", "--organization", other)["token"]
    headers = {"Authorization": f"Bearer {foreign}"}
    one, _ = await refused(
        http, service, 404, "project_not_found", "POST", job_url(service), json={"prompt": "x"}, headers=headers
    )
    absent = job_url(service).replace(service.project_id, "0" * 32)
    two, _ = await refused(
        http, service, 404, "project_not_found", "POST", absent, json={"prompt": "x"}, headers=headers
    )
    assert {**one, "requestId": ""} == {**two, "requestId": ""}


async def test_a_site_that_is_not_there(http, service):
    url = message_url(service).replace("kite", "nowhere")
    await refused(http, service, 404, "domain_not_found", "POST", url, json=question("x"), headers=service.assistant)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "$.prompt"),
        ({"prompt": None}, "$.prompt"),
        ({"prompt": 7}, "$.prompt"),
        ({"prompt": ""}, "$.prompt"),
        ({"prompt": " \n "}, "$.prompt"),
        ({"prompt": "x" * 32_769}, "$.prompt"),
        ([], "$"),
    ],
)
async def test_a_job_that_does_not_fit(http, service, body, path):
    problem, _ = await refused(
        http, service, 400, "invalid_request", "POST", job_url(service), json=body, headers=service.admin
    )
    assert problem["errors"][0]["path"] == path
    assert problem["errors"][0]["message"]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"fp": None}, "$.fp"),
        ({"fp": ""}, "$.fp"),
        ({"fp": "x" * 201}, "$.fp"),
        ({"messages": []}, "$.messages"),
        ({"messages": None}, "$.messages"),
        ({"messages": [{"id": "1", "parts": []}]}, "$.messages[0].role"),
        ({"messages": [{"role": "assistant", "parts": [{"type": "text", "text": "x"}]}]}, "$.messages"),
        ({"messages": [{"role": "user", "parts": [{"type": "text", "text": "  "}]}]}, "$.messages[0]"),
        ({"retrievalPageSize": 0}, "$.retrievalPageSize"),
        ({"retrievalPageSize": 51}, "$.retrievalPageSize"),
        ({"retrievalPageSize": 2.5}, "$.retrievalPageSize"),
        ({"retrievalPageSize": "5"}, "$.retrievalPageSize"),
        ({"currentPath": "/" * 201}, "$.currentPath"),
        ({"context": [{"type": "image", "value": "x"}]}, "$.context[0].type"),
        ({"context": [{"type": "code"}]}, "$.context[0].value"),
        ({"context": [{"type": "code", "value": "x" * 50_001}]}, "$.context[0].value"),
        ({"filter": {"groups": "all"}}, "$.filter.groups"),
    ],
)
async def test_a_message_that_does_not_fit(http, service, changes, path):
    for version in (1, 2):
        body = {**question("x"), **changes}
        problem, headers = await refused(
            http, service, 400, "invalid_request", "POST", message_url(service, version), json=body,
            headers=service.assistant,
        )  # fmt: skip
        assert problem["errors"][0]["path"] == path
        assert headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"\xff\xfe", b'{"x": ' + b"[" * 100_000, b'{"prompt": "x"} tail', b'{"prompt": "\\ud800"}']
)
async def test_body_that_is_not_json_is_refused(http, service, raw):
    headers = {**service.admin, "Content-Type": "application/json"}
    await refused(http, service, 400, "invalid_json", "POST", job_url(service), data=raw, headers=headers)


async def test_body_not_compressed_as_declared_is_refused(http, service):
    headers = {**service.assistant, "Content-Type": "application/json", "Content-Encoding": "gzip"}
    url = message_url(service)
    body, _ = await refused(http, service, 400, "invalid_request", "POST", url, data=b"not gzip", headers=headers)
    assert "encoding" in body["detail"]


async def test_the_wrong_content_type(http, service):
    headers = {**service.admin, "Content-Type": "text/plain"}
    await refused(
        http, service, 415, "unsupported_media_type", "POST", job_url(service), data=b'{"prompt": "x"}', headers=headers
    )


async def test_a_body_that_is_too_large(http, service):
    data = json.dumps({"prompt": "x", "padding": "y" * (5 * 1024 * 1024)}).encode()
    headers = {**service.admin, "Content-Type": "application/json"}
    await refused(
        http, service, 413, "body_too_large", "POST", job_url(service), data=io.BytesIO(data), headers=headers
    )


async def test_wrong_method_names_the_allowed_ones(http, service):
    _, headers = await refused(http, service, 405, "method_not_allowed", "DELETE", job_url(service))
    assert headers["Allow"] == "POST"


@pytest.mark.parametrize("path", ["/nothing", "/v3/assistant/kite/message", "/healthz/"])
async def test_nothing_there(http, service, path):
    await refused(http, service, 404, "not_found", "GET", service.url + path)


async def test_a_thread_of_somebody_else(http, service):
    url, headers = message_url(service), service.assistant
    async with http.post(url, json={**question("How do I install it?"), "fp": "ann"}, headers=headers) as response:
        await response.read()
        thread_id, key = response.headers["X-Thread-Id"], response.headers["X-Thread-Key"]
    for changes in ({"fp": "bob"}, {"fp": "ann", "threadKey": key[:-1] + "_"}, {"threadId": "nothing"}):
        body = {**question("And then?"), "threadId": thread_id, **changes}
        await refused(http, service, 404, "thread_not_found", "POST", url, json=body, headers=headers)


async def test_a_model_that_the_settings_do_not_name(http, service):
    url = job_url(service).replace("/v2/", "/v1/")
    body = {"messages": [{"role": "user", "content": "x"}], "model": "gpt-nothing"}
    problem, _ = await refused(http, service, 400, "unknown_model", "POST", url, json=body, headers=service.admin)
    assert problem["errors"][0]["path"] == "$.model"


async def test_a_request_id_comes_back_and_is_in_the_log(http, service):
    headers = {**service.admin, "X-Request-Id": "ticket-42"}
    async with http.post(job_url(service), json={"prompt": "Make it sing"}, headers=headers) as response:
        assert response.headers["X-Request-Id"] == "ticket-42"
    found = service.cli("audit", "show", "--request", "ticket-42")["events"]
    assert [event["type"] for event in found] == ["request-accepted", "job-requested"]


async def test_a_request_id_that_is_no_id_is_replaced(http, service):
    async with http.get(f"{service.url}/healthz", headers={"X-Request-Id": "a b<script>"}) as response:
        assert response.headers["X-Request-Id"].startswith("req_")


async def test_preflight_of_another_origin_is_answered(http, service):
    headers = {
        "Origin": "https://docs.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,user-agent",
    }
    async with http.options(message_url(service), headers=headers) as response:
        assert response.status == 204
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        allowed = response.headers["Access-Control-Allow-Headers"].lower()
        assert all(name in allowed for name in ("authorization", "content-type", "user-agent"))


async def test_admin_endpoints_have_no_cors(http, service):
    async with http.options(job_url(service), headers={"Origin": "https://docs.example"}) as response:
        assert response.status == 405
        assert "Access-Control-Allow-Origin" not in response.headers


async def test_keys_and_questions_are_not_in_the_servers_output(http, service):
    secret = "My secret question about Kite?"
    async with http.post(message_url(service), json=question(secret), headers=service.assistant) as response:
        await response.read()
        request_id = response.headers["X-Request-Id"]
    async with asyncio.timeout(60):
        while request_id not in service.log():  # noqa: ASYNC110  (lines of requests are written a moment later)
            await asyncio.sleep(0.02)
    output = service.log()
    assert "My secret" not in output
    assert service.assistant_key not in output
    assert service.admin_key not in output


async def test_non_http_request_is_not_quoted_in_the_servers_output(service):
    host, port = service.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET / HTTP/1.1\r\nAuthorization: Bearer " + b"docsmith_secret" * 1000 + b"\r\n\r\n")
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert answer.startswith((b"HTTP/1.0 400", b"HTTP/1.1 400"))
    assert "docsmith_secret" not in service.log()
    assert "Traceback" not in service.log()


async def test_a_long_chat_is_answered_by_its_last_question(http, service):
    body = question("How do I install Kite?")
    echoed = {"id": "a", "role": "assistant", "parts": [{"type": "text", "text": "x" * 100}]}
    body["messages"] = [*[echoed] * 20_000, *body["messages"], echoed]
    data, headers = io.BytesIO(json.dumps(body).encode()), {**service.assistant, "Content-Type": "application/json"}
    async with http.post(message_url(service), data=data, headers=headers) as response:
        assert response.status == 200
        assert "kite.example" in await response.text()
