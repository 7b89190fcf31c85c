"""Signing in by a one-time link, and what ends a session."""

from tests.dashboard.conftest import COOKIE, browser, invite, post_form, sign_in


async def test_link_works_once(service, people):
    _, link = await invite(service.data, email="once@example.com", is_operator=True)
    assert sign_in(service.url, link)
    again = post_form(f"{service.url}/sign-in", {"link": link})
    assert again.status == 401
    assert "link_not_valid" in again.text


async def test_sign_out_ends_the_session(service, people):
    _, link = await invite(service.data, email="leaving@example.com", is_operator=True)
    cookie = sign_in(service.url, link)
    async with browser(service.url, cookie) as client:
        left = await client.post("/sign-out", allow_redirects=False)
        assert left.status == 303
        assert f'{COOKIE}=""; expires=' in "".join(left.headers.getall("Set-Cookie"))
        assert (await client.post("/sign-out", allow_redirects=False)).status == 401
