"""The whole service, started and stopped in this process."""

import asyncio

from msgspec.structs import replace

from service.main.running import running
from service.runtime.data_folder import make_data_folder
from service.runtime.settings.settings import Settings


async def test_stopped_service_leaves_no_worker_behind(tmp_path):
    data = tmp_path / "data"
    make_data_folder(data)
    settings = Settings()
    async with running(data, replace(settings, server=replace(settings.server, port=0))) as server:
        assert server.is_alive()
        names = {task.get_name() for task in asyncio.all_tasks()}
        assert {"views", "keys", "replier", "job-runner", "ended-jobs"} <= names
    assert asyncio.all_tasks() == {asyncio.current_task()}
