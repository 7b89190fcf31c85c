"""What Prometheus reads, of a service that has something to tell."""

import http.client
import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from contextlib import ExitStack, closing

import pytest

from service.web.api.metrics import METHODS
from tests.service_process import free_port, service_in, write_docs

SAMPLE = re.compile(r"(?m)^(docsmith_\w+?)(?:\{(.*)\})? (\S+)$")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The metrics of each instance after two questions, a job, and requests that callers make up."""
    folder = tmp_path_factory.mktemp("metrics")
    with service_in(folder) as service:
        service.set_up(write_docs(folder / "docs"))
        service.start()
        ask(service, "How do I install Kite?")
        ask(service, "Which zebra won the regatta of 1873?")
        work(service)
        make_up(service)
        assert [status(service.url + path) for path in ("/nowhere/1", "/nowhere/2", "/healthz")] == [404, 404, 200]
        yield [read(f"{one.url}/metrics") for one in service.each]


def read(url, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
        return answer.read().decode()


def status(url, **headers):
    try:
        read(url, **headers)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    return 200


def work(service):
    """A job, to its end, and until that is counted."""
    url = f"{service.url}/v2/agent/{service.project_id}/job"
    body = json.dumps({"prompt": "Make it sing"}).encode()
    headers = {**service.admin, "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data=body, headers=headers), timeout=60) as answer:
        job = json.load(answer)["id"]
    read(f"{url}/{job}/events", **service.admin)  # to its end
    for one in service.each:
        while "docsmith_jobs_ended_total" not in read(f"{one.url}/metrics"):
            time.sleep(0.02)


def make_up(service):
    """What a caller can vary: methods, paths, domains, projects, keys, request ids, models."""
    host, port = service.url.removeprefix("http://").split(":")
    for number in range(20):
        for method, path in (
            ("GET", f"/made-up-{number}/x"), (f"MADE{number}", "/v2/openapi.json"), ("PUT", f"/hooks/made-up-{number}"),
            ("POST", f"/discovery/v1/search/made-up-{number}"), ("GET", f"/v2/agent/made-up-{number}/job/made-up"),
        ):  # fmt: skip
            connection = http.client.HTTPConnection(host, int(port), timeout=60)
            headers = {"Authorization": f"Bearer made-up-{number}", "X-Request-Id": f"made-up-{number}"}
            connection.request(method, path, headers=headers)
            connection.getresponse().read()
            connection.close()


def ask(service, question):
    body = {"fp": "anonymous", "messages": [{"role": "user", "content": question}]}
    request = urllib.request.Request(
        f"{service.url}/discovery/v1/assistant/{service.domain}/message",
        data=json.dumps(body).encode(),
        headers={**service.assistant, "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200
        answer.read()


def samples(*texts):
    """The sum of each over the instances."""
    found = Counter()
    for name, labels, value in SAMPLE.findall("\n".join(texts)):
        found[name, labels] += float(value)
    return dict(found)


def test_a_reply_is_counted(told):
    found = samples(*told)
    assert found["docsmith_model_first_token_seconds_count", 'model="builtin/extractive"'] == 2
    assert found["docsmith_model_tokens_total", 'kind="output",model="builtin/extractive"'] >= 0
    for each in map(samples, told):
        assert each["docsmith_replies_total", 'resolution="answered"'] == 1
        assert each["docsmith_replies_total", 'resolution="unanswered"'] == 1
    assert found["docsmith_model_cost_usd_total", 'model="builtin/extractive"'] == 0
    route = 'route="/discovery/v1/assistant/{domain}/message"'
    assert found["docsmith_http_stream_first_byte_seconds_count", route] == 2


def test_metrics_show_the_log_the_queue_and_the_sites(told):
    for text in told:
        check_log_queue_and_sites(samples(text))


def check_log_queue_and_sites(found):
    assert found["docsmith_log_events", ""] > 5
    assert found["docsmith_log_bytes", ""] > 0
    assert found["docsmith_sites", ""] == 1
    assert found["docsmith_sites_stale", ""] == 0
    assert 0 < found["docsmith_oldest_index_seconds", ""] < 24 * 3600
    assert found["docsmith_jobs_waiting", ""] == found["docsmith_webhook_deliveries_waiting", ""] == 0
    assert found["docsmith_open_connections", ""] >= 1
    assert found["docsmith_open_streams", ""] == 0
    assert found["docsmith_event_loop_delay_seconds_count", ""] > 0
    assert found["docsmith_process_resident_memory_bytes", ""] > 0


def test_values_made_up_by_callers_are_no_labels(told):
    told = "\n".join(told)
    assert [word for word in ("nowhere", "made-up", "MADE") if word in told] == []
    assert 'route="unknown",status="404"' in told
    labels = {name: set(re.findall(rf'\b{name}="([^"]*)"', told)) for name in ("method", "route", "status", "model")}
    assert labels["method"] <= METHODS | {"other"}
    assert labels["status"] <= {"200", "201", "202", "400", "401", "403", "404", "405", "503"}
    assert labels["model"] == {"builtin/extractive", "builtin/editor"}
    among = {route for route in labels["route"] if route.startswith("/internal/")}
    """Routes by which instances ask each other, where there are several."""
    assert len(labels["route"] - among) < 15
    assert all(route == "unknown" or route.startswith("/") for route in labels["route"])


def test_a_job_and_its_end_are_counted(told):
    found = samples(*told)
    for each in map(samples, told):
        assert each["docsmith_jobs_ended_total", 'outcome="completed"'] == 1
    assert found["docsmith_jobs_running", ""] == found["docsmith_oldest_job_seconds", ""] == 0
    assert (
        found["docsmith_http_request_seconds_count", 'method="POST",route="/v2/agent/{projectId}/job",status="201"']
        == 1
    )


def test_connections_over_the_limit_are_counted(tmp_path):
    port = free_port()
    settings = {"DOCSMITH_SERVER__MAX_CONNECTIONS": "16", "DOCSMITH_METRICS__PORT": str(port)}
    with service_in(tmp_path, settings) as service, ExitStack() as held:
        service.start()
        one = service.each[0]
        host, own = one.url.removeprefix("http://").split(":")
        for _ in range(16):
            connection = held.enter_context(closing(http.client.HTTPConnection(host, int(own), timeout=60)))
            connection.request("GET", "/healthz")
            assert connection.getresponse().read()
        assert status(f"{one.url}/healthz") == 503
        found = samples(read(f"http://127.0.0.1:{port}/metrics"))
        assert found["docsmith_bounds_reached_total", 'bound="connections"'] == 1


def test_promtool_finds_nothing_to_complain_of(told):
    if shutil.which("promtool") is None:
        pytest.skip("asks promtool; install Debian's package prometheus to run it")
    for text in told:
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_they_take_a_token_and_a_port_of_their_own(tmp_path):
    port = free_port()
    settings = {"DOCSMITH_METRICS__TOKEN_ENV": "SCRAPE", "SCRAPE": "geheim", "DOCSMITH_METRICS__PORT": str(port)}
    with service_in(tmp_path, settings) as service:
        service.start()
        assert status(f"http://127.0.0.1:{port}/metrics") == 401
        assert status(f"http://127.0.0.1:{port}/metrics", Authorization="Bearer gehe\xefm") == 401
        assert status(f"{service.url}/metrics", Authorization="Bearer geheim") == 404
        assert "docsmith_log_events" in read(f"http://127.0.0.1:{port}/metrics", Authorization="Bearer geheim")
        assert service.stop() == 0


def test_metrics_are_for_this_machine_unless_configured(tmp_path):
    with service_in(tmp_path, {"DOCSMITH_SERVER__TRUSTED_PROXIES": "127.0.0.1"}) as service:
        service.start()
        assert status(f"{service.url}/metrics", **{"X-Forwarded-For": "192.0.2.1"}) == 403
