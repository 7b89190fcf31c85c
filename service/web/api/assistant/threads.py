"""The assistant's endpoints: a message in, a streamed reply out."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

from aiohttp import web
from msgspec import Meta, Raw, Struct, field

from service.commands.threads import PostedMessage, post_message, start_thread
from service.domain.errors import Invalid, NotFound
from service.domain.search import SearchFilter
from service.domain.threads.threads import (
    DEFAULT_PAGE_SIZE,
    MAX_CONTEXT_CHARACTERS,
    MAX_FP_CHARACTERS,
    MAX_PAGE_SIZE,
    MAX_PATH_CHARACTERS,
    MAX_QUESTION_CHARACTERS,
    ContextItem,
    PostMessage,
)
from service.queries.threads import find_thread_of_message
from service.runtime.system import new_id, now
from service.views.fields import described
from service.views.projects import ProjectView
from service.web.api.assistant.replies import (
    RETURNS,
    ReplySubscription,
    begin_reply,
    send_data_stream,
    send_ui_messages,
)
from service.web.api.description.operations import Answer, Parameter, Routes, table
from service.web.http.access.access import is_keyless, site_for, trusted_groups
from service.web.http.answers.versioning import deprecated
from service.web.http.app_keys import INSTANCE, KEY_REQUIRED, STORE, VIEWS
from service.web.http.connections.client_address import client_address
from service.web.http.connections.limits import metered_store, name_reader
from service.web.http.problems import ACTOR, decoded_at, metadata_of, read_body
from service.web.http.schemas import MESSAGE, QUESTION, WHOLE
from service.wire import checks, data_stream, ui_messages

MAX_ID_CHARACTERS = 200
FEATURES = (checks.FEATURE, RETURNS)
MAX_ECHOES = 20
"""Number of a chat's last messages that are searched for the thread that they name."""


class Part(Struct):
    type: str = ""
    text: str | None = None
    content: Any = None
    """Some clients that do not use the AI SDK write the text here."""


class ChatMessage(Struct):
    """As the chat clients send it; of what they echo only the last user message is used."""

    role: str
    id: str | int | float | None = None
    content: Any = None
    parts: list[Part] | None = None


class EchoedMessage(Struct):
    """The parts of an earlier message that may name its thread: metadata of AI SDK 5 and later, annotations of 4."""

    role: Any = None
    metadata: Any = None
    annotations: Any = None


Text200: TypeAlias = Annotated[str, Meta(max_length=200)]
Text1000: TypeAlias = Annotated[str, Meta(max_length=1000)]


class ContextBody(Struct):
    """Something that the question is about."""

    type: Annotated[Literal["code", "textSelection"], described("What it is.")]
    value: Annotated[str, Meta(max_length=MAX_CONTEXT_CHARACTERS, description="The code, or the text.")]
    path: Annotated[Text1000 | None, described("The page that it is from.")] = None
    element_id: Annotated[Text1000 | None, described("The element of that page.")] = field(
        default=None, name="elementId"
    )


class FilterBody(Struct):
    """Which pages count. A page that says nothing of a thing matches any value of it."""

    version: Annotated[Text200 | None, described("Only pages of this version.")] = None
    language: Annotated[
        Text200 | None, described("Only pages in this language; one that is not translated is found in the site's own.")
    ] = None
    tag: Annotated[Text200 | None, described("Only pages with this tag.")] = None
    groups: Annotated[
        Annotated[list[Text200], Meta(max_length=100)] | None,
        described("The reader's groups: pages for others are left out."),
    ] = None


class ThreadBody(Struct, rename="camel"):
    """A question, in a chat."""

    fp: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAX_FP_CHARACTERS,
            description="The user: a name of the client's own choice, or `anonymous`. A client that goes on with a"
            " thread sends the same.",
        ),
    ]
    # Raw, since clients send the whole chat each time, and only the last question of it counts.
    messages: Annotated[
        list[Annotated[Raw, Meta(extra_json_schema=MESSAGE)]],
        Meta(
            min_length=1,
            description="The chat so far. Its last message of role `user` is the question.",
            extra_json_schema={"contains": QUESTION},
        ),
    ]
    thread_id: Annotated[Text200 | int | None, described("The thread to go on with; left out: a new one.")] = None
    thread_key: Annotated[Text200 | None, described("The thread's key, from its first answer.")] = None
    retrieval_page_size: Annotated[
        Annotated[float, Meta(ge=1, le=MAX_PAGE_SIZE, extra_json_schema=WHOLE)] | None,
        described(f"How many passages the answer is made from; {DEFAULT_PAGE_SIZE} when left out."),
    ] = None
    filter: Annotated[FilterBody | None, described("Only pages that match all of it.")] = None
    context: Annotated[
        Annotated[list[ContextBody], Meta(max_length=100)] | None, described("Further context of the question.")
    ] = None
    current_path: Annotated[
        Annotated[str, Meta(max_length=MAX_PATH_CHARACTERS)] | None, described("The page that the reader has open.")
    ] = None
    id: Annotated[Any, described("The client's own name for its chat, as text: a reply is resumed by it.")] = None
    trigger: Annotated[Any, described("`regenerate-message` asks for another reply to the last question.")] = None
    message_id: Annotated[Any, described("The client's own id of the message that is edited, or answered again.")] = (
        None
    )
    features: Annotated[
        Annotated[list[Text200], Meta(max_length=20)] | None,
        described(
            "What else the client can do: `checks` for a verdict on each sentence in the stream; `resume` for a client"
            " that comes back after a lost connection and names its stops, so that the reply goes on for at least a"
            " minute. Others are ignored."
        ),
    ] = None
    regenerate: Annotated[Any, described("`true` is the same as `trigger` `regenerate-message`.")] = None


