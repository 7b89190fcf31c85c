"""Embeddings for the benchmark of search: the path of the service over litellm, to any server of OpenAI's form."""

import time
from pathlib import Path

from service.adapters.models.embeddings import LitellmEmbeddings
from service.adapters.models.model_settings import ModelSettings
from service.retrieval.search.meaning import Meaning
from service.retrieval.search.query import SiteIndexes

BATCH, BATCH_SECONDS, WAIT_SECONDS = 32, 600.0, 600.0


def meaning_over(url: str, root: Path) -> Meaning:
    """Return the meaning of sites whose indexes are under ``root``; questions wait as long as it takes."""
    settings = ModelSettings(alias="bench", model="openai/all-MiniLM-L6-v2", api_base=url, api_key_env="")
    return Meaning(root, LitellmEmbeddings(settings, {}), wait_seconds=WAIT_SECONDS)


async def embed_site(indexes: SiteIndexes, meaning: Meaning, domain: str) -> float:
    """Give every section its vector, and return the seconds that it took."""
    began = time.perf_counter()
    vectors, sections = await meaning.vectors(domain), await indexes.hashes(domain)
    missing = [sections[key] for key in vectors.missing(list(sections))]
    for at in range(0, len(missing), BATCH):
        texts = await indexes.meanings(domain, missing[at : at + BATCH])
        made = await meaning.model.embed(list(texts.values()), timeout_seconds=BATCH_SECONDS)
        vectors.add(dict(zip(texts, made, strict=True)))
    return round(time.perf_counter() - began, 1)
