"""Folders that an operator allows, and takes back."""

from datetime import UTC, datetime

import pytest

from service.domain.allowed_folders import (
    MAX_FOLDERS,
    AllowedFolders,
    AllowFolder,
    DisallowFolder,
    FolderAllowed,
    FolderDisallowed,
    decide,
    evolve,
)
from service.domain.errors import Conflict, Invalid

NOW = datetime(2026, 1, 2, tzinfo=UTC)
ONE = AllowedFolders(("/srv/docs",))


def test_folder_is_allowed_once_and_taken_back():
    allowed = decide(AllowFolder("/srv/docs", NOW), AllowedFolders())
    assert allowed == [FolderAllowed("/srv/docs", NOW)]
    assert evolve(AllowedFolders(), allowed[0]) == ONE
    assert decide(AllowFolder("/srv/docs", NOW), ONE) == []
    assert decide(DisallowFolder("/srv/docs", NOW), ONE) == [FolderDisallowed("/srv/docs", NOW)]
    taken_back = evolve(ONE, FolderDisallowed("/srv/docs", NOW))
    assert taken_back == AllowedFolders((), ("/srv/docs",))
    assert evolve(taken_back, allowed[0]) == ONE
    assert decide(DisallowFolder("/srv", NOW), ONE) == []


@pytest.mark.parametrize("folder", ["", "docs", "../docs", "/", "//", "/a\nb", "/" + "a" * 1_000])
def test_what_is_no_folder_is_not_allowed(folder):
    with pytest.raises(Invalid):
        decide(AllowFolder(folder, NOW), AllowedFolders())


def test_allowed_folders_have_a_limit():
    full = AllowedFolders(tuple(f"/srv/{number}" for number in range(MAX_FOLDERS)))
    assert decide(AllowFolder("/srv/1", NOW), full) == []
    with pytest.raises(Conflict):
        decide(AllowFolder("/srv/another", NOW), full)
