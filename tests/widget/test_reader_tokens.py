"""The widget with a key for browsers: it fetches reader tokens, and works for them while its site is busy."""

import re
import time

import pytest

from service.web.widget.bundle import PROOF, widget
from tests.end_to_end.scripted import scripted_service
from tests.widget.conftest import expected_errors
from tests.widget.test_panel import answer, ask

pytestmark = pytest.mark.slow

HURRIED = """
let time = 0; // each look at the clock takes half a millisecond, on any machine
performance.now = () => (time += 0.5);
window.pauses = 0;
const later = window.setTimeout;
window.setTimeout = (work, ...more) => {
  if (!more.length) window.pauses += 1;
  return later(work, ...more);
};
"""
HASHES_IN_A_SLICE = 100


@pytest.fixture(scope="module")
def service(tmp_path_factory, provider_port):
    with scripted_service(tmp_path_factory.mktemp("tokens"), provider_port, LIMITS__PROOF_HOUR="1") as service:
        yield service


def calls_of(page):
    """The calls of the widget to the service from now on: path, status, what was sent."""
    calls = []

    def note(response):
        request = response.request
        if request.method != "OPTIONS" and re.search("/discovery/|/widget/", response.url):
            calls.append((response.url.split("?")[0].split("/", 3)[3], response.status, request))

    page.on("response", note)
    return calls


def make_busy(context, service, site):
    """Fetch reader tokens until they cost proof of work."""
    headers = {"Authorization": f"Bearer {site.tag['key']}", "Origin": site.origin}
    url = f"{service.url}/discovery/v1/token/{service.domain}"
    while (status := context.request.post(url, headers=headers).status) == 200:
        time.sleep(0.02)
    assert status == 403


def test_busy_site_answers_the_first_question(opened, provider, service, site):
    named = ("--domain", service.domain, "--origin", site.origin)
    site.tag["key"] = service.cli("key", "create", "--kind", "assistant", *named)["token"]
    token, proof = f"discovery/v1/token/{service.domain}", widget_file(PROOF)
    page = opened("about:blank")
    calls = calls_of(page)
    page.goto("/install")
    provider.will_reply("Run it.")
    ask(page)
    assert "Run it." in answer(page).inner_text()
    assert [status for path, status, _ in calls if path == token] == [200]
    assert {status for _, status, _ in calls} == {200}
    assert proof not in [path for path, _, _ in calls]

    make_busy(page.context, service, site)
    with expected_errors(opened) as errors:
        page = opened("about:blank")
        page.add_init_script(HURRIED)
        calls = calls_of(page)
        page.goto("/install")
        provider.will_reply("Then wait.")
        ask(page)
        assert "Then wait." in answer(page).inner_text()
        assert [one for one in errors if "status of 403" not in one] == []
    tokens = [(status, request.post_data_json) for path, status, request in calls if path == token]
    assert [status for status, _ in tokens] == [403, 200]
    assert [path for path, _, _ in calls if path == proof]
    assert {status for path, status, _ in calls if path != token} == {200}
    number = tokens[1][1]["proof"]["number"]
    assert page.evaluate("() => window.pauses") >= number // HASHES_IN_A_SLICE


def widget_file(key):
    """The path of a file that the panel loads when it is needed."""
    name = re.search(rf'"{key}":"([\w-]{{43}})"', widget().panel.body.decode())
    return f"widget/{name[1]}.js"