THREAD_HEADERS = (ui_messages.THREAD_ID_HEADER, ui_messages.THREAD_KEY_HEADER, ui_messages.MESSAGE_ID_HEADER)
MESSAGE_ID = Parameter(
    ui_messages.MESSAGE_ID_HEADER, "The client's own id of its message, where the body has none.", where="header"
)
CHUNK_TABLE = table(("`type`", "Meaning"), ((f"`{kind}`", text) for kind, text in ui_messages.CHUNKS.items()))
QUESTION_EXAMPLE = {
    "fp": "anonymous",
    "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "How do I retry a failed job?"}]}],
}

routes = Routes()


@routes.operation(
    "POST",
    "/discovery/v2/assistant/{domain}/message",
    "ask",
    "Assistant",
    "Ask a question",
    {
        200: Answer(
            "The answer as it is written: the UI message stream of the AI SDK 5, 6 and 7.",
            ui_messages.UiChunk,
            media_type="text/event-stream",
            headers=(*THREAD_HEADERS, "x-vercel-ai-ui-message-stream"),
            example=ui_messages.EXAMPLE,
        )
    },
    description="Made for `useChat`, and plain enough for curl: each event is one JSON chunk, the last is `[DONE]`."
    " First comes the search step and its sources, then text. An error after the answer has begun is a chunk of"
    " type `error`.\n\n" + CHUNK_TABLE,
    body=ThreadBody,
    body_examples={"question": QUESTION_EXAMPLE},
    parameters=(MESSAGE_ID,),
    errors={404: ("thread_not_found",), 409: ("conflict",)},
    limited=True,
)
async def post_message_v2(request: web.Request) -> web.StreamResponse:
    """AI SDK 5 and later: server-sent events."""
    return await send_answer(request, await site_for(request))


async def send_answer(request: web.Request, project: ProjectView) -> web.StreamResponse:
    """Answer the message of a request that may ask this site."""
    body = await read_body(request, ThreadBody, mends_text=True)
    reply = await _post(request, project, body, api_version=2)
    has_trigger = isinstance(body.trigger, str)
    del body  # it holds all of the client's chat, and the answer may take minutes
    plain = ui_messages.is_plain_reader(request.headers.get("User-Agent", ""), body_has_trigger=has_trigger)
    return await send_ui_messages(request, reply, plain=plain)


@routes.operation(
    "POST",
    "/discovery/v1/assistant/{domain}/message",
    "askV1",
    "Deprecated",
    "Ask a question, for the AI SDK 4",
    {
        200: Answer(
            "The answer as it is written, as a data stream.",
            media_type="text/plain",
            headers=(*THREAD_HEADERS, "x-vercel-ai-data-stream"),
            example=data_stream.EXAMPLE,
        )
    },
    description=data_stream.DESCRIPTION,
    body=ThreadBody,
    body_examples={"question": {"fp": "anonymous", "messages": [{"role": "user", "content": "How do I retry?"}]}},
    parameters=(MESSAGE_ID,),
    errors={404: ("thread_not_found",), 409: ("conflict",)},
    limited=True,
)
async def post_message_v1(request: web.Request) -> web.StreamResponse:
    """AI SDK 4: a data stream."""
    project = await site_for(request)
    body = await read_body(request, ThreadBody, mends_text=True)
    reply = await _post(request, project, body, api_version=1)
    del body  # as above
    successor = deprecated(f"/discovery/v2/assistant/{project.domain}/message")
    return await send_data_stream(request, reply, headers=successor)


async def _post(
    request: web.Request, project: ProjectView, body: ThreadBody, *, api_version: Literal[1, 2]
) -> ReplySubscription:
    message = _message(body, project.domain, request, api_version)
    name_reader(request, body.fp)
    return await begin_reply(request, message, partial(_record, request, project, body, message))


