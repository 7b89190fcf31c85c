"""Webhooks of an organization: how many there may be."""

import asyncio

from eventstore import Metadata, Views
from service.commands.webhooks import MAX_WEBHOOKS, NewWebhook, create_webhook
from service.domain.errors import Conflict
from service.projections import all_projections
from service.queries.webhooks import webhooks_of

METADATA = Metadata(actor="test")
NEW = NewWebhook("acme", None, ("job.completed",), "https://hooks.example/docs", allow_private=False)


async def test_those_created_at_once_are_counted_too(tmp_path, store):
    async with await Views.open(tmp_path / "views.db", store, all_projections()) as views:
        for _ in range(MAX_WEBHOOKS - 1):
            await create_webhook(store, views, NEW, METADATA)
        at_once = [create_webhook(store, views, NEW, METADATA) for _ in range(5)]
        ended = await asyncio.gather(*at_once, return_exceptions=True)
        await views.catch_up()
        kept = (await webhooks_of(views, "acme")).webhooks
        assert len(kept) == MAX_WEBHOOKS
        assert {type(one) for one in ended if isinstance(one, BaseException)} == {Conflict}
