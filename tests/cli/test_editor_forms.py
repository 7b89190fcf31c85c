"""The forms of the builtin editor read the same wherever people meet them."""

from pathlib import Path

from service.adapters.builtin.editing.forms import parse
from service.cli.jobs import BUILTIN_FORMS
from service.domain.editor_forms import FORMS

MANUAL = Path(__file__).parent.parent.parent / "service" / "manual"


def test_forms_are_listed_in_the_manual_and_the_help():
    listed = "\n".join(FORMS)
    assert f"```text\n{listed}\n```" in (MANUAL / "agent.md").read_text("utf-8")
    assert all(f"\n  {form}\n" in BUILTIN_FORMS for form in FORMS)


def test_each_listed_form_is_understood():
    for form in FORMS:
        known, unknown = parse(form.partition(" [")[0])
        assert len(known) == 1, form
        assert unknown == []
