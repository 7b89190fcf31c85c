"""What all SharedSecrets do. A subclass gives the fixture ``opened``: each call is another process of one folder."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count

from service.ports.shared.shared_secrets import SharedSecrets

Opened = Callable[[], Awaitable[SharedSecrets]]


class SharedSecretsContract:
    async def test_secret_is_made_once_and_kept(self, opened: Opened):
        one, made = await opened(), count()

        def make() -> bytes:
            return b"secret %d" % next(made)

        assert await one.find("usage") is None
        assert await one.obtain("usage", make) == b"secret 0"
        assert await one.obtain("usage", make) == b"secret 0"
        other = await opened()
        assert await other.find("usage") == b"secret 0"
        assert await other.obtain("usage", make) == b"secret 0"

    async def test_all_get_the_secret_of_one(self, opened: Opened):
        made = count()
        many = [await opened() for _ in range(5)]
        found = await asyncio.gather(*(one.obtain("cluster", lambda: b"secret %d" % next(made)) for one in many * 4))
        assert len(set(found)) == 1

    async def test_each_name_has_its_own_secret(self, opened: Opened):
        one = await opened()
        for name in ("usage", "usage-1", "cluster"):
            assert await one.find(name) is None
            assert await one.obtain(name, name.encode) == name.encode()
        assert await one.find("usage") == b"usage"

    async def test_secret_may_be_any_bytes(self, opened: Opened):
        every = bytes(range(256)) * 4
        assert await (await opened()).obtain("checkpoint", lambda: every) == every
        assert await (await opened()).find("checkpoint") == every
