"""Pages after an upgrade of the service: a pinned tag, and an open panel, go on with the files of their version."""

import re
import time
import urllib.request
from datetime import UTC, datetime

import pytest

from service.web.widget.bundle import widget
from service.web.widget.kept import keep_files
from service.web.widget.scripts import FOLDER
from tests.widget.earlier import earlier_widget
from tests.widget.test_loading import CODE, search_for
from tests.widget.test_panel import answer, ask

pytestmark = pytest.mark.slow

SECONDS = 60
PINNED = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page of the docs</title></head>
<body><h1>Install Kite</h1><script src="{host}/widget/{loader.name}.js" integrity="{loader.integrity}"
crossorigin="anonymous" data-site="{site}" data-key="{key}" async></script></body></html>"""


def test_pinned_widget_works_after_an_upgrade(opened, provider, service, site, tmp_path):
    earlier = earlier_widget()
    page_file = tmp_path / "install.html"
    shown = {"host": service.url, "site": service.domain, "key": service.assistant_key}
    page_file.write_text(PINNED.format(loader=earlier.loader, **shown), encoding="utf-8")
    site.folder = tmp_path
    for folder in service.folders:
        keep_files(folder / FOLDER, earlier, datetime.now(UTC))  # as the earlier version did at its start
    provider.will_reply(CODE)
    page = opened("about:blank")
    loaded = []
    page.on("response", lambda one: loaded.append((one.status, one.url)) if "/widget/" in one.url else None)
    page.goto("/install")
    ask(page)
    assert "x = 1" in answer(page).inner_text()
    page.locator("ask-docs .prose code span").first.wait_for()
    page.keyboard.press("Control+k")
    search_for(page, "installer").wait_for()
    files = {re.search(r"/widget/([\w-]{43})\.js$", url)[1] for _, url in loaded if url.endswith(".js")}
    assert {status for status, _ in loaded} == {200}
    assert len(files) == 6
    assert files <= earlier.by_name.keys()


def test_started_service_keeps_its_widget_for_the_next_version(service):
    until = time.monotonic() + SECONDS
    for folder in service.folders:
        while not (folder / FOLDER / widget().loader.name).is_dir():
            assert time.monotonic() < until
            urllib.request.urlopen(f"{service.url}/healthz", timeout=SECONDS).close()
