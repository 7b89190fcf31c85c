"""The benchmark of search takes questions from a site by its rules, and compares two runs by a paired test."""

import tarfile

from scripts.bench_terms import measured, terms_of
from scripts.search.compare import compared, keep, kept
from scripts.search.question_sets import derived_questions, without_questions
from service.retrieval.index.build import build_index

FAQ = "# Questions\n\n" + "".join(
    f"## How do I mend a {kite} kite?\n\nSee the pages.\n\n" for kite in ("red", "blue", "green", "black", "white")
)
SENTENCES = "\n\n".join(
    f"To tie the {knot} knot before flying, see [Knots](knots.md)." for knot in ("bow", "reef", "flat", "loop", "stop")
)
PAGES = {"faq.md": FAQ, "flying.md": f"# Flying\n\n{SENTENCES}\n", "knots.md": "# Knots\n\nTie them well.\n"}


def packed(folder, pages):
    with tarfile.open(folder / "site.tar", "w") as archive:
        for name, text in pages.items():
            (folder / name).write_text(text, encoding="utf-8")
            archive.add(folder / name, name)
    return folder / "site.tar"


def test_questions_are_taken_from_headings_and_sentences(tmp_path):
    archive, index = packed(tmp_path, PAGES), tmp_path / "index"
    build_index(archive, index, docs_folder="", commit="0" * 40, progress=lambda *_: None)
    found = {one["query"]: one for one in derived_questions(index)}
    assert len(found) == 10
    assert found["How do I mend a red kite?"] == {
        "query": "How do I mend a red kite?", "relevant": ["faq.md"], "kind": "heading",
    }  # fmt: skip
    pointer = next(one for query, one in found.items() if "bow knot" in query)
    assert (pointer["relevant"], pointer["kind"], pointer["leaves_out"]) == (["knots.md"], "pointer", "flying.md")


def test_asked_headings_are_not_in_their_index(tmp_path):
    asked = [{"query": "How do I mend a red kite?", "relevant": ["faq.md"], "kind": "heading"}]
    without_questions(packed(tmp_path, PAGES), tmp_path / "blank.tar", asked)
    with tarfile.open(tmp_path / "blank.tar") as archive:
        text = archive.extractfile("faq.md").read().decode()
    assert text == FAQ.replace("How do I mend a red kite?", "Question")


def test_better_runs_are_told_from_chance(tmp_path):
    before = {str(number): 0.2 for number in range(20)}
    keep(tmp_path, "kites", {"ours": before})
    better = compared({"kites": kept(tmp_path, "kites")}, {"kites": {"ours": dict.fromkeys(before, 0.4)}})
    mixed = dict.fromkeys(before, 0.2) | {"0": 0.4, "1": 0.0}
    alike = compared({"kites": kept(tmp_path, "kites")}, {"kites": {"ours": mixed}})
    assert (better[0]["difference"], better[0]["better"], better[0]["p"] < 0.01) == (0.2, 20, True)
    assert (alike[0]["difference"], alike[0]["p"]) == (0.0, 1.0)


def test_terms_are_headings_that_are_names(tmp_path):
    lines = [
        "# Options",
        "## `--tide=<height>`",
        "## build.target <Badge>new</Badge>",
        "## useTide()",
        "## Static pods",
    ]
    lines += ["## `pods` in a row", "### `level` (required)", "## Note: read this"]
    archive, index = packed(tmp_path, {"cli.md": "\n\nText.\n\n".join(lines)}), tmp_path / "index"
    build_index(archive, index, docs_folder="", commit="0" * 40, progress=lambda *_: None)
    found = {term.name: min(term.urls) for term in terms_of(archive, index)}
    assert sorted(found) == ["--tide", "build.target", "level", "useTide"]
    assert found["level"] == "/cli#level-required"


async def test_terms_are_measured_by_their_own_sections(tmp_path):
    pages = {
        "cli.md": "# Options\n\n## `--tide`\n\nThe height.\n\n## `--sail`\n\nHoists the canvas.\n",
        "tide.md": "# Tides\n\nTide.\n",
    }
    (tmp_path / "corpora" / "ship").mkdir(parents=True)
    for name, text in pages.items():
        (tmp_path / "corpora" / "ship" / name).write_text(text, encoding="utf-8")
    rows, goals = await measured(tmp_path / "corpora", ["ship"], tmp_path)
    assert rows[0] == {"corpus": "ship", "terms": 2, "first": 1.0, "three": 1.0, "forms": 1.0, "quoted": 1.0}
    assert [goal["met"] for goal in goals] == [True, True, True]
