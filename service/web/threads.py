"""The assistant's endpoints: a message in, a streamed reply out."""

from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from typing import Annotated, Any, Literal

from aiohttp import web
from aiohttp_sse import EventSourceResponse
from msgspec import Meta, Raw, Struct, field

from service.domain.errors import Invalid
from service.domain.threads import (
    DEFAULT_PAGE_SIZE,
    MAX_CONTEXT_CHARACTERS,
    MAX_FP_CHARACTERS,
    MAX_PAGE_SIZE,
    MAX_PATH_CHARACTERS,
    MAX_QUESTION_CHARACTERS,
    ContextItem,
    PostMessage,
    SearchFilter,
)
from service.operations import PostedMessage, post_message, start_thread
from service.projections.projects import ProjectRow
from service.system import new_id, now
from service.web.access import site_for
from service.web.keys import BROADCAST, INSTANCE, KEY_REQUIRED, REPLIER, STORE
from service.web.live import with_keep_alives
from service.web.problems import decoded_at, metadata_of, read_body
from service.web.versioning import deprecated
from service.wire import data_stream, ui_messages

routes = web.RouteTableDef()


class ChatMessage(Struct):
    """As the chat clients send it; of what they echo only the last user message is used."""

    role: str
    id: str | None = None
    content: Any = None
    parts: Any = None


class ContextBody(Struct):
    type: Literal["code", "textSelection"]
    value: Annotated[str, Meta(max_length=MAX_CONTEXT_CHARACTERS)]
    path: Annotated[str, Meta(max_length=1000)] | None = None
    element_id: Annotated[str, Meta(max_length=1000)] | None = field(default=None, name="elementId")


class FilterBody(Struct):
    version: Annotated[str, Meta(max_length=200)] | None = None
    language: Annotated[str, Meta(max_length=200)] | None = None
    tag: Annotated[str, Meta(max_length=200)] | None = None
    groups: Annotated[list[Annotated[str, Meta(max_length=200)]], Meta(max_length=100)] | None = None


class ThreadBody(Struct, rename="camel"):
    fp: Annotated[str, Meta(min_length=1, max_length=MAX_FP_CHARACTERS)]
    messages: Annotated[list[Raw], Meta(min_length=1)]
    """Raw, since clients send the whole chat each time, and only the last question of it counts."""
    thread_id: Annotated[str, Meta(max_length=200)] | None = None
    thread_key: Annotated[str, Meta(max_length=200)] | None = None
    retrieval_page_size: Annotated[float, Meta(ge=1, le=MAX_PAGE_SIZE)] | None = None
    filter: FilterBody | None = None
    context: Annotated[list[ContextBody], Meta(max_length=100)] | None = None
    current_path: Annotated[str, Meta(max_length=MAX_PATH_CHARACTERS)] | None = None
    trigger: Any = None


@routes.post("/discovery/v2/assistant/{domain}/message")
async def post_message_v2(request: web.Request) -> web.StreamResponse:
    """AI SDK 5 and later: server-sent events."""
    project = await site_for(request)
    body = await read_body(request, ThreadBody)
    posted = await _post(request, project, body, api_version=2)
    has_trigger = isinstance(body.trigger, str)
    plain = ui_messages.is_plain_reader(request.headers.get("User-Agent", ""), body_has_trigger=has_trigger)
    encoder = ui_messages.UiMessageEncoder(plain=plain)
    response = EventSourceResponse(sep="\n", allow_all_methods=True)
    response.headers.update({**ui_messages.HEADERS, **_thread_headers(posted)})
    with _stops_reply(request, posted.reply_id):
        await response.prepare(request)
        async with response, aclosing(request.app[BROADCAST].open(posted.reply_id).listen()) as events:
            async for event in events:
                for told in encoder.events(event):
                    if told.is_ordinary:
                        await response.send(told.data)
                    else:
                        await response.write(told.raw)
    return response


