"""Passkeys in Chromium, with a virtual authenticator: added on the account page, used to sign in, removed."""

from contextlib import contextmanager

import pytest

pytestmark = pytest.mark.slow


@contextmanager
def authenticator(page):
    """A device with a screen lock, as the browser's own protocol offers it (Chrome DevTools Protocol, WebAuthn)."""
    protocol = page.context.new_cdp_session(page)
    protocol.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
        "isUserVerified": True, "automaticPresenceSimulation": True,
    }  # fmt: skip
    made = protocol.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    yield protocol, made["authenticatorId"]


def test_passkey_is_added_and_signs_in(browsing):
    with browsing.opened("editor") as page, authenticator(page) as (protocol, device):
        page.goto("/account")
        page.get_by_label("Name of the passkey").fill("Laptop")
        page.get_by_role("button", name="Add a passkey").click()
        row = page.get_by_role("row", name="Laptop")
        row.wait_for()
        assert len(protocol.send("WebAuthn.getCredentials", {"authenticatorId": device})["credentials"]) == 1
        page.get_by_label("Name of the passkey").fill("Again")
        page.get_by_role("button", name="Add a passkey").click()
        page.get_by_text("has a passkey of yours already").wait_for()
        page.context.clear_cookies()
        page.goto("/sign-in?next=/account")
        page.get_by_role("button", name="Sign in with a passkey").click()
        page.wait_for_url("**/account")
        row.get_by_text("Remove").first.click()
        row.get_by_role("button", name="Remove the passkey").click()
        page.get_by_text("no longer signs you in").wait_for()
        page.context.clear_cookies()
        page.goto("/sign-in")
        page.get_by_role("button", name="Sign in with a passkey").click()
        page.get_by_text("does not sign anyone in").wait_for()


def test_passkey_buttons_are_hidden_without_scripts(browsing):
    with browsing.opened(scripts=False) as page:
        page.goto("/sign-in")
        assert not page.get_by_role("button", name="Sign in with a passkey").is_visible()
        assert page.get_by_role("button", name="Sign in", exact=True).is_visible()
