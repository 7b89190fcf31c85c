"""Replies that clients lost: resume one in its chat, or stop it."""

from aiohttp import web

from service.domain.threads.replies import ResumeRequest
from service.queries.threads import FoundReply, find_reply_to_resume
from service.runtime.system import now
from service.views.projects import ProjectView
from service.web.api.assistant.replies import ReplySubscription, send_data_stream, send_ui_messages
from service.web.api.assistant.threads import MAX_ID_CHARACTERS, asker_of
from service.web.api.description.operations import Answer, Parameter, Routes
from service.web.http.access.access import site_for
from service.web.http.app_keys import BROADCAST, KEY_REQUIRED, REPLIER, STORE, VIEWS
from service.web.http.query_params import query_param
from service.wire import data_stream, ui_messages

RESUME_PARAMETERS = (
    Parameter("X-Thread-Key", "The thread's key.", where="header"),
    Parameter("threadKey", "The thread's key, for clients that can set no header."),
    Parameter("fp", "The thread's own `fp`, where it is not `anonymous`."),
)

routes = Routes()


@routes.operation(
    "GET",
    "/discovery/v2/assistant/{domain}/message/{chatId:.+}/stream",
    "resumeReply",
    "Assistant",
    "Resume a reply",
    {
        200: Answer(
            "The reply under way, from its start: the same stream as when it was asked for.",
            ui_messages.UiChunk,
            media_type="text/event-stream",
            headers=(ui_messages.THREAD_ID_HEADER, ui_messages.MESSAGE_ID_HEADER, "x-vercel-ai-ui-message-stream"),
            example=ui_messages.EXAMPLE,
        ),
        204: Answer("Nothing is under way in that chat, or nothing for this reader."),
    },
    description="What `useChat({resume: true})` asks for when its page comes back. It is for a client that has the"
    " thread's key, or asks as the first request did: with the same key, from the same address, by the same"
    " program.",
    parameters=RESUME_PARAMETERS,
    answers_head=False,  # asking has effects
)
async def resume_reply(request: web.Request) -> web.StreamResponse:
    """AI SDK 5 and later: server-sent events; 204 when there is nothing to resume."""
    return await send_resumed(request, await site_for(request))


async def send_resumed(request: web.Request, project: ProjectView) -> web.StreamResponse:
    """Answer with the reply under way in a chat of a site that the request may ask."""
    reply = await _reply_to_resume(request, project)
    if reply is None:
        return web.Response(status=204)
    plain = ui_messages.is_plain_reader(request.headers.get("User-Agent", ""), body_has_trigger=False)
    return await send_ui_messages(request, reply, plain=plain)


@routes.operation(
    "GET",
    "/discovery/v1/assistant/{domain}/message/{chatId:.+}/stream",
    "resumeReplyV1",
    "Deprecated",
    "Resume a reply, for the AI SDK 4",
    {
        200: Answer(
            "The reply under way, from its start: the same stream as when it was asked for.",
            media_type="text/plain",
            headers=(ui_messages.THREAD_ID_HEADER, "x-vercel-ai-data-stream"),
            example=data_stream.EXAMPLE,
        ),
        204: Answer("Nothing is under way in that chat, or nothing for this reader."),
    },
    description="As `resumeReply`, with the stream of `askV1`.",
    parameters=RESUME_PARAMETERS,
    answers_head=False,  # asking has effects
)
async def resume_reply_v1(request: web.Request) -> web.StreamResponse:
    """Answer as ``resume_reply`` does, for AI SDK 4."""
    reply = await _reply_to_resume(request, await site_for(request))
    return web.Response(status=204) if reply is None else await send_data_stream(request, reply, headers={})


@routes.operation(
    "POST",
    "/discovery/v2/assistant/{domain}/message/{chatId:.+}/stop",
    "stopReply",
    "Assistant",
    "Stop a reply",
    {204: Answer("Nothing is under way in that chat any more, as far as this reader may know.")},
    description="For a client whose replies go on after a lost connection: `features` `resume`, or the setting"
    " `[threads] grace_seconds`. The text so far stays on the thread. It takes what `resumeReply` takes.",
    parameters=RESUME_PARAMETERS,
)
async def stop_reply(request: web.Request) -> web.Response:
    return await stop_answer(request, await site_for(request))


async def stop_answer(request: web.Request, project: ProjectView) -> web.Response:
    """Stop the reply under way in a chat of a site that the request may ask."""
    found = await _reply_under_way(request, project)
    if found is not None and found.reply.state == "active":
        await request.app[REPLIER].stop_for_reader(found.thread_id, found.reply.reply_id)
    return web.Response(status=204)


async def _reply_under_way(request: web.Request, project: ProjectView) -> FoundReply | None:
    """Return the reply that a reader waits for in a chat; None when there is none, or none for this reader.

    A chat's name is chosen by its client and can be guessed. So the caller either has the thread's key
    (``X-Thread-Key``, or ``threadKey`` in the query), or is the one who asked, by API key, address and User-Agent.
    ``fp`` in the query must be the thread's own, where it has one. The plain client sends none of these.
    """
    key = request.headers.get("X-Thread-Key") or query_param(request, "threadKey") or None
    reader = ResumeRequest(
        project.domain,
        asker_of(request),
        now(),
        fp=query_param(request, "fp") or None,
        thread_key=key,
        key_required=request.app[KEY_REQUIRED],
    )
    chat_id = request.match_info["chatId"][:MAX_ID_CHARACTERS]
    return await find_reply_to_resume(request.app[STORE], request.app[VIEWS], chat_id, reader)


async def _reply_to_resume(request: web.Request, project: ProjectView) -> ReplySubscription | None:
    replier = request.app[REPLIER]
    replier.require_running()
    found = await _reply_under_way(request, project)
    if found is None:
        return None
    thread_id, reply = found.thread_id, found.reply
    if reply.state == "active":
        await replier.settle_if_orphaned(thread_id, reply.reply_id, reply.instance)
        await replier.record_reconnect(thread_id, reply.reply_id)
    topic = request.app[BROADCAST].find(reply.reply_id)
    return ReplySubscription(thread_id, reply.reply_id, topic, may_return=True, is_lost=True, features=reply.features)
