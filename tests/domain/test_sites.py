"""Who may ask a site without a key, and what that leaves alone."""

from datetime import UTC, datetime

import pytest

from service.domain.errors import Invalid, NotFound
from service.domain.sites import (
    Absent,
    ChangeSiteAccess,
    ChangeSiteWidget,
    IndexRequested,
    SiteAccessChanged,
    SiteIndexed,
    SiteRegistered,
    SiteWidgetChanged,
    UpdateSite,
    decide,
    evolve,
)
from service.domain.widget import Widget, WidgetChange

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


def widget(**values):
    return ChangeSiteWidget(WidgetChange(**values), NOW)


def test_widget_keeps_values_that_are_left_out():
    (first,) = decide(widget(title=" Ask us ", suggestions=("How?", "", "How?"), accent="#0B6"), site())
    assert first.widget == Widget("Ask us", suggestions=("How?",), accent="#00bb66")
    (second,) = decide(widget(hand_off="help@example.com", title=""), site(first))
    assert second.widget == Widget("", suggestions=("How?",), hand_off="mailto:help@example.com", accent="#00bb66")
    assert decide(widget(title=""), site(first, second)) == []


@pytest.mark.parametrize(
    "address",
    [
        "https://example.com/help?ref={threadId}",
        "http://localhost:8080/a",
        "mailto:help@example.com",
    ],
)
def test_hand_off_address_is_kept_as_it_is(address):
    (changed,) = decide(widget(hand_off=address), site())
    assert changed.widget.hand_off == address


@pytest.mark.parametrize(
    "values",
    [
        {"hand_off": "javascript:alert(1)"},
        {"hand_off": "//example.com"},
        {"hand_off": "https://user:word@example.com"},
        {"hand_off": "https://example.com:99999/"},
        {"hand_off": "https://exa mple.com"},
        {"hand_off": "mailto:a@example.com?bcc=b@example.com"},
        {"hand_off": "data:text/html,x"},
        {"title": "a\nb"},
        {"title": "x" * 81},
        {"greeting": "x" * 501},
        {"suggestions": tuple(f"{n}?" for n in range(7))},
        {"accent": "red"},
        {"accent": "#12345"},
        {"accent": "#123456;color:red"},
    ],
)
def test_widget_refuses_values_that_do_not_fit(values):
    with pytest.raises(Invalid):
        decide(widget(**values), site())


def test_site_is_updated_as_a_whole_or_not():
    assert [type(one) for one in decide(UpdateSite(OPEN, widget(title="Ask")), site())] == [
        SiteAccessChanged,
        SiteWidgetChanged,
    ]
    with pytest.raises(Invalid):
        decide(UpdateSite(OPEN, widget(accent="red")), site())
