"""The questions about the small sites fit the pages that they are asked about."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SITES = ROOT / "scripts/answers/small_sites"
FILES = ("questions.jsonl", "later_questions.jsonl", "held_out_questions.jsonl")
IN_FILE = {
    name: [json.loads(line) for line in (SITES / name).read_text(encoding="utf-8").splitlines()] for name in FILES
}
QUESTIONS = [one for questions in IN_FILE.values() for one in questions]
DOCUMENTED = [one for one in QUESTIONS if not one.get("undocumented")]
PAGES = {".md", ".mdx", ".rst", ".yaml"}
HEADINGS = {
    ".md": re.compile(r"#{1,6} (?P<heading>.+)|title: *(?P<title>.+)"),
    ".rst": re.compile(r"(?P<heading>\S.*)"),
    ".yaml": re.compile(r" +summary: (?P<heading>.+)"),
}
HEADINGS[".mdx"] = HEADINGS[".md"]


def folded(text: str) -> str:
    return " ".join(text.lower().split())


def site_folder(site: str) -> Path:
    return ROOT / "service/manual" if site == "manual" else SITES / site


def sections_of(page: Path) -> dict[str, str]:
    """The page's own text under each heading, without that of the headings below it."""
    lines = page.read_text(encoding="utf-8").splitlines()
    sections: dict[str, list[str]] = {}
    here: list[str] = []
    in_code = False
    in_front_matter = page.suffix in {".md", ".mdx"} and lines[0] in {"---", "+++"}
    for number, line in enumerate(lines):
        in_code ^= line.lstrip().startswith("```")
        if number and line in {"---", "+++"}:
            in_front_matter = False
        found = None if in_code else HEADINGS[page.suffix].match(line)
        if found and page.suffix == ".rst":
            below = lines[number + 1] if number + 1 < len(lines) else ""
            above = lines[number - 1] if number else ""
            if above or not re.fullmatch(r"([=\-~^])\1{2,}", below) or len(below) < len(line):
                found = None
        if found and (found["heading"] or in_front_matter):
            here = sections.setdefault(folded((found["heading"] or found["title"]).strip('"')), [])
        here.append(line)
    return {name: folded(" ".join(text)) for name, text in sections.items()}


@pytest.mark.parametrize("questions", IN_FILE.values(), ids=IN_FILE)
def test_every_site_has_documented_and_undocumented_questions(questions: list[dict]):
    folders = {folder.name for folder in SITES.iterdir() if folder.is_dir()} | {"manual"}
    assert {one["site"] for one in questions if not one.get("undocumented")} == folders
    assert {one["site"] for one in questions if one.get("undocumented")} == folders


@pytest.mark.parametrize("questions", IN_FILE.values(), ids=IN_FILE)
def test_no_question_is_asked_twice(questions: list[dict]):
    assert max(Counter((one["site"], folded(one["question"])) for one in questions).values()) == 1


@pytest.mark.parametrize("one", DOCUMENTED, ids=lambda one: f"{one['site']}: {one['question']}")
def test_an_answer_stands_in_its_section(one: dict):
    path, heading = one["section"].split("#", 1)
    sections = sections_of(site_folder(one["site"]) / path)
    heading = folded(heading.strip('"'))
    assert heading in sections
    assert one["shows"]
    for words in one["shows"]:
        assert folded(words) in sections[heading]
        assert folded(words) not in folded(one["question"])


@pytest.mark.parametrize("one", [one for one in QUESTIONS if "invented" in one], ids=lambda one: one["question"])
def test_an_invented_name_stands_on_no_page(one: dict):
    pages = [page for page in site_folder(one["site"]).rglob("*") if page.suffix in PAGES]
    assert pages
    for name in one["invented"]:
        assert folded(name) in folded(one["question"])
        assert not [page for page in pages if folded(name) in folded(page.read_text(encoding="utf-8"))]
