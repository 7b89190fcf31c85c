import json

from tests.retrieval.formats import page_of, places, reason


def notebook(*cells: dict[str, object], **metadata: object) -> str:
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1)


CELLS = (
    {"cell_type": "markdown", "metadata": {"source": "no"}, "source": ["# Frobs\n", "\n", "About *it*.\n"]},
    {
        "cell_type": "code",
        "execution_count": 1,
        "metadata": {},
        "outputs": [{"data": {"text/plain": ["PRINTED"], "image/png": "iVBOR" * 1000}, "output_type": "display_data"}],
        "source": ["import frob\n", 'frob.run("```")'],
    },
    {"cell_type": "markdown", "metadata": {}, "source": "## Next\n\nSee [a](a.md)."},
)


def test_prose_and_code_are_kept_and_what_was_printed_is_not():
    page = page_of(notebook(*CELLS, kernelspec={"language": "python"}), "a.ipynb")
    assert page.title == "Frobs"
    assert page.content == (
        'About *it*.\n\n````python\nimport frob\nfrob.run("```")\n````\n\n## Next\n\nSee [a](a.md).'
    )


def test_lines_are_those_of_the_file():
    text = notebook(*CELLS)
    lines = text.split("\n")
    page = page_of(text, "a.ipynb")
    assert [(heading, anchor) for heading, anchor, _, _ in places(page)] == [("", ""), ("Next", "next")]
    (_, _, start, end), (_, _, following, _) = places(page)
    assert "Frobs" in lines[start - 1]
    assert start < next(n for n, line in enumerate(lines, 1) if "frob.run" in line) <= end < following
    assert "Next" in lines[following - 1]
    assert [link.line for link in page.links] == [following]


def test_the_older_format_is_read():
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Old"]},
        {"cell_type": "code", "input": ["x = 1"], "outputs": []},
    ]
    page = page_of(json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]}), "a.ipynb")
    assert page.content == "## Old\n\n```\nx = 1\n```"


def test_invalid_notebook_is_skipped_with_a_reason():
    assert "not a Jupyter notebook" in reason("{", "a.ipynb")
    assert "not a Jupyter notebook" in reason(b'{"cells": [{"source": 5}]}', "a.ipynb")
    assert "not a Jupyter notebook" in reason(b'{"cells": [{"source": "\xff"}]}', "a.ipynb")
    assert "cells" in reason(notebook(*({"cell_type": "raw", "source": "x"},) * 5001), "a.ipynb")
    assert "larger" in reason(b'{"cells": []}' + b" " * (10 << 20), "a.ipynb")
    assert reason('{"cells": ' + "[" * 100_000, "a.ipynb")
