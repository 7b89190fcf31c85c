"""What every kind of Instances does; a ``Group`` begins and ends further processes beside the one that is tested."""

from typing import Protocol

from service.ports.shared.instances import Instances


class Group(Protocol):
    here: Instances

    async def begin(self) -> str:
        """Begin another process, and return its name."""

    async def close(self, name: str) -> None: ...

    async def crash(self, name: str) -> None:
        """End it without closing."""

    async def look(self) -> None:
        """Let all that are alive look."""

    async def pass_lease(self) -> None:
        """Let so much time pass that each notices who has ended."""


class InstancesContract:
    async def test_process_is_alive_until_it_has_crashed(self, group: Group):
        name = await group.begin()
        assert group.here.is_alive(name)
        await group.pass_lease()
        assert group.here.is_alive(name)
        assert name not in group.here.crashed
        await group.crash(name)
        await group.pass_lease()
        assert not group.here.is_alive(name)
        assert name in group.here.crashed

    async def test_closed_process_is_not_alive_and_has_not_crashed(self, group: Group):
        name = await group.begin()
        await group.look()
        await group.close(name)
        await group.look()
        assert not group.here.is_alive(name)
        assert name not in group.here.crashed

    async def test_unused_names_are_not_alive(self, group: Group):
        for name in ("1234-abcd", "../../etc/passwd-nobody", ""):
            group.here.is_alive(name)
            await group.look()
            assert not group.here.is_alive(name)
            assert group.here.find(name) is None
        assert not group.here.crashed

    async def test_names_are_not_used_again(self, group: Group):
        names = [group.here.name]
        for _ in range(5):
            names.append(await group.begin())
            await group.close(names[-1])
        assert len(set(names)) == 6

    async def test_one_that_is_alone_leads_and_is_certain(self, group: Group):
        await group.here.until_leading()
        assert group.here.leads()
        assert group.here.is_certain()
        assert group.here.is_alive(group.here.name)
        assert group.here.find(group.here.name) is None
        assert not group.here.others()
