"""Questions compared with sections by meaning, where an embedding model is set; search never waits for it long.

A question whose vector is not there within ``WAIT_SECONDS`` is answered by its words alone, and so are all for
``REST_SECONDS`` after the model failed: a provider that is down costs one query in that time a moment, and no other
anything.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import structlog

from service.domain.errors import Invalid, ServiceError, Unavailable
from service.domain.projects.values import DOMAIN
from service.ports.embeddings import Embeddings
from service.retrieval.index.bit_vectors import encode
from service.retrieval.index.vectors import Vectors

log = structlog.get_logger()

WAIT_SECONDS, REST_SECONDS = 0.3, 30.0
MAX_QUERY = 2_000
"""Characters of a question that are embedded."""
REMEMBERED, MAX_OPEN = 1000, 64
"""Questions whose vectors are kept, and files of vectors."""


class Meaning:
    """The vectors of all domains, of one model."""

    def __init__(
        self,
        root: Path,
        model: Embeddings,
        *,
        wait_seconds: float = WAIT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root, self.model, self._wait, self._clock = root, model, wait_seconds, clock
        self._rests_until = 0.0
        self._asked: OrderedDict[str, Sequence[float]] = OrderedDict()
        self._vectors: OrderedDict[str, Vectors] = OrderedDict()
        self.outdated: asyncio.Queue[str] = asyncio.Queue()
        """Domains whose vectors have another length than the model's now: it is another model under its name."""
        self._compared: set[tuple[str, int]] = set()
        """Domains and lengths of questions' vectors that were compared with those of the domain."""

    async def prepare(self, *, wait_seconds: float | None = None) -> None:
        """Make the model ready; with ``wait_seconds`` questions may wait so long: for a command, which asks but one."""
        await self.model.prepare()
        self._wait = max(self._wait, wait_seconds or 0.0)

    async def nearness(self, domain: str, query: str) -> Callable[[Sequence[bytes]], Mapping[bytes, float]] | None:
        """Return how near sections of the domain are to a question; None when that cannot be said in time."""
        if not DOMAIN.fullmatch(domain) or not (self._root / domain).is_dir():
            return None
        vector = await self._vector(query[:MAX_QUERY])
        if vector is None:
            return None
        vectors = await self.vectors(domain)
        await self._compare_lengths(domain, vectors, len(vector))
        return partial(vectors.nearness, query=vector)

    async def _compare_lengths(self, domain: str, vectors: Vectors, length: int) -> None:
        """Report, once in a process, a domain whose vectors the model's do not compare with."""
        if (domain, length) in self._compared:
            return
        known = await asyncio.to_thread(vectors.dimensions)
        if known is not None:
            self._compared.add((domain, length))
        if known not in (None, length):
            log.warning("sections have vectors of another length", domain=domain, model=self.model.name)
            self.outdated.put_nowait(domain)

    async def _vector(self, query: str) -> Sequence[float] | None:
        known = self._asked.get(query)
        if known is not None:
            self._asked.move_to_end(query)
            return known
        if self._clock() < self._rests_until:
            return None
        try:
            async with asyncio.timeout(self._wait):
                (vector,) = await self.model.embed([query], timeout_seconds=self._wait)
            if encode(vector) is None:
                raise Unavailable("it answered with a vector without a direction")
        except (ServiceError, TimeoutError) as error:
            self._rests_until = self._clock() + REST_SECONDS
            log.warning("search goes by words alone", model=self.model.name, reason=str(error) or "too slow")
            return None
        self._asked[query] = vector
        if len(self._asked) > REMEMBERED:
            self._asked.popitem(last=False)
        return vector

    async def vectors(self, domain: str) -> Vectors:
        """Raises Invalid for what is no domain."""
        if not DOMAIN.fullmatch(domain) or ".." in domain:
            raise Invalid(f"{domain!r} is not a domain.")
        if domain not in self._vectors:
            opened = await asyncio.to_thread(Vectors, self._root / domain, self.model.name)
            self._vectors.setdefault(domain, opened)  # another may have been as fast
            if len(self._vectors) > MAX_OPEN:
                self._vectors.popitem(last=False)  # closed once no one reads it
        self._vectors.move_to_end(domain)
        return self._vectors[domain]

    def close(self) -> None:
        for vectors in self._vectors.values():
            vectors.close()
        self._vectors.clear()
