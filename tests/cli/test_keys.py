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


def test_new_key_is_explained_beside_its_secret(service):
    """Standard output is the key alone, for programs; what it is for is on standard error."""
    for arguments, says in (
        (
            ("admin", "--scope", "jobs"),
            ["Created the admin key", "may give the agent jobs", "does not expire", "server"],
        ),
        (("assistant", "--domain", "kite", "--server"), ["ask and search kite", "refused where a web page sends it"]),
        (("assistant", "--domain", "kite", "--expires-days", "7"), ["expires on 20", "Anyone who has it can ask"]),
    ):
        made = service.run("key", "create", "--kind", *arguments)
        assert made.stdout.count("\n") == 1
        assert made.stdout.startswith("docsmith_")
        for words in (*says, "only once"):
            assert words in made.stderr
        assert made.stdout.strip() not in made.stderr


@pytest.mark.parametrize("origin", ["docs.example.com", "localhost:3000"])
def test_origin_without_a_scheme_is_completed_and_said(service, origin):
    says = f"{origin} has no scheme, so it was saved as https://{origin}. For plain HTTP, write http://{origin}."
    made = service.run("key", "create", "--kind", "assistant", "--domain", "kite", "--origin", origin)
    assert says in made.stderr
    changed = service.run("site", "update", "kite", "--origin", origin)
    assert says in changed.stderr
    assert "scheme" not in service.run("site", "update", "kite", "--origin", f"http://{origin}").stderr


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