async def _record(request: web.Request, project: ProjectView, body: ThreadBody, message: PostMessage) -> PostedMessage:
    """In the thread that the request names; or in the one that the chat's earlier messages name, if it is the sender's
    to write to: clients send metadata back without being asked to, so a wrong one is not their mistake. A client that
    wants another reply to a chat's first message, or edits it, has no earlier message to send back: then the chat's
    name decides.
    """
    store, metadata = metered_store(request), metadata_of(request)
    named = _id_in(body.thread_id) or _id_header(request, ui_messages.THREAD_ID_HEADER)
    if named:
        return await post_message(store, named, message, metadata)
    meant = _echoed_thread(body.messages)
    if meant is None and message.chat_id and (message.regenerates or _id_in(body.message_id)):
        meant = await find_thread_of_message(request.app[STORE], request.app[VIEWS], message)
    if meant is not None:
        with suppress(NotFound):
            return await post_message(store, meant, message, metadata)
    return await start_thread(store, project, message, metadata)


def _message(body: ThreadBody, domain: str, request: web.Request, api_version: Literal[1, 2]) -> PostMessage:
    asked, text = _last_question(body.messages)
    wanted = body.filter or FilterBody()
    chat_id = _id_in(body.id)
    return PostMessage(
        message_id=new_id(),
        client_message_id=_id_in(asked.id) or _id_header(request, ui_messages.MESSAGE_ID_HEADER),
        text=text,
        context=tuple(ContextItem(item.type, item.value, item.path, item.element_id) for item in body.context or ()),
        current_path=body.current_path or "",
        filter=SearchFilter(wanted.version, wanted.language, wanted.tag, trusted_groups(request, wanted.groups)),
        page_size=_page_size(body.retrieval_page_size),
        api_version=api_version,
        reply_id=f"msg_{new_id()}",
        instance=request.app[INSTANCE],
        domain=domain,
        fp=body.fp,
        now=now(),
        thread_key=body.thread_key or request.headers.get("X-Thread-Key") or None,
        key_required=request.app[KEY_REQUIRED],
        chat_id=chat_id,
        asker=asker_of(request) if chat_id else "",
        regenerates=body.trigger == "regenerate-message" or body.regenerate is True,
        edits=bool(chat_id) or isinstance(body.trigger, str) or bool(_id_in(body.message_id)),
        listed=len(body.messages) if api_version == 1 and chat_id else 0,
        is_public=is_keyless(request),
        features=tuple(name for name in FEATURES if name in (body.features or ())),
        caller="web" if "Origin" in request.headers or "Sec-Fetch-Site" in request.headers else "api",
    )


def _page_size(given: float | None) -> int:
    if given is None:
        return DEFAULT_PAGE_SIZE
    if given != int(given):
        problem = "is a whole number"
        raise Invalid(f"$.retrievalPageSize: {problem}", problems=(("$.retrievalPageSize", problem),))
    return int(given)


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
    if message.parts:
        return "\n".join(_texts((part.type, part.text, part.content) for part in message.parts))
    if isinstance(message.content, list):
        parts = [part for part in message.content if isinstance(part, dict)]
        return "\n".join(_texts((part.get("type"), part.get("text"), part.get("content")) for part in parts))
    return message.content if isinstance(message.content, str) else ""


def _texts(parts: Iterable[tuple[Any, Any, Any]]) -> Iterator[str]:
    """Yield the text of each text part, given as its type, text and content."""
    for kind, text, content in parts:
        found = text or content
        if kind == "text" and isinstance(found, str):
            yield found


def _id_in(value: object) -> str:
    """Return an id as text: some clients number their messages and chats. Empty where there is none."""
    if isinstance(value, str):
        return value[:MAX_ID_CHARACTERS]
    return str(value)[:MAX_ID_CHARACTERS] if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _id_header(request: web.Request, name: str) -> str:
    return request.headers.get(name, "")[:MAX_ID_CHARACTERS].encode("utf-8", "replace").decode()


def _echoed_thread(messages: list[Raw]) -> str | None:
    """The thread that the last of the assistant's messages names."""
    for index in reversed(range(max(0, len(messages) - MAX_ECHOES), len(messages))):
        message = decoded_at(f"$.messages[{index}]", messages[index], EchoedMessage)
        if message.role != "assistant":
            continue
        annotations = message.annotations if isinstance(message.annotations, list) else []
        for told in (message.metadata, *reversed(annotations)):
            thread_id = told.get("threadId") if isinstance(told, dict) else None
            if isinstance(thread_id, str) and 0 < len(thread_id) <= MAX_ID_CHARACTERS:
                return thread_id
    return None


def asker_of(request: web.Request) -> str:
    """Return a digest of the caller, as far as a request shows it: one page in one browser, reloaded, is the same."""
    seen = (request[ACTOR], str(client_address(request)), request.headers.get("User-Agent", ""))
    return hashlib.sha256("\0".join(seen).encode("utf-8", "surrogateescape")).hexdigest()
