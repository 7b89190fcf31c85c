"""The API's description of fields besides their types, for the structs of requests and answers."""

from typing import Any

from service.domain.threads.threads import MAX_QUESTION_CHARACTERS

NOT_BLANK = {"pattern": r"[^\s\u001c-\u001f\u0085]"}
"""Text that ``str.strip`` does not empty: it strips a few separators that regular expressions treat as letters."""
WHOLE = {"multipleOf": 1}
"""Whole numbers that are read as floats, since some clients write 5 as 5.0: an integer for JSON Schema, too."""


MESSAGE: dict[str, Any] = {
    "title": "ChatMessage",
    "type": "object",
    "required": ["role"],
    "properties": {
        "id": {
            "type": ["string", "number", "null"],
            "description": "The client's own name for it; the same again is asked once.",
        },
        "role": {
            "type": "string",
            "description": "`user`, `assistant` or `system`. Only messages of the user are read: the thread has its own"
            " record of the others.",
            "examples": ["user"],
        },
        "parts": {
            "description": "The text parts are the question, each on a line of its own; others are passed over.",
            "type": ["array", "null"],
            "items": {
                "type": "object",
                "properties": {
                    "type": {"type": "string", "description": "`text`; others are passed over.", "examples": ["text"]},
                    "text": {"type": ["string", "null"], "description": "Of a text part."},
                    "content": {"description": "The text of a text part that has no `text`."},
                },
            },
        },
        "content": {
            "description": "The question as one text, or as a list of text parts, for clients that send no `parts`.",
            "examples": ["How?"],
        },
    },
}
"""One message of a chat, as clients of the AI SDK send it. It is read by hand, since only the last question counts."""

_TEXT_PARTS: dict[str, Any] = {
    "type": "array",
    "contains": {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"const": "text"}},
        "anyOf": [
            {"required": ["text"], "properties": {"text": {"type": "string", **NOT_BLANK}}},
            {
                "required": ["content"],
                "properties": {"text": {"enum": ["", None]}, "content": {"type": "string", **NOT_BLANK}},
            },
        ],
    },
}

QUESTION: dict[str, Any] = {
    "required": ["role"],
    "properties": {"role": {"const": "user"}},
    "anyOf": [
        {"required": ["parts"], "properties": {"parts": _TEXT_PARTS}},
        {
            "required": ["content"],
            "properties": {
                "content": {
                    "anyOf": [{"type": "string", "maxLength": MAX_QUESTION_CHARACTERS, **NOT_BLANK}, _TEXT_PARTS]
                },
                "parts": {"anyOf": [{"type": "null"}, {"type": "array", "maxItems": 0}]},
            },
        },
    ],
}
"""A message that asks something. Of several, the last one of role `user` counts, which a schema cannot say."""
