"""A question about something else than the documentation costs little, and the model learns which words no page has."""

import pytest

from service.assistant.answer import answer
from service.assistant.question import AnswerSettings, Question
from service.domain.texts.tokens import tokens_in
from service.ports.model import SystemMessage
from tests.assistant.scripted_model import ScriptedModel
from tests.retrieval.sites import DOMAIN

PARCEL = "A parcel is weighed, labelled and sent at best on the same day. {} Its label has the address of the shop. "
PAGES = {f"depot-{at}.md": f"# Depot {at}\n\n" + PARCEL.format(f"Gate {at} is next to it.") * 20 for at in range(20)}
PAGES["index.md"] = "# Parcelway\n\nSend parcels.\n"


async def asked_of(indexed, text, *, reply="So [1].", pages=PAGES):
    await indexed.fill(pages)
    model = ScriptedModel([reply])
    async for event in answer(
        Question(DOMAIN, "reply-1", text), index=indexed.index, model=model, settings=AnswerSettings()
    ):
        last = event
    rules, *rest = model.requests[0].messages
    assert isinstance(rules, SystemMessage)
    return rules.text, "\n".join(message.text for message in rest), last.text


@pytest.mark.parametrize("text", ["best pizza in Berlin", "Which shop has the best violin lessons?"])
async def test_question_about_something_else_has_a_short_prompt(indexed, text):
    _, prompt, _ = await asked_of(indexed, text)
    assert tokens_in(prompt) < 2_000


async def test_question_about_the_documentation_has_its_passages(indexed):
    _, prompt, _ = await asked_of(indexed, "Where is the address of the shop on a label?")
    assert tokens_in(prompt) > 4_000
    assert "not-in-the-documentation" not in prompt


async def test_words_that_no_page_has_are_named_to_the_model(indexed):
    rules, prompt, _ = await asked_of(indexed, "Does a depot send telemetry about my parcel?")
    named = prompt.partition("<not-in-the-documentation-")[2].partition("</")[0]
    assert named.partition("\n")[2].strip() == "telemetry"
    assert "`not-in-the-documentation`" in rules


async def test_words_of_another_language_are_not_named(indexed):
    _, prompt, _ = await asked_of(indexed, "Wie schicke ich ein Paket an einen Laden, und wann kommt es dort an?")
    assert "not-in-the-documentation" not in prompt


async def test_no_page_is_suggested_for_a_question_about_something_else(indexed):
    _, _, text = await asked_of(indexed, "best pizza in Berlin", reply="[0] It does not say.")
    assert text == "It does not say."
    _, _, text = await asked_of(indexed, "When is a parcel weighed?", reply="[0] It does not say.")
    assert "```suggestions" in text


async def test_pages_that_the_model_suggests_go_before_those_that_were_found(indexed):
    written = "The same day [1].\n\n```suggestions\n(Gate seven)[/depot-7]\n```"
    rules, _, text = await asked_of(indexed, "When is a parcel weighed?", reply=written)
    assert "(Title)[/path]" in rules
    assert text.endswith("```suggestions\n(Gate seven)[/depot-7]\n```\n")


async def test_model_learns_the_site_and_what_the_numbers_mean(indexed):
    rules, prompt, _ = await asked_of(indexed, "When is a parcel weighed?")
    named = prompt.partition("<site-")[2].partition("</")[0]
    assert named.splitlines()[1:] == ["Parcelway", DOMAIN]
    assert "[1] matched best" in rules


async def test_change_log_answers_questions_of_versions(indexed):
    log = "# Changes\n\n" + "".join(
        f"## Version 8.{at}.0\n\nReleased 2024-05-{at + 1:02}\n\n- The parcel scale number {at} is rounded.\n\n"
        for at in range(9)
    )
    log += "## Version 7.1.0\n\n- The `reweigh` switch is new.\n"
    pages = {**PAGES, "changes.md": log}
    for text in ("When was the reweigh switch added?", "Since which version is there a reweigh switch?"):
        _, prompt, _ = await asked_of(indexed, text, pages=pages)
        assert "Version 7.1.0" in prompt
