"""Projects: what may be registered, and branch names that git accepts."""

import shutil
import subprocess
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.projects.branches import legal_branch
from service.domain.projects.contexts import ContextRepository
from service.domain.projects.decider import Absent, ChangeProject, CreateProject, decide, evolve
from service.domain.projects.hosts import host_kind, lines_url
from service.domain.projects.settings import ProjectSettings
from service.domain.sites import Absent as NoSite
from service.domain.sites import RegisterSite
from service.domain.sites import decide as decide_site
from service.domain.sites import evolve as evolve_site

NOW = datetime(2026, 1, 2, tzinfo=UTC)


CODE = ContextRepository("code", "https://git.example/kite.git")


def create(**changes):
    plain = {
        "organization_id": "org", "name": "Guide", "repository": "https://git.example/guide.git", "ref": "main",
        "docs_folder": "", "domain": "guide", "code_host": "local",
    }  # fmt: skip
    return CreateProject(ProjectSettings(**{**plain, **changes}), NOW)


@pytest.mark.parametrize(
    "changes",
    [
        {"name": " "},
        {"name": "a\nb"},
        {"repository": ""},
        {"repository": "https://user:secret@git.example/guide.git"},
        {"repository": "HTTPS://token@git.example/guide.git"},
        {"ref": "a b"},
        {"ref": "-x"},
        {"docs_folder": "../up"},
        {"docs_folder": "a/.git/b"},
        {"domain": ""},
        {"domain": "../etc"},
        {"domain": "Guide"},
        {"domain": "a/b"},
        {"git_token_env": "ghp_0123 secret"},
        {"labels": ("docs",)},  # the embedded host has none
        {"api_url": "https://git.example/api/v4"},
        {"code_host": "gitlab"},  # without a token
        {"code_host": "gitlab", "git_token_env": "T", "repository": "/srv/guide"},
        {"code_host": "gitlab", "git_token_env": "T", "api_url": "ftp://git.example"},
        {"code_host": "gitlab", "git_token_env": "T", "api_url": "https://token@git.example"},
        {"code_host": "gitlab", "git_token_env": "T", "api_url": "https://git.example/?private_token=x"},
        {"code_host": "gitlab", "git_token_env": "T", "labels": ("a,b",)},
        {"code_host": "gitlab", "git_token_env": "T", "labels": tuple(map(str, range(21)))},
        {"code_host": "gitlab", "git_token_env": "T", "reviewers": ("a/b/c",)},
        {"code_host": "gitlab", "github_app_id": "1", "github_app_key_env": "K"},
        {"code_host": "github", "github_app_id": "1"},
        {"contexts": (CODE, CODE)},
        {"contexts": tuple(replace(CODE, name=f"c{number}") for number in range(21))},
        {"contexts": (replace(CODE, name="../up"),)},
        {"contexts": (replace(CODE, name="Code"),)},
        {"contexts": (replace(CODE, repository="https://secret@git.example/kite.git"),)},
        {"contexts": (replace(CODE, repository="ssh://git.example/kite.git", internal=True),)},
        {"contexts": (replace(CODE, repository="/srv/kite"),)},  # a path, yet not the operator's own word
        {"contexts": (replace(CODE, repository="/srv/kite", internal=True, token_env="T"),)},
        {"contexts": (replace(CODE, ref="a b"),)},
        {"contexts": (replace(CODE, token_env="a token"),)},
        {"contexts": (replace(CODE, token_env="T", token_id="abc"),)},
        {"contexts": (replace(CODE, repository="/srv/kite", internal=True, token_id="abc"),)},
        {"contexts": (CODE,), "code_host": "website", "repository": "https://docs.example/"},
        {"code_host": "github", "github_app_id": "1 or 2", "github_app_key_env": "K"},
        {"code_host": "github", "github_app_id": "1", "github_app_key_env": "K", "git_token_env": "T"},
    ],
)
def test_invalid_project_is_refused(changes):
    with pytest.raises(Invalid):
        decide(create(**changes), Absent())


def test_a_folder_is_kept_in_one_form():
    (event,) = decide(create(docs_folder="./docs//en/"), Absent())
    assert event.docs_folder == "docs/en"
    assert evolve(Absent(), event).docs_folder == "docs/en"


REMOTE = create(code_host="github", git_token_env="T", labels=("docs",))


def changed(*changes, of=REMOTE):
    """The project after the changes, and the last one's events."""
    project, events = Absent(), []
    for command in (of, *changes):
        events = decide(command, project)
        for event in events:
            project = evolve(project, event)
    return project, events


