"""The manual: its pages lead to each other on a code host and over HTTP."""

import itertools
import json
import re
import typing
from pathlib import Path

import msgspec
import pytest
from markdown_it import MarkdownIt

from service.markup.slugs import slug
from service.runtime.settings import ModelSection, Settings

MANUAL = Path(__file__).parent.parent.parent / "service" / "manual"
PAGES = sorted(file.name for file in MANUAL.glob("*.md"))


def anchors_of(text: str) -> set[str]:
    tokens = MarkdownIt("commonmark").parse(text)
    titles = (after.content for token, after in itertools.pairwise(tokens) if token.type == "heading_open")
    return {slug(re.sub("[`*]", "", title)) for title in titles}


def links_of(text: str) -> list[str]:
    inline = [child for token in MarkdownIt("commonmark").enable("table").parse(text) for child in token.children or ()]
    return [str(one.attrs.get("href") or one.attrs.get("src")) for one in inline if one.type in ("link_open", "image")]


@pytest.mark.parametrize("page", PAGES)
def test_each_link_of_a_page_leads_somewhere(page):
    for link in links_of((MANUAL / page).read_text("utf-8")):
        target, _, anchor = link.partition("#")
        if "://" in link:
            continue
        assert (MANUAL / (target or page)).is_file(), link
        assert not anchor or anchor in anchors_of((MANUAL / (target or page)).read_text("utf-8")), link


def test_the_index_leads_to_each_page():
    assert set(links_of((MANUAL / "index.md").read_text("utf-8"))) >= {*PAGES} - {"index.md"}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_a_title_and_a_description(page):
    text = (MANUAL / page).read_text("utf-8")
    found = re.match(r"---\ntitle: (.+)\ndescription: .+\.\n---\n\n# (.+)\n", text)
    assert found is not None
    assert found[1] == found[2]


SECTIONS = {**typing.get_type_hints(Settings), "models": ModelSection}


@pytest.mark.parametrize("name", SECTIONS)
def test_the_manual_lists_each_setting_and_its_default(name):
    heading = "models.NAME" if name == "models" else name
    section = (MANUAL / "configuration.md").read_text("utf-8").split(f"## `[{heading}]`\n")[1].split("\n## ")[0]
    listed = dict(re.findall(r"^\| `(\w+)` \| (.+?) \| .+\. \|$", section, re.MULTILINE))
    assert listed == {field.name: default_of(field) for field in msgspec.structs.fields(SECTIONS[name])}


def default_of(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    if field.default is None:
        return "not set"
    return f"`{json.dumps(field.default)}`"
