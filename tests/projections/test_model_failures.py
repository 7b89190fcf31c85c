"""The last failure of the assistant's model: kept while it fails, and gone with its first whole reply."""

from datetime import UTC, datetime

import pytest

from eventstore import SQLiteEventStore, Views
from service.domain.model import Usage
from service.domain.threads.recorded_reply import ModelTrouble, ReplyCompleted, ReplyFailed
from service.projections import all_projections
from service.queries.model_failures import find_failing_model
from service.streams import THREADS
from tests.projections.given import Log

NOW = datetime(2026, 1, 2, tzinfo=UTC)
MODEL, OTHER, BUILTIN = "openai/gpt-x", "openai/gpt-y", "builtin/extractive"
TROUBLE = ModelTrouble(MODEL, "model_key_refused", "Incorrect key")


class Uses:
    """Models of settings that name one for the assistant."""

    def __init__(self, name):
        self.name = name

    def for_assistant(self):
        return self


@pytest.fixture
async def log(tmp_path):
    async with (
        await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store,
        await Views.open(tmp_path / "views.db", store, all_projections()) as live,
    ):
        yield Log(tmp_path, store, live)


def failed(**changed):
    return ReplyFailed("r1", "assistant_misconfigured", "…", NOW, **{"trouble": TROUBLE, **changed})


def completed(model, **more):
    return ReplyCompleted("r1", "Done.", (1,), "answered", model, Usage(), NOW, **more)


async def failing(log, name=MODEL):
    return await log.then(lambda views: find_failing_model(views, Uses(name)))


async def given(log, *events):
    await log.given(*((THREADS, "t1", event) for event in events))


async def test_failures_of_a_model_are_counted_until_a_reply_is_whole(log):
    assert await failing(log) is None
    await given(log, failed(), completed(BUILTIN, failure="assistant_misconfigured", trouble=TROUBLE))
    found = await failing(log)
    assert (found.code, found.reason, found.replies) == ("model_key_refused", "Incorrect key", 2)
    assert found.since <= found.failed_at
    assert await failing(log, OTHER) is None
    await given(log, completed(BUILTIN))  # past a cost bound: it says nothing about the model
    assert (await failing(log)).replies == 2
    await given(log, completed(f"{MODEL}-2026-01-01"))
    assert await failing(log) is None


@pytest.mark.parametrize("trouble", [None, ModelTrouble(MODEL, "cost_bound_reached", "The bound is reached.")])
async def test_other_ends_are_no_failures_of_the_model(log, trouble):
    await given(log, failed(trouble=trouble))
    assert await failing(log) is None


async def test_each_code_has_a_setting_to_change(log):
    await given(log, failed(trouble=ModelTrouble(MODEL, "a_new_code", "…")))
    found = await failing(log)
    assert found.says
    assert "[models]" in found.mend
