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
            "type": ["string", "null"],
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
                },
            },
        },
        "content": {"description": "The question as one text, for clients that send no parts.", "examples": ["How?"]},
    },
}
"""One message of a chat, as clients of the AI SDK send it. It is read by hand, since only the last question counts."""

QUESTION: dict[str, Any] = {
    "required": ["role"],
    "properties": {"role": {"const": "user"}},
    "anyOf": [
        {
            "required": ["parts"],
            "properties": {
                "parts": {
                    "type": "array",
                    "contains": {
                        "required": ["type", "text"],
                        "properties": {"type": {"const": "text"}, "text": {"type": "string", **NOT_BLANK}},
                    },
                }
            },
        },
        {
            "required": ["content"],
            "properties": {
                "content": {"type": "string", "maxLength": MAX_QUESTION_CHARACTERS, **NOT_BLANK},
                "parts": {"anyOf": [{"type": "null"}, {"type": "array", "maxItems": 0}]},
            },
        },
    ],
}
"""A message that asks something. Of several, the last one of role `user` counts, which a schema cannot say."""
