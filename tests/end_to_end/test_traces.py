"""Traces, as a collector gets them from a service that has answered, worked and told."""

import json
import re
import urllib.request

import pytest

from service.ports.tracer import SPANS
from tests.fakes.collector import attributes_of, collecting
from tests.service_process import INSTANCES, service_in, write_docs

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TYPED = "How do I install Kite, dear Zebulon?"
INSTRUCTION = 'Append "Call me Zebulon." to install.md'


def asked(url, headers, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={**headers, "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The collector, and all spans by name, of a service that has stopped; and the job's id."""
    folder = tmp_path_factory.mktemp("traces")
    with collecting() as collector:
        settings = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_EXPORTER_OTLP_HEADERS": "api-key=geheim",
            "OTEL_SERVICE_NAME": "kite-docs",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            "DOCSMITH_NETWORK__ALLOW_PRIVATE": "true",
        }
        with service_in(folder, settings) as service:
            service.set_up(write_docs(folder / "docs"))
            service.cli("webhook", "create", "--url", f"{collector.url}/hook?token=geheim")
            service.start()
            message = f"{service.url}/discovery/v2/assistant/{service.domain}/message"
            body = {"fp": "zebulon", "messages": [{"role": "user", "parts": [{"type": "text", "text": TYPED}]}]}
            asked(message, {**service.assistant, "traceparent": PARENT, "X-Request-Id": "question-1"}, body)
            jobs = f"{service.url}/v2/agent/{service.project_id}/job"
            headers = {**service.admin, "X-Request-Id": "wish-1"}
            job = json.loads(asked(jobs, headers, {"prompt": INSTRUCTION}))["id"]
            asked(f"{service.url}/healthz", {})
            collector.until(lambda names: "docsmith.job" in names and "docsmith.webhook.delivery" in names)
            assert service.stop() == 0
            secrets = [service.admin_key, service.assistant_key, "geheim", "Zebulon", "zebulon", str(folder)]
        yield collector, job, secrets


def test_a_question_is_one_trace_with_its_callers(told):
    names = told[0].by_name()
    [request] = names["POST /discovery/v2/assistant/{domain}/message"]
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == (PARENT[3:35], PARENT[36:52])
    attributes = attributes_of(request)
    assert attributes["http.response.status_code"] == 200
    assert attributes["docsmith.request.id"] == "question-1"
    [reply] = names["docsmith.reply"]
    assert (reply.trace_id, reply.parent_span_id) == (request.trace_id, request.span_id)
    [search] = [one for one in names["docsmith.search"] if one.trace_id == request.trace_id]
    [model] = [one for one in names["chat extractive"] if one.trace_id == request.trace_id]
    assert search.parent_span_id == model.parent_span_id == reply.span_id
    assert attributes_of(search)["docsmith.site"] == "kite"
    assert attributes_of(search)["docsmith.search.results"] > 0
    answer = attributes_of(model)
    assert (answer["gen_ai.operation.name"], answer["gen_ai.provider.name"]) == ("chat", "builtin")
    assert answer["gen_ai.response.model"] == "builtin/extractive"
    assert answer["docsmith.model.first_token_seconds"] > 0
    assert [one.string_value for one in answer["gen_ai.response.finish_reasons"].values] == ["stop"]


def test_job_has_its_own_trace_that_is_linked_to_the_request(told):
    collector, job_id, _ = told
    names = collector.by_name()
    [request] = names["POST /v2/agent/{projectId}/job"]
    [job] = names["docsmith.job"]
    assert job.trace_id != request.trace_id
    links = [(link.trace_id, link.span_id) for link in job.links]
    assert links == [(request.trace_id, request.span_id)] or (INSTANCES and not links), "another one may have taken it"
    attributes = attributes_of(job)
    assert attributes == {"docsmith.job.id": job_id, "docsmith.job.attempt": 1, "docsmith.request.id": "wish-1"}
    within = {name for name, spans in names.items() for span in spans if span.parent_span_id == job.span_id}
    assert {"git fetch", "git list_files", "git write_commit", "git push", "chat editor",
            "code_host open_pull_request"} <= within  # fmt: skip
    assert attributes_of(names["docsmith.webhook.delivery"][0])["http.response.status_code"] == 200


def test_traces_are_as_described_and_hold_nothing_people_typed(told):
    collector, _, secrets = told
    forms = {r"\{method\}": "[A-Z_]+", r"\{route\}": "/.*", r"\{operation\}": "[a-z_]+", r"\{model\}": ".+"}
    patterns = {}
    for name, attributes in SPANS.items():
        form = re.escape(name)
        for placeholder, what in forms.items():
            form = form.replace(placeholder, what)
        patterns[re.compile(form)] = attributes
    seen = set()
    for span in collector.spans():
        [(pattern, allowed)] = [each for each in patterns.items() if each[0].fullmatch(span.name)]
        assert {one.key for one in span.attributes} <= set(allowed), span.name
        seen.add(pattern)
    assert {pattern.pattern for pattern in patterns.keys() - seen} <= {"docsmith\\.read_page"}
    spans = collector.by_name()
    assert not [name for name in spans if "healthz" in name]
    assert [one for one in secrets if one.encode() in b"".join(collector.bodies)] == []
    assert collector.paths == {"/v1/traces", "/hook?token=geheim"}


def test_standard_variables_name_the_service(told):
    resource = told[0].resource()
    assert resource["service.name"] == "kite-docs"
    assert resource["deployment.environment.name"] == "test"
    assert resource["service.version"]
