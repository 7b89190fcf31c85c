"""Sentences that the service itself adds to an answer, in the language of the question (``notes.json``), and the
request to go on with one.
"""

from functools import cache
from importlib import resources

import msgspec

from service.markup.languages import language_of


def cut_off_note(question: str) -> str:
    """Return the sentence that the answer is cut off at the limit for its length."""
    notes = _notes()
    return notes.get(language_of(question), notes["en"])


@cache
def continue_request() -> str:
    """Return the instruction for a model that goes on with a text that was cut off."""
    return resources.files("service.assistant").joinpath("prompts", "continue.md").read_text(encoding="utf-8")


@cache
def _notes() -> dict[str, str]:
    return msgspec.json.decode(
        resources.files("service.assistant").joinpath("notes.json").read_bytes(), type=dict[str, str]
    )
