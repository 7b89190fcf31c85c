"""The queries that material is gathered for."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from service.ports.search_index import MaterialRequest
from service.retrieval.material.sides import sides_of

MAX_QUERIES = 6

Nearness = Callable[[Sequence[bytes]], Mapping[bytes, float]]
"""How near sections, by the hash of their content, are to the question in meaning; of those that are known."""


class Asked(Struct, frozen=True):
    """A query, and how near in meaning sections are to it, where meanings are compared."""

    text: str
    nearness: Nearness | None = None


def queries_of(request: MaterialRequest) -> tuple[str, ...]:
    """Return the queries, and the sides of a comparison where the request has no more than the question."""
    queries = tuple(dict.fromkeys(query for query in request.queries if query.strip()))[:MAX_QUERIES]
    return (*queries, *sides_of(queries[0])) if len(queries) == 1 else queries
