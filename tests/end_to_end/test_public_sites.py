"""A public site as its readers and strangers meet it: what answers without a key, and what never does."""

import asyncio

import pytest

from service.workers.spending import NOTICE
from tests.end_to_end.scripted import scripted_service
from tests.end_to_end.talk import chunks, question, text_of
from tests.fakes.provider import Reply, ScriptedProvider
from tests.service_process import DOCS, free_port, service_in, write_docs

SECRET = "the vault code is 9417"
RESTRICTED = "---\ntitle: Staff\ngroups: [staff]\n---\n\n# Staff\n\nFor staff, " + SECRET + ".\n"
ORIGIN = "https://docs.example.com"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """Two sites: ``kite``, which is private, and ``open``, which is public."""
    folder = tmp_path_factory.mktemp("public")
    docs = write_docs(folder / "docs", {**DOCS, "staff.md": RESTRICTED})
    with service_in(folder) as service:
        service.set_up(docs)
        service.cli("project", "create", "--name", "open", "--repository", str(docs), "--domain", "open")
        service.cli("index", "open")
        service.start()
        yield service


@pytest.fixture(scope="module")
def opened(service):
    return service.cli("site", "update", "open", "--public", "--origin", ORIGIN)


async def ask(http, service, body, *, domain="open", **headers):
    url = f"{service.url}/v2/assistant/{domain}/message"
    async with http.post(url, json=body, headers=headers) as response:
        text = await response.text()
        return response.status, [dict(response.headers), *chunks(text)] if response.status == 200 else text


async def post(http, service, path, body, **headers):
    async with http.post(f"{service.url}/discovery/v1/{path}", json=body, headers=headers) as response:
        return response.status, await response.text()


async def answered(http, service, body, **headers):
    """The answer, once the running service knows of the change of the command line."""
    async with asyncio.timeout(60):
        while True:
            status, found = await ask(http, service, body, **headers)
            if status == 200:
                return found
            assert status == 401, found


def test_command_says_what_becomes_readable_and_who_pays(service, opened):
    assert opened["public"] is True
    assert opened["origins"] == [ORIGIN]
    assert opened["restrictedPages"] == 1
    assert opened["payment"]["model"].startswith("builtin/")
    text = service.run("site", "show", "open").stdout
    assert f"{opened['pages'] - 1} pages" in text
    assert "1 restricted to groups stay hidden" in text
    assert "costs nothing" in text
    listed = {one["domain"]: one["public"] for one in service.cli("site", "list")["sites"]}
    assert listed == {"kite": False, "open": True}
    events = service.cli("audit", "show", "--stream", "site-open")["events"]
    (changed,) = [event for event in events if event["type"] == "site-access-changed"]
    assert changed["actor"].startswith("cli:")


async def test_widget_settings_open_as_the_site_does(http, service, opened):
    options = ("--hand-off", "help@example.com", "--suggestion", "How do I start?", "--accent", "#0b6e4f")
    changed = await asyncio.to_thread(service.cli, "site", "update", "open", *options)
    assert changed["widget"]["handOff"] == "mailto:help@example.com"
    text = (await asyncio.to_thread(service.run, "site", "show", "open")).stdout
    assert "help@example.com" in text
    await answered(http, service, question("How do I install Kite?"))

    async def settings(domain, **headers):
        async with http.get(f"{service.url}/discovery/v1/widget/{domain}", headers=headers) as response:
            return response.status, await response.json(), response.headers

    async with asyncio.timeout(60):
        while (found := await settings("open", Origin=ORIGIN))[1]["accent"] != "#0b6e4f":  # noqa: ASYNC110  (nothing tells when)
            await asyncio.sleep(0.02)
    status, body, headers = found
    assert (status, body["suggestions"], body["name"]) == (200, ["How do I start?"], "open")
    assert headers["Access-Control-Allow-Origin"] == ORIGIN
    assert headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert (await settings("open", Origin="https://evil.example"))[0] == 403
    unknown, private = await settings("no-such-site"), await settings("kite")
    assert (unknown[0], unknown[1]["code"]) == (private[0], private[1]["code"]) == (401, "unauthorized")
    _, found, _ = await settings("kite", **service.assistant)
    assert (found["form"], found["readerTokens"], found["answeredBy"]) == ("side", False, "quotes")