def test_a_change_records_what_changes_and_nothing_else():
    project, (event,) = changed(
        ChangeProject(
            NOW, name="Guide", ref="next", docs_folder="./docs/", labels=("docs", " bot "), reviewers=("@ada",)
        )
    )
    assert (event.ref, event.docs_folder, event.labels, event.reviewers) == ("next", "docs", ("docs", "bot"), ("ada",))
    assert (event.name, event.repository, event.git_token_env) == (None, None, None)
    assert (project.name, project.ref, project.labels, project.git_token_env) == ("Guide", "next", ("docs", "bot"), "T")


def test_a_value_can_be_taken_away():
    project, _ = changed(ChangeProject(NOW, labels=()))
    assert project.labels == ()
    project, _ = changed(ChangeProject(NOW, git_token_env="", github_app_id="7", github_app_key_env="KEY"))
    assert (project.git_token_env, project.github_app_id) == ("", "7")


def test_contexts_are_added_and_removed():
    project, _ = changed(ChangeProject(NOW, contexts=(CODE, replace(CODE, name="api", ref="v2", public=True))))
    assert [context.name for context in project.contexts] == ["code", "api"]
    project, _ = changed(ChangeProject(NOW, contexts=(CODE,)), ChangeProject(NOW, contexts=()))
    assert project.contexts == ()


@pytest.mark.parametrize(
    ("repository", "url"),
    [
        ("https://github.com/acme/kite.git", "https://github.com/acme/kite/blob/c0/src/a%20b.py#L3-L5"),
        ("https://gitlab.example/acme/kite", "https://gitlab.example/acme/kite/-/blob/c0/src/a%20b.py#L3-5"),
        ("https://codeberg.org/acme/kite", "https://codeberg.org/acme/kite/src/commit/c0/src/a%20b.py#L3-L5"),
        ("https://bitbucket.org/acme/kite", "https://bitbucket.org/acme/kite/src/c0/src/a%20b.py#lines-3:5"),
        ("https://code.example/acme/kite", ""),
        ("/srv/github/kite", ""),
    ],
)
def test_lines_have_the_address_of_their_host(repository, url):
    assert lines_url(repository, host_kind(repository), "c0", "src/a b.py", (3, 5)) == url


def test_change_to_the_same_values_records_nothing():
    assert changed(ChangeProject(NOW, ref="main", labels=("docs", "docs")))[1] == []


@pytest.mark.parametrize("change", [{"ref": "a b"}, {"git_token_env": ""}, {"repository": "/srv/guide"}])
def test_change_to_an_invalid_value_is_refused(change):
    with pytest.raises(Invalid):
        changed(ChangeProject(NOW, **change))


def test_the_repository_of_the_embedded_host_stays():
    with pytest.raises(Conflict):
        changed(ChangeProject(NOW, repository="https://git.example/other.git"), of=create())


def test_missing_project_cannot_be_changed():
    with pytest.raises(NotFound):
        decide(ChangeProject(NOW, ref="next"), Absent())


def test_a_domain_belongs_to_the_first():
    (registered,) = decide_site(RegisterSite("one", "org", NOW), NoSite())
    with pytest.raises(Conflict) as refused:
        decide_site(RegisterSite("two", "org", NOW), evolve_site(NoSite(), registered))
    assert refused.value.code == "domain_taken"


@given(st.text(max_size=60) | st.text("-./@{\\lock", max_size=20))
@example("docs: new/page.lock")
@example("-/main")
@example("-.x")
@example("a..b")
@example("@{")
@example("HEAD")
@example("/.lock/")
@example("refs/heads/-/x")
def test_a_made_legal_branch_is_legal_and_stays_as_it_is(name):
    legal = legal_branch(name)
    assert legal_branch(legal) == legal
    assert legal
    assert ".." not in legal
    assert "@{" not in legal
    assert not legal.startswith(("/", "-", "."))
    assert not legal.endswith(("/", ".", ".lock"))


@pytest.mark.skipif(shutil.which("git") is None, reason="asks git itself; install git to run it")
@pytest.mark.parametrize(
    "name",
    ["docs: new page", "a..b", "x.lock", "a/b.lock/c", "@", "@{u}", "a\\b", "~^:?*[", "-n", "é", "a//b/", ".a", "a."],
)
def test_git_accepts_what_was_made_legal(name):
    done = subprocess.run(["git", "check-ref-format", "--branch", legal_branch(name)], capture_output=True, check=False)
    assert done.returncode == 0


def test_each_part_of_a_branch_fits_a_file_system():
    assert legal_branch("docs/" + "é" * 190 + "/x") == "docs/" + "é" * 120 + "/x"


def test_the_whole_name_of_a_branch_is_that_branch():
    assert legal_branch("refs/heads/docs/x") == legal_branch("refs/heads/refs/heads/docs/x") == "docs/x"
    assert legal_branch("refs/heads/HEAD") == legal_branch("refs/heads") == "docs/update"


@pytest.mark.parametrize("name", ["main", "docs/add-retry", "feature/x_1.2", "fix@home"])
def test_a_legal_name_is_kept(name):
    assert legal_branch(name) == name
