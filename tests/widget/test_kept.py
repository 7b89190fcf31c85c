"""Files of earlier versions: they answer after an upgrade, and do not grow without end."""

import gzip
from datetime import UTC, datetime, timedelta

import pytest

from service.web.widget import scripts
from service.web.widget.bundle import widget
from service.web.widget.kept import MAX_AGE, MAX_VERSIONS, keep_files
from tests.widget.earlier import earlier_widget

NOW = datetime(2026, 11, 23, 10, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / scripts.FOLDER


def kept(folder):
    return {one.name for one in folder.iterdir()}


async def test_files_of_an_earlier_version_are_served(client, folder):
    before = earlier_widget()
    assert not before.by_name.keys() & widget().by_name.keys()
    panel = f"/widget/{before.panel.name}.js"
    missing = await client.get(panel)
    assert (missing.status, missing.headers["Cache-Control"]) == (404, "no-store")
    keep_files(folder, before, NOW)
    keep_files(folder, widget(), NOW + DAY)
    for name, one in before.by_name.items():
        found = await client.get(f"/widget/{name}.js", headers={"Accept-Encoding": "gzip"})
        assert found.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert gzip.decompress(await found.read()) == one.body
    plain = await client.get(panel, headers={"Accept-Encoding": "identity"})
    assert await plain.read() == before.panel.body
    assert (await client.get("/widget.js", headers={"If-None-Match": f'"{widget().loader.name}"'})).status == 304


async def test_damaged_file_is_not_served_and_is_repaired(client, folder):
    before = earlier_widget()
    keep_files(folder, before, NOW)
    file = folder / before.loader.name / f"{before.panel.name}.js"
    file.write_bytes(before.panel.body[:-1])
    assert (await client.get(f"/widget/{file.name}")).status == 404
    keep_files(folder, before, NOW + DAY)
    assert (await client.get(f"/widget/{file.name}")).status == 200


def test_few_versions_are_kept(folder):
    versions = [earlier_widget(number) for number in range(MAX_VERSIONS + 3)]
    for day, one in enumerate(versions):
        keep_files(folder, one, NOW + day * DAY)
    assert kept(folder) == {one.loader.name for one in versions[-MAX_VERSIONS:]}


def test_version_is_kept_for_a_year_after_the_next(folder):
    first, second = earlier_widget(2), earlier_widget(1)
    keep_files(folder, first, NOW)
    later = NOW + 2 * MAX_AGE  # the first was served for two years
    keep_files(folder, second, later)
    keep_files(folder, second, later + MAX_AGE - DAY)
    assert kept(folder) == {first.loader.name, second.loader.name}
    keep_files(folder, widget(), later + MAX_AGE + DAY)
    assert kept(folder) == {second.loader.name, widget().loader.name}


def test_what_a_killed_process_left_is_removed(folder):
    (folder / ".half").mkdir(parents=True)
    (folder / ".half" / "file.js").write_bytes(b"")
    keep_files(folder, widget(), NOW)
    assert kept(folder) == {widget().loader.name}
    assert {one.stem for one in (folder / widget().loader.name).iterdir()} == widget().by_name.keys()
