"""A collector of traces: takes them over OTLP with protobuf and HTTP, and keeps them."""

import gzip
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    def __init__(self):
        self.bodies = []
        self.paths = set()
        self.url = ""
        self._news = threading.Condition()

    def take(self, path, body):
        with self._news:
            self.paths.add(path)
            if path == "/v1/traces":
                self.bodies.append(body)
            self._news.notify_all()

    def spans(self):
        with self._news:
            requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        return [
            span
            for one in requests
            for each in one.resource_spans
            for scope in each.scope_spans
            for span in scope.spans
        ]

    def resource(self):
        [first, *_] = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        return attributes_of(first.resource_spans[0].resource)

    def until(self, is_enough, seconds=60.0):
        """The spans by name, once there are enough."""
        with self._news:
            assert self._news.wait_for(lambda: is_enough(self.by_name()), seconds), sorted(self.by_name())
        return self.by_name()

    def by_name(self):
        found = {}
        for span in self.spans():
            found.setdefault(span.name, []).append(span)
        return found


def attributes_of(told):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in told.attributes}


@contextmanager
def collecting():
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.take(self.path, gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    collector.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
