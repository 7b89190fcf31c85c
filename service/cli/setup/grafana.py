"""A dashboard for Grafana and alert rules for Prometheus, of what ``/metrics`` tells."""

import json
from typing import Any, Literal

Unit = Literal["s", "short", "bytes", "percentunit", "reqps", "currencyUSD"]

_RATE = "[$__rate_interval]"


def _at(share: float, metric: str, by: str = "") -> str:
    group = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({group}) (rate({metric}_bucket{_RATE})))"


PANELS: tuple[tuple[str, Unit, tuple[tuple[str, str], ...]], ...] = (
    ("Requests", "reqps", ((f"sum by (status) (rate(docsmith_http_request_seconds_count{_RATE}))", "{{status}}"),)),
    ("Slowest routes, p95", "s", ((f"topk(8, {_at(0.95, 'docsmith_http_request_seconds', 'route')})", "{{route}}"),)),
    ("First byte of streams, p95", "s", (
        (_at(0.95, "docsmith_http_stream_first_byte_seconds", "route"), "{{route}}"),
    )),
    ("First token of models, p95", "s", ((_at(0.95, "docsmith_model_first_token_seconds", "model"), "{{model}}"),)),
    ("Tokens", "short", ((f"sum by (model, kind) (rate(docsmith_model_tokens_total{_RATE}))", "{{model}} {{kind}}"),)),
    ("Cost an hour", "currencyUSD", (("sum by (model) (increase(docsmith_model_cost_usd_total[1h]))", "{{model}}"),)),
    ("Failed calls of models", "short", (
        ("sum by (model) (increase(docsmith_model_failures_total[1h]))", "{{model}}"),
    )),
    ("Unanswered questions, of all in a day", "percentunit", ((
        'sum(increase(docsmith_replies_total{resolution="unanswered"}[1d])) '
        "/ clamp_min(sum(increase(docsmith_replies_total[1d])), 1)", "share",
    ),)),
    ("Jobs", "short", (
        ("docsmith_jobs_running", "running"), ("docsmith_jobs_waiting", "waiting"),
        ("sum by (outcome) (increase(docsmith_jobs_ended_total[1h]))", "{{outcome}} in an hour"),
    )),
    ("Age of the oldest job", "s", (("docsmith_oldest_job_seconds", "age"),)),
    ("Sites", "short", (("docsmith_sites", "all"), ("docsmith_sites_stale", "stale"))),
    ("Age of the oldest index", "s", (("docsmith_oldest_index_seconds", "age"),)),
    ("Webhooks that wait", "short", (("docsmith_webhook_deliveries_waiting", "waiting"),)),
    ("Streams and connections", "short", (
        ("docsmith_open_streams", "streams"), ("docsmith_open_connections", "connections"),
    )),
    ("Event loop delay", "s", (
        (_at(0.5, "docsmith_event_loop_delay_seconds"), "p50"), (_at(0.99, "docsmith_event_loop_delay_seconds"), "p99"),
    )),
    ("Log", "bytes", (("docsmith_log_bytes", "file"), ("docsmith_log_wal_bytes", "write-ahead file"))),
    ("Height of the chain", "short", (
        ("docsmith_log_events", "events"), ("docsmith_views_lag_events", "views behind"),
    )),
    ("Memory", "bytes", (("docsmith_process_resident_memory_bytes", "resident"),)),
)  # fmt: skip
"""Title, unit, and the lines: expression and name."""

ALERTS: tuple[tuple[str, str, str, str], ...] = (
    ("DocsmithDown", 'up{job="docsmith"} == 0', "2m", "Docsmith does not answer."),
    (
        "DocsmithErrors",
        'sum(rate(docsmith_http_request_seconds_count{status=~"5.."}[5m])) '
        "/ clamp_min(sum(rate(docsmith_http_request_seconds_count[5m])), 0.01) > 0.05",
        "5m",
        "More than a twentieth of the requests fail on our side; the log says why.",
    ),
    (
        "DocsmithModelFails",
        "sum by (model) (increase(docsmith_model_failures_total[15m])) > 5",
        "5m",
        "Calls of {{ $labels.model }} fail; docsmith doctor --ask-models says why.",
    ),
    (
        "DocsmithFirstTokenSlow",
        "histogram_quantile(0.95, sum by (le, model) (rate(docsmith_model_first_token_seconds_bucket[15m]))) > 20",
        "15m",
        "{{ $labels.model }} takes long to begin.",
    ),
    ("DocsmithJobsStuck", "docsmith_oldest_job_seconds > 7200", "10m", "A job has not ended for two hours."),
    ("DocsmithQueueLong", "docsmith_jobs_waiting > 50", "30m", "Jobs wait: raise [agent] concurrent_jobs."),
    ("DocsmithIndexStale", "docsmith_sites_stale > 0", "1h", "A site's index cannot be made; docsmith doctor."),
    ("DocsmithWebhooksWait", "docsmith_webhook_deliveries_waiting > 100", "30m", "Webhooks do not arrive."),
    ("DocsmithViewsBehind", "docsmith_views_lag_events > 1000", "10m", "A view is behind; /readyz says which."),
    (
        "DocsmithLoopSlow",
        "histogram_quantile(0.99, sum by (le) (rate(docsmith_event_loop_delay_seconds_bucket[5m]))) > 0.25",
        "10m",
        "The event loop is late: the machine has too little to compute with.",
    ),
    (
        "DocsmithWalLarge",
        "docsmith_log_wal_bytes > 1e9",
        "15m",
        "Somebody holds the log open and keeps it from ending.",
    ),
    (
        "DocsmithDataFolderUnwritable",
        "max(docsmith_data_folder_trouble) > 0",
        "1m",
        "The disk of the data folder is full or read-only, or the log cannot be written: jobs and replies get 503.",
    ),
)
"""Name, expression, for how long, and what it means."""


def dashboard() -> str:
    """JSON, for Grafana's import; it asks which Prometheus to read."""
    panels = [
        {
            "id": number + 1,
            "type": "timeseries",
            "title": title,
            "datasource": {"type": "prometheus", "uid": "${source}"},
            "gridPos": {"h": 8, "w": 8, "x": number % 3 * 8, "y": number // 3 * 8},
            "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
            "targets": [
                {"expr": expression, "legendFormat": name, "refId": chr(ord("A") + place)}
                for place, (expression, name) in enumerate(lines)
            ],
        }
        for number, (title, unit, lines) in enumerate(PANELS)
    ]
    whole: dict[str, Any] = {
        "uid": "docsmith",
        "title": "Docsmith",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [{"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}]
        },
        "panels": panels,
    }
    return json.dumps(whole, indent=2) + "\n"


def alert_rules() -> str:
    """YAML, for ``rule_files`` of Prometheus."""
    lines = ["groups:", "  - name: docsmith", "    rules:"]
    for name, expression, seconds, summary in ALERTS:
        lines += [
            f"      - alert: {name}",
            f"        expr: {json.dumps(expression)}",
            f"        for: {seconds}",
            "        annotations:",
            f"          summary: {json.dumps(summary)}",
        ]
    return "\n".join(lines) + "\n"
