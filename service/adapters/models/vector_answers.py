"""The answer of OpenAI's ``/embeddings``, which many servers give, as vectors."""

import json
import math

import msgspec
from msgspec import Struct

NO_VECTORS = (
    b'{"object": "list", "model": "", "data": [{"object": "embedding", "index": 0, "embedding": [0.0]}],'
    b' "usage": {"prompt_tokens": 0, "total_tokens": 0}}'
)
"""The body that litellm gets in place of an answer with vectors."""


class _Item(Struct):
    embedding: list[float]
    index: int = -1


class _Answer(Struct):
    data: list[_Item]


_decoder = msgspec.json.Decoder(_Answer)


def read_vectors(body: bytes) -> list[list[float]]:
    """Return the vectors in the order of the texts. Raise ValueError for another answer.

    ``null`` and other values that are not numbers become NaN, so that one bad vector does not cost the others.
    """
    try:
        items = _decoder.decode(body).data
    except (msgspec.DecodeError, UnicodeDecodeError):
        items = _lenient(body)
    if sorted(item.index for item in items) == list(range(len(items))):
        items.sort(key=lambda item: item.index)
    return [item.embedding for item in items]


def _lenient(body: bytes) -> list[_Item]:
    try:
        data = json.loads(body)["data"]
        return [_Item([_number(each) for each in item["embedding"]], int(item.get("index", -1))) for item in data]
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"it is of another form ({type(error).__name__})") from None


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
