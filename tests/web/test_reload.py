"""Settings of the entry that change while it is open."""

import aiohttp

from service.domain.access.usage import Limits
from service.web.http.connections.admission import AdmissionSettings
from service.web.http.connections.client_address import Proxies
from tests.web.entrance import entrance


async def test_a_limit_is_lowered_and_a_proxy_believed_from_now_on(tmp_path):
    async with (
        entrance(tmp_path, AdmissionSettings(limits=Limits(project=5))) as entry,
        aiohttp.ClientSession() as http,
    ):
        headers = {"Authorization": f"Bearer {await entry.key(allowed_addresses=('192.0.2.7',))}"}
        headers["X-Forwarded-For"] = "192.0.2.7"

        async def post():
            async with http.post(f"{entry.url}/v2/agent/alpha/job", headers=headers, json={}) as response:
                return response.status, response.headers.get("RateLimit-Policy")

        assert (await post())[0] == 403  # whoever calls can write that header
        trusting = AdmissionSettings(limits=Limits(project=2), proxies=Proxies(("127.0.0.0/8",)))
        entry.admission.change(trusting)
        assert [await post() for _ in range(3)] == [(status, '"project";q=2;w=3600') for status in (200, 200, 429)]
        entry.admission.change(AdmissionSettings(limits=Limits(project=5)))
        assert (await post())[0] == 403
