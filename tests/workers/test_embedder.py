"""Every section of a site gets its vector once, whatever the model does meanwhile."""

import asyncio
import math
import shutil

import msgspec
import pytest

from eventstore import Metadata
from service.commands.organizations import create_organization
from service.commands.projects import create_project
from service.domain.errors import Unavailable
from service.domain.projects.settings import ProjectSettings
from service.ports.embeddings import TextRefused
from service.retrieval.search.meaning import Meaning
from service.retrieval.search.query import SiteIndexes
from service.workers.indexing.embedder import BATCH, Embedder
from service.workers.indexing.indexer import Indexer, IndexerContext
from service.workers.indexing.vector_sharing import SharedVectors, WantedVectors
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.embeddings import FakeEmbeddings
from tests.fakes.instances import FakeInstances
from tests.fakes.internal_http import Answered, FakeInternalHttp

PAGES = {f"k{number}.md": f"# Kite {number}\n\nIt flies {number} times.\n" for number in range(BATCH + 8)}


class Choosy(FakeEmbeddings):
    """Refuses texts with a word, as a provider does: the whole request, without saying which text."""

    refused = "nothing"

    async def embed(self, texts, *, timeout_seconds):
        if any(self.refused in text for text in texts):
            raise TextRefused("One of them is refused.")
        return await super().embed(texts, timeout_seconds=timeout_seconds)


class Kites:
    def __init__(self, store, views, data):
        self.model = Choosy({"kite": "kite"})
        self.meaning = Meaning(data / "index", self.model, wait_seconds=60)
        self.index = SiteIndexes(data / "index", meaning=self.meaning)
        self.docs = FakeDocsSource(PAGES)
        self.indexer = Indexer(store, views, self.docs, self.index, data, IndexerContext(retry_seconds=0))
        self.embedder = Embedder(store, views, self.index, self.meaning, pauses_seconds=(0.0,))

    async def until_missing(self, count: int) -> None:
        async with asyncio.timeout(60):
            vectors = await self.meaning.vectors("kites")
            hashes = list(await self.index.hashes("kites"))
            while len(await asyncio.to_thread(vectors.missing, hashes)) != count:  # noqa: ASYNC110  (nothing tells when)
                await asyncio.sleep(0.02)


@pytest.fixture
async def kites(store, views, tmp_path):
    kites = Kites(store, views, tmp_path)
    organization = await create_organization(store, "Acme", Metadata())
    await views.catch_up()
    new = ProjectSettings(
        organization.id, "Kites", "https://x.y/r.git", "main", "", "kites", "github", git_token_env="TOKEN"
    )
    await create_project(store, views, kites.docs, {"github": FakeCodeHost()}, new, Metadata())
    await views.catch_up()
    await kites.indexer.index("kites", Metadata(), whole=True)
    await views.catch_up()
    yield kites
    await kites.index.close()


@pytest.fixture
async def running(kites):
    tasks = []
    yield lambda: tasks.append(asyncio.create_task(kites.embedder.run()))
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_failure_between_batches_repeats_no_section(kites, running):
    kites.model.errors = [Unavailable("down"), Unavailable("down")]
    running()
    await kites.until_missing(0)
    assert sorted(kites.model.texts) == sorted(set(kites.model.texts))
    assert len(kites.model.texts) == len(PAGES)


async def test_leader_alone_asks_the_model(kites, running, tmp_path, store, views):
    async def answer(asked):
        wanted = msgspec.msgpack.decode(asked.body, type=WantedVectors)
        vectors = await kites.meaning.vectors("kites")
        return Answered(parts=[msgspec.msgpack.encode(vectors.stored(wanted.hashes))])

    instances, pulse = FakeInstances("other"), asyncio.Event()
    instances.begin("leader", "http://leader")
    instances.be(leads=False)

    async def sleep(_seconds):
        await asyncio.sleep(0)
        await pulse.wait()

    shutil.copytree(tmp_path / "index", tmp_path / "other" / "index")
    model = FakeEmbeddings({"kite": "kite"})
    meaning = Meaning(tmp_path / "other" / "index", model, wait_seconds=60)
    index = SiteIndexes(tmp_path / "other" / "index", meaning=meaning)
    shared = SharedVectors(instances, FakeInternalHttp(answer), sleep)
    other = asyncio.create_task(Embedder(store, views, index, meaning, shared=shared).run())
    await index.use("kites", kites.index.served("kites"))
    running()
    await kites.until_missing(0)
    pulse.set()
    vectors, hashes = await meaning.vectors("kites"), list(await index.hashes("kites"))
    async with asyncio.timeout(60):
        while await asyncio.to_thread(vectors.missing, hashes):  # noqa: ASYNC110  (nothing tells when)
            await asyncio.sleep(0.02)
    assert model.texts == []
    other.cancel()
    await asyncio.wait([other])
    await index.close()


async def test_refused_text_costs_only_its_own_vector(kites, running):
    kites.model.refused = "flies 7 times"
    running()
    await kites.until_missing(1)
    assert len(kites.model.texts) == len(PAGES) - 1


async def test_vector_without_direction_costs_only_its_section(kites, running):
    kites.model.answers = [[math.nan] * 32]
    running()
    await kites.until_missing(1)


async def test_sections_are_embedded_again_for_another_model(kites, running):
    running()
    await kites.until_missing(0)
    kites.model.texts, kites.model.answers = [], [[1.0, 2.0]] * (2 + len(PAGES))
    await kites.index.search("kites", "kite")
    vectors = await kites.meaning.vectors("kites")
    async with asyncio.timeout(60):
        while await asyncio.to_thread(vectors.dimensions) != 2:  # noqa: ASYNC110  (nothing tells when)
            await asyncio.sleep(0.02)
    await kites.until_missing(0)
