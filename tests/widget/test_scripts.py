"""The widget's scripts as they are served: sizes, addresses, headers, and that packing them changes nothing."""

import gzip
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from service.web.widget.bundle import HIGHLIGHT, MARKDOWN, PROOF, SEARCH, widget

MAX_LOADER, MAX_PANEL, MAX_ALL = 3_000, 20_000, 35_000
"""Bytes on the wire. All: the loader, the panel and what it loads later, in the language that takes the most."""


def named(panel, key):
    return widget().by_name[re.search(rf'"{key}":"([\w-]{{43}})"', panel.body.decode())[1]]


def test_scripts_stay_small():
    found = widget()
    later = [named(found.panel, key) for key in (MARKDOWN, SEARCH, HIGHLIGHT, PROOF)]
    assert len(found.loader.packed) <= MAX_LOADER
    assert len(found.panel.packed) <= MAX_PANEL
    texts = [named(found.panel, file.stem) for file in Path("service/web/scripts/widget/texts").glob("*.json")]
    largest = max(texts, key=lambda one: len(one.packed))
    assert set(found.by_name.values()) == {found.loader, found.panel, *later, *texts}
    assert sum(len(one.packed) for one in (found.loader, found.panel, *later, largest)) <= MAX_ALL


def test_scripts_never_parse_html_or_code():
    for one in widget().by_name.values():
        for forbidden in (b"innerHTML", b"outerHTML", b"insertAdjacentHTML", b"document.write", b"eval(", b"<style"):
            assert forbidden not in one.body


@pytest.mark.parametrize("name", sorted(widget().by_name))
def test_packed_script_is_a_script(name, tmp_path):
    if shutil.which("node") is None:
        pytest.skip("node is missing: install Node.js 20 or later")
    file = tmp_path / "script.mjs"
    file.write_bytes(widget().by_name[name].body)
    done = subprocess.run(["node", "--check", str(file)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


async def test_loader_is_cached_for_minutes_and_files_for_good(client):
    found = widget()
    for path, script, caching in (
        ("/widget.js", found.loader, "public, max-age=300"),
        (f"/widget/{found.panel.name}.js", found.panel, "public, max-age=31536000, immutable"),
    ):
        plain = await client.get(path, headers={"Accept-Encoding": "identity"})
        packed = await client.get(path, headers={"Accept-Encoding": "gzip, br"})
        assert await plain.read() == script.body == gzip.decompress(await packed.read())
        assert packed.headers["Content-Encoding"] == "gzip"
        assert packed.headers["Cache-Control"] == caching
        assert packed.headers["Access-Control-Allow-Origin"] == "*"
        assert packed.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
        again = await client.get(path, headers={"If-None-Match": packed.headers["ETag"]})
        assert (again.status, await again.read()) == (304, b"")


@pytest.mark.parametrize(
    ("accepted", "is_packed"),
    [("gzip;q=0, br", False), ("br, gzip; q=0.0", False), ("", False), ("x-gzipped", False), ("GZIP;q=0.5", True)],
)
async def test_script_is_packed_for_who_takes_gzip(client, accepted, is_packed):
    answer = await client.get("/widget.js", headers={"Accept-Encoding": accepted})
    assert ("Content-Encoding" in answer.headers) is is_packed


@pytest.mark.parametrize("name", ["A" * 43, "panel", "..%2f..%2fpanel", "A" * 44])
async def test_unknown_file_is_not_found(client, name):
    assert (await client.get(f"/widget/{name}.js")).status == 404


def test_integrity_is_that_of_the_body():
    script = widget().panel
    assert script.integrity.startswith("sha256-")
    assert script.name.replace("-", "+").replace("_", "/") in script.integrity


@pytest.mark.parametrize("name", ["currentScript", "Docsmith"])
def test_element_of_the_page_chooses_no_server(tmp_path, name):
    if shutil.which("node") is None:
        pytest.skip("node is missing: install Node.js 20 or later")
    file = tmp_path / "loader.js"
    file.write_bytes(widget().loader.body)
    command = ["node", str(Path(__file__).with_name("hostile_page.mjs")), str(file), name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == f"https://docs.example/widget/{widget().panel.name}.js\n", done.stderr