@routes.post("/discovery/v1/assistant/{domain}/message")
async def post_message_v1(request: web.Request) -> web.StreamResponse:
    """AI SDK 4: a data stream."""
    project = await site_for(request)
    body = await read_body(request, ThreadBody)
    posted = await _post(request, project, body, api_version=1)
    encoder = data_stream.DataStreamEncoder()
    successor = deprecated(f"/discovery/v2/assistant/{project.domain}/message")
    response = web.StreamResponse(headers={**data_stream.HEADERS, **_thread_headers(posted), **successor})
    with _stops_reply(request, posted.reply_id):
        await response.prepare(request)
        async with aclosing(request.app[BROADCAST].open(posted.reply_id).listen()) as heard:
            async for event in with_keep_alives(heard):
                lines = [data_stream.KEEP_ALIVE] if event is None else encoder.encode(event)
                if lines:
                    await response.write(b"".join(lines))
        await response.write_eof()
    return response


@contextmanager
def _stops_reply(request: web.Request, reply_id: str) -> Iterator[None]:
    """When its reader goes away, a reply is stopped: nobody reads it any more."""
    try:
        yield
    except BaseException:
        request.app[REPLIER].stop(reply_id)
        raise


async def _post(
    request: web.Request, project: ProjectRow, body: ThreadBody, *, api_version: Literal[1, 2]
) -> PostedMessage:
    message = _message(body, project.domain, request, api_version)
    store, metadata = request.app[STORE], metadata_of(request)
    request.app[BROADCAST].open(message.reply_id)  # before the reply can begin
    with _stops_reply(request, message.reply_id):
        if body.thread_id:
            return await post_message(store, body.thread_id, message, metadata)
        return await start_thread(store, project, message, metadata)


def _message(body: ThreadBody, domain: str, request: web.Request, api_version: Literal[1, 2]) -> PostMessage:
    asked, text = _last_question(body.messages)
    wanted = body.filter or FilterBody()
    page_size = body.retrieval_page_size
    if page_size is not None and page_size != int(page_size):
        raise Invalid(
            "$.retrievalPageSize: is a whole number", problems=(("$.retrievalPageSize", "is a whole number"),)
        )
    return PostMessage(
        message_id=new_id(),
        client_message_id=(asked.id or "")[:200],
        text=text,
        context=tuple(ContextItem(item.type, item.value, item.path, item.element_id) for item in body.context or ()),
        current_path=body.current_path or "",
        filter=SearchFilter(wanted.version, wanted.language, wanted.tag, tuple(wanted.groups or ())),
        page_size=int(page_size) if page_size is not None else DEFAULT_PAGE_SIZE,
        api_version=api_version,
        reply_id=f"msg_{new_id()}",
        instance=request.app[INSTANCE],
        domain=domain,
        fp=body.fp,
        now=now(),
        thread_key=body.thread_key or None,
        key_required=request.app[KEY_REQUIRED],
    )


def _last_question(messages: list[Raw]) -> tuple[ChatMessage, str]:
    """The last message of the user, and its text: of its text parts, where it has parts, else its content.

    What the client says that the assistant or the system said is not looked at: the thread's own record is.
    """
    for index in reversed(range(len(messages))):
        path = f"$.messages[{index}]"
        message = decoded_at(path, messages[index], ChatMessage)
        if message.role == "user":
            return message, _checked_text(message, path)
    raise Invalid("$.messages: has no message of the user", problems=(("$.messages", "has no message of the user"),))


def _checked_text(message: ChatMessage, path: str) -> str:
    text = _text_of(message)
    if not text.strip():
        raise Invalid(f"{path}: has no text", problems=((path, "has no text"),))
    if len(text) > MAX_QUESTION_CHARACTERS:
        sentence = f"has more than {MAX_QUESTION_CHARACTERS} characters"
        raise Invalid(f"{path}: {sentence}", problems=((path, sentence),))
    return text


def _text_of(message: ChatMessage) -> str:
    if isinstance(message.parts, list) and message.parts:
        texts = [part.get("text") for part in message.parts if isinstance(part, dict) and part.get("type") == "text"]
        return "\n".join(text for text in texts if isinstance(text, str))
    return message.content if isinstance(message.content, str) else ""


def _thread_headers(posted: PostedMessage) -> dict[str, str]:
    headers = {"X-Thread-Id": posted.thread_id}
    if posted.thread_key is not None:
        headers["X-Thread-Key"] = posted.thread_key
    return headers
