"""Style sheets, pictures and scripts, and the manifest of those that others wrote."""

import hashlib
import re
import weakref

import msgspec
import pytest
from aiohttp import web

from scripts.sbom import with_vendored
from service.web.ask.sdk import find_script
from service.web.pages.assets import FOLDERS, WEB, asset_address, find_asset
from service.web.pages.html import asset

VENDORED = WEB / "vendored"
MANIFEST = msgspec.json.decode((VENDORED / "manifest.json").read_bytes())


def test_vendored_files_are_those_of_the_manifest():
    files = {file.name for file in VENDORED.iterdir()} - {"manifest.json"}
    assert {one["file"]: one["sha256"] for one in MANIFEST} == {
        name: hashlib.sha256((VENDORED / name).read_bytes()).hexdigest() for name in files
    }


def test_manifest_names_version_licence_and_source():
    for one in MANIFEST:
        assert one["version"] in one["source"]
        assert re.fullmatch(r"https://registry\.npmjs\.org/[^\s]+\.tgz", one["source"])
        assert one["licence"]
        assert one["name"]


def test_bill_of_materials_lists_vendored_files():
    bill = with_vendored({"bomFormat": "CycloneDX", "components": [{"name": "aiohttp"}]}, MANIFEST)
    assert bill["components"][0] == {"name": "aiohttp"}
    listed = {
        file["name"]: file["hashes"][0]["content"] for one in bill["components"][1:] for file in one["components"]
    }
    assert listed == {one["file"]: one["sha256"] for one in MANIFEST}
    assert {one["purl"] for one in bill["components"][1:]} >= {"pkg:npm/htmx.org@4.0.1"}


def test_asset_names_are_unique():
    names = [file.name for folder in FOLDERS if folder.is_dir() for file in folder.iterdir() if file.is_file()]
    assert len(names) == len(set(names))


async def test_asset_is_kept_for_good_under_its_version(aiohttp_client):
    app = web.Application()
    app.router.add_get("/assets/{name}", asset)
    client = await aiohttp_client(app)
    found = await client.get("/" + asset_address("htmx.min.js"))
    assert (found.status, found.content_type) == (200, "text/javascript")
    assert "immutable" in found.headers["Cache-Control"]
    assert await found.read() == find_asset("htmx.min.js").body
    assert (await client.get("/assets/htmx.min.js")).headers["Cache-Control"] == "no-cache"
    assert (await client.get("/assets/manifest.json")).status == 404


class Name(str):
    """A name whose memory can be followed."""


@pytest.mark.parametrize("find", [find_asset, find_script])
def test_unknown_name_is_not_kept_in_memory(find):
    name = Name("nothing.js")
    kept = weakref.ref(name)
    assert find(name) is None
    del name
    assert kept() is None
