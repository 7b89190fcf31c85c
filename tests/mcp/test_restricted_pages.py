"""Pages for groups of readers: a site's server tells no caller, and no model, what is in them."""

import json

import pytest

from tests.end_to_end.scripted import scripted_settings
from tests.fakes.provider_protocols import Call
from tests.mcp.client import Client
from tests.mcp.conftest import RESTRICTED
from tests.service_process import DOCS, service_in, write_docs


@pytest.fixture(scope="module")
def asked_site(tmp_path_factory, port):
    """A public site with a restricted page, whose model says what a test has it say."""
    folder = tmp_path_factory.mktemp("restricted")
    with service_in(folder, scripted_settings(port, LIMITS__PUBLIC_COST_USD_DAY="100")) as service:
        service.set_up(write_docs(folder / "docs", {**DOCS, "staff.md": RESTRICTED}))
        service.cli("site", "update", "kite", "--public")
        service.start()
        yield service


@pytest.mark.parametrize("is_keyed", [False, True])
async def test_model_that_reads_by_itself_learns_nothing_of_them(http, asked_site, provider, is_keyed):
    client = Client(http, f"{asked_site.url}/mcp/kite", **(asked_site.assistant if is_keyed else {}))
    reads = [("search", {"query": "vault code"}), ("read_page", {"path": "/staff"}), ("read_page", {"path": "/retry"})]
    for name, arguments in reads:
        provider.will_reply(calls=(Call(name, (json.dumps(arguments),)),))
    provider.will_reply("Set `retryDelaySecs` [1].")
    answer = await client.call("ask", question="What is the vault code of the staff?")
    assert answer["isError"] is False
    told = json.dumps([asked.body for asked in provider.asked])
    assert len(provider.asked) == 4
    assert "Set `retryDelaySecs` to the number of seconds" in told
    assert "9417" not in told + json.dumps(answer)
