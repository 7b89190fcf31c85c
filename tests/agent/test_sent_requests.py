"""Requests to a job's model are rebuilt from its events as they were sent, message for message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from service.agent.loop.sent import prompts
from service.domain.errors import Invalid, Unavailable
from service.domain.jobs.decider import ModelReplied, ReplyLost
from service.domain.jobs.rebuilding import rebuilt
from service.domain.jobs.requests import NotRebuilt, RequestMessage, Requests
from service.domain.model import ReplyMemory, ToolCall
from service.domain.prompts import PromptSet
from service.ports.model import CONTEXT_WINDOW_EXCEEDED, AssistantMessage, SystemMessage, ToolMessage
from tests.agent.journal import SOURCE, Journal, Killed, run_job
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.model import FakeModel, Says, call, calls

KEPT = {prompts().hash: prompts()}
CODE = replace(SOURCE, repository="https://github.com/acme/kite", ref="", context="code", guarded=True)
PAGES = {f"docs/page{number}.md": f"# Page {number}\n\n" + f"Line of {number}.\n" * 400 for number in range(30)}


def repository():
    docs = FakeDocsSource({"docs/index.md": "# Kites\n", **PAGES})
    docs.contexts = {"code": FakeDocsSource({"kite.py": "def fly(height, wind=3):\n    ...\n"})}
    return docs


def plain(message):
    """A message with its role, and all that is sent of it."""
    match message:
        case ToolMessage(call_id, name, text, is_error):
            return ("tool", text, call_id, name, is_error)
        case AssistantMessage(text, tool_calls, memory):
            return ("assistant", text, tool_calls, memory)
        case SystemMessage(text):
            return ("system", text)
        case _:
            return ("user", message.text)


def plain_recorded(message: RequestMessage):
    match message.role:
        case "tool":
            return ("tool", message.text, message.call_id, message.name, message.is_error)
        case "assistant":
            return ("assistant", message.text, message.calls, message.memory)
        case role:
            return (role, message.text)


def require_same(journal, sent):
    found = list(rebuilt(journal.events, KEPT))
    assert [one.number for one in found] == list(range(1, len(sent) + 1))
    for one, request in zip(found, sent, strict=True):
        assert one.messages is not None
        assert list(map(plain_recorded, one.messages)) == list(map(plain, request.messages))
        assert one.output_tokens == request.max_output_tokens
        tools = {tool.name: tool.description for tool in KEPT[one.prompts].tools}
        assert tools == {tool.name: tool.description for tool in request.tools}


def read(number, *, also=()):
    return calls(call("read", f"r{number}", path=f"docs/page{number % 30}.md"), *also, text=f"I read page {number}.")


def finish(number, summary="It is done."):
    return calls(call("finish", f"f{number}", title="Change", summary=summary, change="Change", answer="Done."))


def edit(number):
    return calls(call("insert", f"e{number}", path="docs/index.md", text=f"More {number}.\n"))


async def test_rounds_contexts_and_lost_replies_are_rebuilt():
    docs, journal = repository(), Journal("Look, and say more")
    lost = Says("I re", breaks_off=Unavailable("It broke off."))
    look = calls(call("read", "c1", path="@code/kite.py"), call("search", "c2", query="fly", folder="@code"))
    first = FakeModel([read(1), lost, look, Says("I think."), edit(1), finish(1)])
    await run_job(journal, docs, first, contexts=(CODE,))
    journal.say("Say it in other words, too.")
    second = FakeModel([read(2), edit(2), finish(2)])
    await run_job(journal, docs, second, contexts=(CODE,))
    # the reply that broke off was not paid, so it has no event; the request after it is the same
    sent = [*first.requests, *second.requests]
    del sent[1]
    require_same(journal, sent)


async def test_paid_replies_that_are_lost_have_their_requests(monkeypatch):
    docs, journal = repository(), Journal("Look")
    unreadable = Invalid("It cannot be read.", code="model_reply_broken")
    model = FakeModel([read(1), unreadable])
    with pytest.raises(Invalid):
        await run_job(journal, docs, model)
    assert isinstance(journal.events[-1], ReplyLost)
    require_same(journal, model.requests)


async def test_requests_of_a_small_window_are_rebuilt_after_each_shortening():
    docs, journal = repository(), Journal("Read all of it")
    model = FakeModel([*map(read, range(60)), edit(1), finish(1)], window_tokens=12_000)
    await run_job(journal, docs, model)
    last = model.requests[-1].messages
    assert any("Earlier steps of your work" in message.text for message in last)
    assert any("left out to save room" in message.text for message in last)
    require_same(journal, model.requests)
    replies = [event for event in journal.events if isinstance(event, ModelReplied)]
    recorded = [sum(len(one.text) for one in event.sent.added) for event in replies]
    assert sum(recorded) < 3 * max(recorded) + 200 * len(replies)  # the facts once, and little for each call


async def test_requests_that_were_found_too_long_are_rebuilt_as_they_were_accepted():
    docs, journal = repository(), Journal("Read all of it")
    too_long = Invalid("It is too long.", code=CONTEXT_WINDOW_EXCEEDED)
    script = [*map(read, range(12)), too_long, *map(read, range(12, 20)), edit(1), finish(1)]
    model = FakeModel(script, window_tokens=60_000)
    await run_job(journal, docs, model)
    sent = list(model.requests)
    del sent[12]
    require_same(journal, sent)


@pytest.mark.parametrize("dies_at", range(3, 16))
async def test_after_a_death_the_requests_go_on_from_the_record(dies_at):
    docs, journal = repository(), Journal("Look, and say more")
    script = [read(1), read(2, also=(call("read", "c1", path="@code/kite.py"),)), edit(1), finish(1)]
    journal.dies_at = dies_at
    model = FakeModel(script)
    sent = []
    while True:
        try:
            await run_job(journal, docs, model, contexts=(CODE,))
        except Killed:
            journal.dies_at = None
            replies = sum(isinstance(event, ModelReplied) for event in journal.events)
            sent = model.requests[:replies]
            model = FakeModel(script[replies:])
        else:
            break
    require_same(journal, [*sent, *model.requests])


def test_another_version_goes_on_from_requests_of_older_prompts():
    """An update in the middle of a job: its prompts are other ones, and those of before are known to the log alone."""
    old, new = PromptSet("agent", {"system": "Old."}, ()), PromptSet("agent", {"system": "New."}, ())
    first = [RequestMessage("system", "Old."), RequestMessage("user", "u" * 300)]
    before = Requests({old.hash: old})
    sent = before.sent(old, first, 9)
    after = Requests({new.hash: new})
    assert after.add_reply("a", (), None, prompts=old.hash, sent=sent) is None
    second = [RequestMessage("system", "New."), first[1], RequestMessage("assistant", "a")]
    more = after.sent(new, second, 9)
    assert max(len(one.text) for one in more.added) == 0  # each text is on record
    both = Requests({old.hash: old, new.hash: new})
    assert both.add_reply("a", (), None, prompts=old.hash, sent=sent) == tuple(first)
    assert both.messages(new.hash, more) == tuple(second)
    with pytest.raises(NotRebuilt):
        both.messages(old.hash, more)


TEXTS = st.one_of(
    st.text(max_size=20), st.sampled_from(["x" * 250, "y" * 1_200, "y" * 1_200 + "tail", "y" * 1_100 + "z"])
)
MEMORIES = st.sampled_from([None, ReplyMemory("o", "d", 1)])


@st.composite
def conversations(draw):
    """Steps of a job, each with the request that it answers: messages come, change, move and go."""
    steps, messages = [], [RequestMessage("system", "Rules.")]
    for number in range(draw(st.integers(1, 8))):
        for _ in range(draw(st.integers(0, 3))):
            messages.insert(draw(st.integers(1, len(messages))), RequestMessage("user", draw(TEXTS)))
        if len(messages) > 3 and draw(st.booleans()):
            del messages[draw(st.integers(1, len(messages) - 1))]
        asked = tuple(messages)
        made = tuple(ToolCall(f"c{number}-{at}", "read", draw(TEXTS)) for at in range(draw(st.integers(0, 2))))
        said, memory = draw(TEXTS), draw(MEMORIES) if made else None
        results = [(call.id, "read", draw(TEXTS), draw(st.booleans())) for call in made]
        steps.append((asked, said, made, memory, results))
        shown = said[: draw(st.integers(0, len(said)))] if draw(st.booleans()) else said
        shorter = tuple(replace(call, arguments="{}") for call in made) if draw(st.booleans()) else made
        messages.append(RequestMessage("assistant", shown, shorter, memory=memory))
        for call_id, name, text, is_error in results:
            end = draw(TEXTS) if draw(st.booleans()) else ""
            messages.append(RequestMessage("tool", text + end, call_id=call_id, name=name, is_error=is_error))
    return steps


@given(conversations(), st.integers(0, 8))
def test_any_sequence_of_requests_is_rebuilt(steps, dies_after):
    kept = PromptSet("agent", {"system": "Rules."}, ())
    writer, reader = Requests({kept.hash: kept}), Requests({kept.hash: kept})
    log = []
    for at, (asked, said, made, memory, results) in enumerate(steps):
        if at == dies_after:  # another process reads the record
            writer = Requests({kept.hash: kept})
            for add in log:
                add(writer)
        sent = writer.sent(kept, asked, 100)
        assert reader.messages(kept.hash, sent) == asked

        def reply(to, said=said, made=made, memory=memory, sent=sent):
            to.add_reply(said, made, memory, prompts=kept.hash, sent=sent)

        log.append(reply)
        log += [lambda to, one=one: to.add_result(*one[:3], is_error=one[3]) for one in results]
        for add in log[-1 - len(results) :]:
            add(writer)
            add(reader)
