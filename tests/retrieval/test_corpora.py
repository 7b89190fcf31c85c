"""Real documentation, where DOCSMITH_CORPORA names the folder that holds it unpacked (``<name>/…``)."""

import os
from pathlib import Path

import pytest

from tests.fakes.sites import read_site

CORPORA = Path(os.environ.get("DOCSMITH_CORPORA") or "corpora")


@pytest.mark.parametrize(
    ("name", "kind", "first", "neighbours", "question"),
    [
        (
            "mintlify", "mintlify", ["index", "quickstart"],
            ("cli/install.mdx", "cli/preview.mdx"), "install the CLI and preview locally",
        ),
        (
            "dbt", "docusaurus", ["website/docs/docs/introduction", "website/docs/docs/available-adapters"],
            ("website/docs/docs/building-a-dbt-project/projects.md",
             "website/docs/docs/building-a-dbt-project/building-models.md"), "what is a project made of models",
        ),
    ],
)  # fmt: skip
async def test_page_in_view_lifts_neighbours_in_a_real_navigation(indexed, name, kind, first, neighbours, question):
    folder = CORPORA / name
    if not folder.is_dir():
        pytest.skip("no corpora here")
    files = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    site = read_site(files)
    places = {path: page.order for path, page in site.pages.items() if page.order >= 0}
    order = sorted(places, key=lambda path: places[path])
    assert site.kind == kind
    assert [path.rpartition(".")[0] for path in order[:2]] == first
    here, there = neighbours
    assert abs(places[here] - places[there]) == 1
    await indexed.fill(files)
    plain = await indexed.paths(question, limit=50)
    assert {here, there} <= set(plain)
    lifted = await indexed.paths(question, limit=50, current_path=here)
    assert lifted.index(here) <= plain.index(here)
    assert lifted.index(there) <= plain.index(there)