async def test_assistant_search_and_page_answer_without_a_key(http, service, opened):
    found = await answered(http, service, question("How do I install Kite?"), Origin=ORIGIN)
    assert "kite.example/install" in text_of(found[1:])
    assert found[0]["Access-Control-Allow-Origin"] == ORIGIN
    status, text = await post(http, service, "search/open", {"query": "retry delay"})
    assert (status, "retryDelaySecs" in text) == (200, True)
    status, text = await post(http, service, "page/open", {"path": "install"})
    assert (status, "installer" in text) == (200, True)
    rating = {"threadId": found[0]["X-Thread-Id"], "messageId": found[1]["messageId"], "rating": "up"}
    assert (await post(http, service, "feedback/open", rating))[0] == 204
    for path in ("search/kite", "page/kite", "feedback/kite"):
        assert (await post(http, service, path, {"query": "retry"}))[0] == 401


async def test_restricted_pages_are_in_no_keyless_answer(http, service, opened):
    body = question("What is the vault code of the staff?", filter={"groups": ["staff"]})
    found = await answered(http, service, body)
    assert SECRET not in str(found)
    _, text = await post(http, service, "search/open", {"query": "vault code", "filter": {"groups": ["staff"]}})
    assert "9417" not in text
    assert (await post(http, service, "page/open", {"path": "staff.md", "groups": ["staff"]}))[0] == 404
    origins = ("--origin", "https://a.example")
    browser = service.cli("key", "create", "--kind", "assistant", "--domain", "kite", *origins)["token"]
    body = {"query": "vault code", "filter": {"groups": ["staff"]}}
    _, text = await post(http, service, "search/kite", body, Authorization=f"Bearer {browser}")
    assert "9417" not in text
    _, text = await post(http, service, "search/kite", body, **service.assistant)
    assert "9417" in text  # a key that is no browser's is believed


async def test_stranger_cannot_read_or_go_on_with_others_threads(http, service, opened):
    asked = question("How do I install Kite?", id="chat-of-a-reader", fp="reader-1")
    mine = await answered(http, service, asked)
    thread_id = mine[0]["X-Thread-Id"]
    follow = question("What is the delay between retries?", threadId=thread_id)
    assert (await ask(http, service, follow))[0] == 404  # another fp
    assert (await ask(http, service, {**follow, "fp": "reader-1"}))[0] == 200
    url = f"{service.url}/v2/assistant/open/message/chat-of-a-reader/stream"
    async with http.get(url, headers={"User-Agent": "another"}) as response:
        assert response.status == 204
    url = f"{service.url}/v2/assistant/kite/message"
    async with http.post(url, json=question("How do I install Kite?"), headers=service.assistant) as response:
        keyed = response.headers["X-Thread-Id"]
    assert (await ask(http, service, question("And then?", threadId=keyed)))[0] == 404
    key = service.cli("key", "create", "--kind", "assistant", "--domain", "open")["token"]
    with_key = await answered(http, service, question("Who?"), Authorization=f"Bearer {key}")
    follow = question("And then?", threadId=with_key[0]["X-Thread-Id"])
    assert (await ask(http, service, follow))[0] == 404  # it began with a key


async def test_analytics_count_questions_without_a_key(http, service, opened):
    await answered(http, service, question("How do I install Kite quietly?"))
    projects = {one["domain"]: one["id"] for one in service.cli("project", "list")["projects"]}
    url = f"{service.url}/v1/analytics/{projects['open']}/assistant"
    async with http.get(url, headers=service.admin) as response:
        assert "quietly" in await response.text()


def test_site_that_costs_money_needs_a_bound(service):
    service.environment |= {
        "DOCSMITH_MODELS__PAID__MODEL": "openai/gpt-x",
        "DOCSMITH_MODELS__PAID__INPUT_USD_PER_MILLION_TOKENS": "3",
        "DOCSMITH_MODELS__PAID__OUTPUT_USD_PER_MILLION_TOKENS": "15",
        "DOCSMITH_ASSISTANT__MODEL": "paid",
    }
    try:
        refused = service.cli("site", "update", "kite", "--public", status=1)
        assert "costs money, and there is no cost limit" in refused["detail"]
        service.environment["DOCSMITH_LIMITS__PUBLIC_COST_USD_DAY"] = "2.5"
        shown = service.run("site", "update", "kite", "--public").stdout
        assert "you: openai/gpt-x, up to 2.50 USD a day" in shown
        del service.environment["DOCSMITH_LIMITS__PUBLIC_COST_USD_DAY"]
        found = [one for one in service.cli("doctor", status=1)["findings"] if one["name"] == "public sites"]
        assert any(one["level"] == "wrong" and "costs money" in one["says"] for one in found)
        assert any("No web page may ask kite" in one["says"] for one in found)
    finally:
        service.cli("site", "update", "kite", "--private")
        service.environment.clear()


