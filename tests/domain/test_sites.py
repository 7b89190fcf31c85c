"""Who may ask a site without a key, and what that leaves alone."""

from datetime import UTC, datetime

import pytest

from service.domain.errors import Invalid, NotFound
from service.domain.sites import (
    Absent,
    ChangeSiteAccess,
    IndexRequested,
    SiteAccessChanged,
    SiteIndexed,
    SiteRegistered,
    decide,
    evolve,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
OPEN = ChangeSiteAccess(NOW, public=True, origins=("docs.example.com",))


def site(*events):
    state = Absent()
    for event in (SiteRegistered("p", "o", NOW), *events):
        state = evolve(state, event)
    return state


def test_site_is_opened_once_with_its_origins():
    (opened,) = decide(OPEN, site())
    assert opened == SiteAccessChanged(True, ("https://docs.example.com",), NOW)
    assert decide(OPEN, site(opened)) == []
    (closed,) = decide(ChangeSiteAccess(NOW, public=False), site(opened))
    assert closed == SiteAccessChanged(False, ("https://docs.example.com",), NOW)


def test_opened_site_keeps_its_index_and_stays_open():
    indexed = SiteIndexed("c", "f", 1, 1, (), 0, 0.1, NOW)
    state = site(indexed, *decide(OPEN, site()), IndexRequested("a push", NOW))
    assert (state.public, state.commit, state.index_wanted) == (True, "c", True)


@pytest.mark.parametrize("origin", ["*", "https://*", "https://*.com", "ftp://a.example", "https://a.example/path"])
def test_origin_must_be_one(origin):
    with pytest.raises(Invalid):
        decide(ChangeSiteAccess(NOW, public=True, origins=(origin,)), site())


def test_unknown_site_cannot_be_opened():
    with pytest.raises(NotFound):
        decide(OPEN, Absent())
