"""Which replies are in a chat, as the read tables know it."""

from msgspec.structs import replace

from eventstore import Metadata, execute
from service.commands.erasures import erase_subject
from service.domain.search import SearchFilter
from service.domain.threads.threads import PostMessage, StartThread, digest_of
from service.queries.threads import replies_in_chat
from service.streams import THREADS
from tests.workers.test_replier import NOW

POST = PostMessage(
    "m", "", "How?", (), "", SearchFilter(), 5, 2, "r1", "here", "guide", "x", NOW, chat_id="chat", asker="a browser"
)


async def start(store, name, message):
    await execute(store, THREADS, name, StartThread("o", "p", message.domain, "x", digest_of("k"), message))


async def found(store, views, **more):
    wanted = {"domain": "guide", "chat_id": "chat", "asker": "a browser", **more}
    return [reply.reply_id for reply in await replies_in_chat(store, views, **wanted)]


async def test_replies_of_a_chat_are_found_by_site_name_and_asker(store, followed):
    await start(store, "one", POST)
    await start(store, "two", replace(POST, reply_id="r2"))
    await start(store, "three", replace(POST, reply_id="r3", domain="other"))
    await start(store, "four", replace(POST, reply_id="r4", asker="another browser"))
    await start(store, "five", replace(POST, reply_id="r5", chat_id=""))
    assert await found(store, followed) == ["r2", "r1"]
    assert await found(store, followed, domain="other") == ["r3"]
    assert await found(store, followed, asker=None) == ["r4", "r2", "r1"]
    assert await found(store, followed, chat_id="") == []
    assert await found(store, followed, chat_id="[erased]") == []


async def test_erased_thread_is_in_no_chat(store, followed, views):
    await start(store, "one", POST)
    await erase_subject(store, followed, "thread-one", Metadata())
    assert await found(store, followed) == []
    assert await views.query("SELECT chat, asker FROM replies WHERE chat IS NOT NULL OR asker IS NOT NULL") == []
