"""Sentences that the service itself adds to an answer, in the language of the question (``notes.json``), and the
request to go on with one.
"""

from functools import cache
from importlib import resources

import msgspec

from service.assistant.prompts import prompt
from service.markup.languages.detection import language_of


def cut_off_note(question: str) -> str:
    """Return the sentence that the answer is cut off at the limit for its length."""
    return _note("cut_off", question)


def out_of_time_note(question: str) -> str:
    """Return the sentence that the answer ends where its time was used up."""
    return _note("out_of_time", question)


def withheld_code_note(question: str) -> str:
    """Return the sentence that stands for a block of code that readers do not see."""
    return _note("withheld_code", question)


def withheld_inline_code_note(question: str) -> str:
    """Return the words that stand for code within a sentence that readers do not see."""
    return _note("withheld_inline_code", question)


def stand_in_note(failure: str, question: str) -> str:
    """Return the paragraph above passages that stand in for an answer: how the assistant is, and what they are.

    ``failure``: the code of what readers learn of a model that failed.
    """
    gap = "" if language_of(question) in ("ja", "zh") else " "
    return f"{_note(failure, question)}{gap}{_note('passages_found', question)}"


def continue_request() -> str:
    """Return the instruction for a model that goes on with a text that was cut off."""
    return prompt("continue")


def _note(name: str, question: str) -> str:
    notes = _notes()[name]
    return notes.get(language_of(question), notes["en"])


@cache
def _notes() -> dict[str, dict[str, str]]:
    return msgspec.json.decode(
        resources.files("service.assistant").joinpath("notes.json").read_bytes(), type=dict[str, dict[str, str]]
    )
