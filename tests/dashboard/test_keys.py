"""The pages of keys: created once, shown once, changed and revoked by owners alone."""

import asyncio
import html
import json
import re
import subprocess
import tempfile
from datetime import UTC, datetime, timedelta

import pytest
from yarl import URL

from eventstore import Metadata
from service.commands.access.keys import NewKey, create_key, revoke_key
from tests.dashboard.conftest import open_data

FORM = {"kind": "admin", "name": "CI", "scope": "read", "expires": "30", "addresses": ""}
ASSISTANT = {
    "kind": "assistant", "name": "Web", "use": "browser", "site-kite": "true", "expires": "",
    "origins": "docs.example.com\n\nhttps://*.example.org",
}  # fmt: skip


@pytest.fixture
def path(service):
    return f"/dashboard/{service.organization_id}/keys"


async def filled(client, path, fields=FORM):
    """The fields of the form, with the id that its page gave it."""
    async with client.get(f"{path}/new?kind={fields['kind']}") as page:
        found = re.search(r'name="id" value="([0-9a-f]{32})"', await page.text())
        return {**fields, "id": found[1]}


async def test_created_key_is_shown_once(owner, path):
    fields = await filled(owner, path)
    async with owner.post(path, data=fields) as answer:
        assert answer.status == 200
        assert answer.headers["Cache-Control"] == "no-store"
        token = re.search(r"docsmith_[0-9A-Za-z]{36}", await answer.text())[0]
    for address in (path, f"{path}/{fields['id']}"):
        async with owner.get(address) as page:
            text = await page.text()
            assert token not in text
            assert token[-4:] in text
    async with owner.post(path, data=fields) as again:
        assert again.status == 409
        assert token not in await again.text()


@pytest.mark.parametrize("fields", [FORM, ASSISTANT | {"use": "open"}, ASSISTANT], ids=["admin", "open", "browser"])
async def test_shown_commands_work_when_pasted(owner, path, fields):
    async with owner.post(path, data=await filled(owner, path, fields)) as answer:
        commands = [html.unescape(one) for one in re.findall(r"<code>([^<]*curl -sS[^<]+)</code>", await answer.text())]
    script = "\n".join(f"{one} -f -o answer" if one.startswith("curl") else one for one in commands)
    assert len(commands) == (1 if fields["kind"] == "admin" else 2 if fields["use"] == "open" else 3)
    with tempfile.TemporaryDirectory() as folder:
        done = await asyncio.to_thread(
            subprocess.run, ["sh", "-euc", script], cwd=folder, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, (script, done.stderr)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"name": ""}, "A name has 1 to 200"),
        ({"scope": "everything"}, "what the key may do"),
        ({"expires": "8"}, "an expiry"),
        ({"addresses": "example.com"}, "192.0.2.0/24"),
        ({"kind": "assistant", "use": "open"}, "at least one site"),
        ({"kind": "assistant", "use": "browser", "site-kite": "true"}, "Name the websites"),
    ],
)
async def test_form_that_does_not_fit_keeps_what_was_typed(owner, path, fields, says):
    async with owner.post(path, data=await filled(owner, path, FORM | {"name": "Typed"} | fields)) as answer:
        text = await answer.text()
        assert answer.status == 400
        assert says in text
        assert 'value="Typed"' in text or fields.get("name") == ""


async def test_assistant_key_for_web_pages_needs_reader_tokens(owner, path):
    fields = await filled(owner, path, ASSISTANT)
    async with owner.post(path, data=fields) as answer:
        assert answer.status == 200
        assert "https://docs.example.com, https://*.example.org" in await answer.text()
        tag = html.unescape(await answer.text())
        assert 'sdk/assistant.js";' in tag
        assert re.search(r'widget\.js" data-site="kite" data-key="docsmith_dsc_[0-9A-Za-z]{36}" async>', tag)
        assert re.search(r'createAssistant\({ site: "kite", key: "docsmith_dsc_[0-9A-Za-z]{36}" }\);', tag)
    async with owner.get(f"{path}/{fields['id']}") as page:
        assert "Require reader tokens" not in await page.text()


@pytest.mark.parametrize(
    ("fields", "address"),
    [
        (FORM, None),
        (FORM | {"scope": "jobs"}, "/mcp"),
        (ASSISTANT, None),
        (ASSISTANT | {"use": "server"}, "/mcp/kite"),
        (ASSISTANT | {"use": "open"}, "/mcp/kite"),
    ],
    ids=["read", "jobs", "browser", "server", "open"],
)
async def test_new_key_is_shown_with_what_it_opens(owner, service, path, fields, address):
    async with owner.post(path, data=await filled(owner, path, fields)) as answer:
        text = html.unescape(await answer.text())
    token = re.search(r"docsmith_(?:dsc_)?[0-9A-Za-z]{36}", text)[0]
    entries = re.findall(r'<code>({\s+"mcpServers".*?)</code>', text, re.DOTALL)
    copied = re.findall(r'data-copy="([^"\n]+)"', text)
    assert (service.project_id if fields["kind"] == "admin" else "kite") in copied
    if address is None:
        assert entries == []
    else:
        (server,) = json.loads(entries[0])["mcpServers"].values()
        assert URL(server["url"]).path == address
        assert server["headers"] == {"Authorization": f"Bearer {token}"}


async def test_key_is_renamed_and_revoked(owner, path):
    fields = await filled(owner, path)
    await owner.post(path, data=fields)
    key = f"{path}/{fields['id']}"
    async with owner.post(key, data={"name": "Renamed", "addresses": "192.0.2.1"}) as page:
        text = await page.text()
        assert "The key is changed." in text or page.url.path == key
        assert "192.0.2.1/32" in text
    async with owner.post(key, data={"name": "Renamed again"}) as page:
        assert "192.0.2.1/32" in await page.text()  # what a form leaves out stays
    async with owner.post(f"{key}/revoke") as page:
        assert page.url.path == path
    async with owner.get(key) as page:
        assert "revoked" in await page.text()


@pytest.mark.parametrize(("query", "chosen"), [("kind=assistant", ""), ("kind=assistant&use=server", "90"), ("", "90")])
async def test_keys_for_web_pages_do_not_expire_by_themselves(owner, path, query, chosen):
    text = await (await owner.get(f"{path}/new?{query}")).text()
    expires = re.search(r'name="expires".*?</select>', text, re.DOTALL)[0]
    assert re.findall(r'value="(\d*)" selected', expires) == [chosen]


async def test_start_warns_owners_before_a_key_expires(service, owner, editor):
    day = timedelta(days=1)
    lifetimes = {"Soon": 13 * day, "Later": 15 * day, "Without end": None, "Revoked": 3 * day}
    async with open_data(service.data) as runtime:
        for name, lifetime in lifetimes.items():
            expires_at = None if lifetime is None else datetime.now(UTC) + lifetime
            new = NewKey("assistant", service.organization_id, f"{name} to expire", (service.domain,), expires_at,
                         allowed_origins=("https://docs.example.com",))  # fmt: skip
            made = await create_key(runtime.store, runtime.views, new, Metadata("cli:tests"))
            if name == "Revoked":
                await revoke_key(runtime.store, made.id, Metadata("cli:tests"))
    start = f"/dashboard/{service.organization_id}"
    text = await (await owner.get(start)).text()
    assert re.findall(r"(\w[\w ]*) to expire</a> expires on", text) == ["Soon"]
    assert f"keys/new?kind=assistant&amp;site={service.domain}&amp;use=browser" in text
    assert "to expire" not in await (await editor.get(start)).text()
