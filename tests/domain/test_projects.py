"""Projects: what may be registered, and branch names that git accepts."""

import shutil
import subprocess
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.domain.errors import Conflict, Invalid
from service.domain.projects import Absent, CreateProject, decide, evolve, legal_branch
from service.domain.sites import Absent as NoSite
from service.domain.sites import RegisterSite
from service.domain.sites import decide as decide_site
from service.domain.sites import evolve as evolve_site

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def create(**changes):
    plain = {
        "organization_id": "org", "name": "Guide", "repository": "https://git.example/guide.git", "ref": "main",
        "docs_folder": "", "domain": "guide", "code_host": "local", "now": NOW,
    }  # fmt: skip
    return CreateProject(**{**plain, **changes})


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
    ],
)
def test_what_cannot_be_a_project_is_refused(changes):
    with pytest.raises(Invalid):
        decide(create(**changes), Absent())


def test_a_folder_is_kept_in_one_form():
    (event,) = decide(create(docs_folder="./docs//en/"), Absent())
    assert event.docs_folder == "docs/en"
    assert evolve(Absent(), event).docs_folder == "docs/en"


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


@pytest.mark.parametrize("name", ["main", "docs/add-retry", "feature/x_1.2", "fix@home"])
def test_a_legal_name_is_kept(name):
    assert legal_branch(name) == name
