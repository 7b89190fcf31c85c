"""The prompts of a version are in the log once, whichever processes use them, and calls of models name them."""

from eventstore import load
from service.agent.loop.sent import prompts as agents
from service.assistant.kept_prompts import prompts as assistants
from service.commands.prompts import keep_prompts
from service.domain.prompts import Kept, PromptSet
from service.domain.threads.recorded_reply import ReplyWritten
from service.queries.threads import events_of_reply
from service.runtime.system import now
from service.streams import PROMPTS
from service.workers.kept_prompts import KeptPrompts
from tests.workers.test_orphans import Rest, begin, completed, process


async def test_replies_of_all_processes_name_the_same_prompts(store, followed):
    for instance in ("here", "there"):
        await begin(store, instance)
        async with process(store, followed, Rest(), instance=instance):
            await completed(store, instance)
        calls = [
            event.call
            for event in await events_of_reply(store, instance, instance)
            if isinstance(event, ReplyWritten) and event.call is not None
        ]
        assert [call.prompts for call in calls] == [assistants().hash]
    kept = await store.read_stream(PROMPTS.stream(assistants().hash))
    assert len(kept) == 1
    assert (await load(store, PROMPTS, assistants().hash)).state == Kept(assistants())
    assert "You are the assistant of a documentation site." in assistants().texts["answer"]
    assert [tool.name for tool in assistants().tools] == ["search", "read_page", "search_plan"]


async def test_other_texts_have_another_hash_and_both_are_kept(store):
    old, new = PromptSet("agent", {"system": "Old."}, ()), PromptSet("agent", {"system": "New."}, ())
    hashes = {await keep_prompts(store, each, now) for each in (old, new, old)}
    assert hashes == {old.hash, new.hash}
    assert [(await load(store, PROMPTS, each.hash)).state for each in (old, new)] == [Kept(old), Kept(new)]


async def test_prompts_are_written_once_by_a_process(store):
    kept = KeptPrompts(store, "service.agent.loop.sent")
    assert [await kept.hash() for _ in range(3)] == [agents().hash] * 3
    assert len(await store.read_stream(PROMPTS.stream(agents().hash))) == 1
    assert "<!--" not in str(agents().texts)
