"""Servers of models that lack nothing, or one thing that jobs or answers need; for ``ScriptedProvider``."""

import json

from tests.fakes.provider import Asked, Call, Failure, Reply


def able(asked: Asked) -> Reply | Failure:
    """A server and a model that lack nothing."""
    prompt = json.dumps(asked.body["messages"])
    if "Count from" in prompt:
        return Reply(("1, 2, ", "3, 4"))
    if "twice" in prompt:
        return Reply((), tuple(Call("look_up_weather", (json.dumps({"city": city}),)) for city in ("Paris", "Rome")))
    if "Answer now" in prompt:
        return Reply(("Sunny",))
    if "Call the tool" in prompt:
        return Reply((), (Call("look_up_weather", ('{"city": "Paris"}',)),))
    return Reply(("Juniper",))


def without_tools(asked: Asked) -> Reply | Failure:
    if asked.body.get("tools"):
        return Failure(400, "api_error", "registry.example/tiny:latest does not support tools")
    return able(asked)


def without_parser(asked: Asked) -> Reply | Failure:
    reply = able(asked)
    if isinstance(reply, Failure) or not reply.calls:
        return reply
    return Reply(('<tool_call>{"name": "look_up_weather", "arguments": {"city": "Paris"}}</tool_call>',))


def one_at_a_time(asked: Asked) -> Reply | Failure:
    reply = able(asked)
    return reply if isinstance(reply, Failure) else Reply(reply.texts, reply.calls[:1])


def in_one_piece(asked: Asked) -> Reply | Failure:
    reply = able(asked)
    return reply if isinstance(reply, Failure) else Reply(("".join(reply.texts),) if reply.texts else (), reply.calls)


def small_window(asked: Asked) -> Reply | Failure:
    if len(json.dumps(asked.body)) > 16_000:
        return Failure(400, "invalid_request_error", "This model's maximum context length is 4096 tokens")
    return able(asked)


def cuts_silently(asked: Asked) -> Reply | Failure:
    return Reply(("Which line?",)) if len(json.dumps(asked.body)) > 16_000 else able(asked)


def refuses_orders(asked: Asked) -> Reply | Failure:
    if "Answer now" in json.dumps(asked.body["messages"]):
        return Failure(400, "BadRequestError", "Unexpected role 'user' after role 'tool'")
    return able(asked)