def test_all_that_a_public_site_needs_is_said_at_once(service):
    service.environment |= {"DOCSMITH_MODELS__PAID__MODEL": "openai/gpt-x", "DOCSMITH_ASSISTANT__MODEL": "paid"}
    try:
        refused = service.run("site", "update", "kite", "--public")
        assert refused.returncode == 1
        for needed in ("[models.NAME]", "input_usd_per_million_tokens = PRICE", "[limits]", "public_cost_usd_day = "):
            assert needed in refused.stderr
        assert "Give its price" in refused.stderr
        assert "Set a cost limit" in refused.stderr
        service.environment["DOCSMITH_LIMITS__PUBLIC_COST_USD_DAY"] = "2.5"
        assert "[limits]" not in service.run("site", "update", "kite", "--public").stderr
    finally:
        service.environment.clear()


async def test_bound_of_an_owner_holds_for_callers_with_a_key(http, tmp_path):
    settings = {
        "MODELS__SCRIPTED__INPUT_USD_PER_MILLION_TOKENS": "1",
        "MODELS__SCRIPTED__OUTPUT_USD_PER_MILLION_TOKENS": "10",
    }
    port = free_port()
    async with ScriptedProvider(lambda _: Reply(("Run the ", "installer [1]."), output_tokens=3_000), port=port):
        with scripted_service(tmp_path, port, **settings) as service:
            project = (service.project_id, "--max-cost-usd-day", "0.05")
            assert service.cli("project", "update", *project)["maxCostUsdDay"] == 0.05

            async def asked():
                body = question("How do I install Kite?")
                found = await answered(http, service, body, domain=service.domain, **service.assistant)
                return text_of(found[1:])

            texts = [await asked() for _ in range(3)]
            assert NOTICE.strip() not in texts[0]
            assert NOTICE.strip() in texts[-1]
            async with http.get(f"{service.url}/v2/usage", headers=service.admin) as response:
                (cost,) = (await response.json())["costs"]
            assert (cost["domain"], cost["ownBoundUsdDay"], cost["boundUsdDay"]) == (service.domain, 0.05, 0.0)
            assert cost["spentTodayUsd"] > 0


async def test_flood_from_many_addresses_cannot_pass_the_cost_bound(http, tmp_path):
    settings = {
        "SERVER__TRUSTED_PROXIES": "127.0.0.1",
        "LIMITS__PUBLIC_COST_USD_DAY": "0.1",  # five replies
        "MODELS__SCRIPTED__INPUT_USD_PER_MILLION_TOKENS": "1",
        "MODELS__SCRIPTED__OUTPUT_USD_PER_MILLION_TOKENS": "10",
    }
    port, calls = free_port(), []

    def reply(asked):
        calls.append(asked)
        return Reply(("Run the ", "installer [1]."), input_tokens=400, output_tokens=1_900)

    async with ScriptedProvider(reply, port=port):
        with scripted_service(tmp_path, port, **settings) as service:
            service.cli("site", "update", service.domain, "--public")

            async def stranger(number):
                body = question("How do I install Kite?", fp=f"stranger-{number}")
                address = {"X-Forwarded-For": f"198.51.100.{number}"}
                found = await answered(http, service, body, domain=service.domain, **address)
                return text_of(found[1:])

            texts = await asyncio.gather(*(stranger(number) for number in range(20)))
            paid = [text for text in texts if NOTICE.strip() not in text]
            assert 1 <= len(paid) == len(calls) <= 5
            assert all("kite.example/install" in text for text in texts if text not in paid)
            assert service.cli("site", "show", service.domain)["spentTodayUsd"] <= 0.1
            url = f"{service.url}/v1/analytics/{service.project_id}/assistant"
            async with http.get(url, headers=service.admin) as response:
                assert (await response.text()).count("kite.example/install") >= 15
            service.stop()
            service.start()
            later = [await stranger(number) for number in (97, 98, 99)]
            assert NOTICE.strip() in later[-1]  # a restart frees nothing
            assert len(calls) <= 5
