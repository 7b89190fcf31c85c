"""``docsmith key``, beside the service or without one."""

import pytest

from tests.service_process import service_in, write_docs


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    with service_in(folder) as service:
        service.set_up(write_docs(folder / "docs"), index=False)
        yield service


def test_the_lists_of_a_key_are_kept_in_one_form_and_replaced(service):
    made = service.cli(
        "key", "create", "--kind", "assistant", "--domain", "kite", "--address", "192.0.2.9/24", "--origin",
        "docs.example.com", "--expires-days", "7",
    )  # fmt: skip
    shown = service.cli("key", "show", made["id"])
    assert shown["allowedAddresses"] == ["192.0.2.0/24"]
    assert shown["allowedOrigins"] == ["https://docs.example.com"]
    assert shown["expiresAt"] > shown["createdAt"]
    changed = service.cli("key", "update", made["id"], "--name", "Shop", "--any-origin")
    assert (changed["name"], changed["allowedOrigins"]) == ("Shop", [])
    assert changed["allowedAddresses"] == ["192.0.2.0/24"]
    said = service.run("key", "show", made["id"]).stdout
    assert "every website may use this key" in said
    assert made["token"] not in said
    assert made["token"][-4:] in said


def test_admin_key_has_the_scope_that_was_chosen(service):
    made = service.cli("key", "create", "--kind", "admin", "--scope", "jobs")
    assert service.cli("key", "show", made["id"])["scope"] == "jobs"
    assert "scope:        jobs" in service.run("key", "show", made["id"]).stdout


def test_key_shows_who_calls_with_it(service):
    made = service.cli("key", "create", "--kind", "assistant", "--domain", "kite", "--origin", "docs.example.com")
    assert (made["use"], made["readerTokens"]) == ("browser", True)
    changed = service.cli("key", "update", made["id"], "--no-reader-tokens")
    assert (changed["use"], changed["readerTokens"]) == ("browser", False)
    says = service.run("doctor").stdout
    assert f"docsmith key update {made['id']} --reader-tokens" in says
    assert service.cli("key", "update", made["id"], "--reader-tokens")["readerTokens"] is True
    assert f"docsmith key update {made['id']} --reader-tokens" not in service.run("doctor").stdout
    server = service.cli("key", "create", "--kind", "assistant", "--domain", "kite", "--server")
    assert (server["use"], server["readerTokens"]) == ("server", False)
    assert "no web page may use this key" in service.run("key", "show", server["id"]).stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("create", "--kind", "admin", "--origin", "https://x.example"), "browser"),
        (("create", "--kind", "admin", "--address", "example.com"), "192.0.2.0/24"),
        (("create", "--kind", "assistant", "--domain", "kite", "--origin", "*.com"), "https://*.example.com"),
        (("create", "--kind", "assistant", "--domain", "kite", "--scope", "read"), "has no scope"),
        (("create", "--kind", "admin", "--server"), "for servers already"),
        (
            ("create", "--kind", "assistant", "--domain", "kite", "--server", "--origin", "https://a.example"),
            "no web page",
        ),
        (("create", "--kind", "assistant", "--domain", "kite", "--reader-tokens"), "need origins"),
        (("show", "nothing"), "docsmith key list"),
        (("update", "nothing", "--name", "x"), "docsmith key list"),
    ],
)
def test_invalid_list_is_reported(service, arguments, says):
    done = service.run("key", *arguments)
    assert done.returncode == 1
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
