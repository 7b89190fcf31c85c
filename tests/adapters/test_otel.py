"""Traces cost a service nothing that it would miss: neither where nobody wants them nor where nobody takes them."""

import ast
import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from service.adapters.tracing.otel import OpenTelemetry
from service.adapters.tracing.traced import is_wanted
from service.domain.errors import Invalid
from tests.fakes.collector import attributes_of, collecting

pytestmark = pytest.mark.slow

SERVICE = Path(__file__).parent.parent.parent / "service"
SAYS_SO = """
import service.adapters.tracing.traced as traced
from service.domain.errors import Invalid
try:
    tracer = traced.tracer_for("1")
    with tracer.span("unseen") as span:
        print(span._span.is_recording())
except Invalid as error:
    print(error)
"""


def sent_to(url, timeout=None):
    return OpenTelemetry("1.0", exporter=OTLPSpanExporter(endpoint=f"{url}/v1/traces", timeout=timeout))


def test_standard_variables_switch_tracing_on_and_off():
    there = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
    assert is_wanted(there)
    assert is_wanted({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"})
    assert not is_wanted({})
    assert not is_wanted({**there, "OTEL_SDK_DISABLED": "TRUE"})
    assert not is_wanted({**there, "OTEL_TRACES_EXPORTER": "none"})


def test_nothing_of_it_is_imported_unless_configured():
    """The SDK takes a seventh of a second."""
    for file in SERVICE.rglob("*.py"):
        if file.name != "otel.py":
            names = [ast.unparse(node) for node in ast.parse(file.read_text(encoding="utf-8")).body]
            assert not [one for one in names if "import" in one.split()[:3] and "opentelemetry" in one], file
    traced = ast.parse((SERVICE / "adapters" / "tracing" / "traced.py").read_text(encoding="utf-8")).body
    assert not [
        node for node in traced if isinstance(node, ast.ImportFrom) and node.module == "service.adapters.tracing.otel"
    ]


def test_silent_collector_delays_neither_work_nor_shutdown():
    others = set(threading.enumerate())
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        tracer = sent_to(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=1)
        began = time.monotonic()
        for number in range(5_000):
            with tracer.span("docsmith.search", {"docsmith.site": "kite"}, request_id=str(number)) as span:
                span.set("docsmith.search.results", number)
        assert time.monotonic() - began < 8  # each of some ten batches takes the exporter a second
        began = time.monotonic()
        tracer.close(0.2)
        assert time.monotonic() - began < 4
    for thread in set(threading.enumerate()) - others:  # it tries again at random times, by Python's own randomness,
        thread.join(30)  # which other tests want for themselves
        assert not thread.is_alive()


def test_inner_span_is_a_child_and_a_failure_has_its_kind():
    with collecting() as collector:
        tracer = sent_to(collector.url)
        with tracer.span("outer", request_id="r-1"), tracer.span("inner", encloses=False), tracer.span("sibling"):
            pass
        with pytest.raises(Invalid), tracer.span("failed", remote="00-nonsense"):
            raise Invalid("Zebulon typed this", code="too_much")
        with pytest.raises(asyncio.CancelledError), tracer.span("left"):
            raise asyncio.CancelledError
        with tracer.span("asked", asked_by="r-1"), tracer.span("linked", asked_by="r-1", is_linked=True):
            pass
        tracer.close()
        spans = {span.name: span for span in collector.spans()}
    assert (attributes_of(spans["left"]), spans["left"].status.code) == ({"error.type": "cancelled"}, 0)
    outer, failed = spans["outer"], spans["failed"]
    assert spans["inner"].parent_span_id == spans["sibling"].parent_span_id == outer.span_id
    assert spans["asked"].parent_span_id == outer.span_id
    assert (spans["linked"].links[0].span_id, spans["linked"].parent_span_id) == (outer.span_id, b"")
    assert attributes_of(failed) == {"error.type": "too_much"}
    assert (failed.status.code, failed.status.message, len(failed.events)) == (2, "", 0)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [("OTEL_TRACES_SAMPLER", "always_off", "False"), ("OTEL_BSP_MAX_QUEUE_SIZE", "-1", "OpenTelemetry's variables")],
)
def test_sampler_is_used_and_an_invalid_variable_reported(name, value, told):
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", name: value}
    done = subprocess.run(
        [sys.executable, "-c", SAYS_SO], env={**os.environ, **variables}, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(told)
