"""Every page in Chromium: what axe finds in light and dark, the policy, other origins, the width of a phone."""

import pytest

from tests.dashboard.browsing import SIZES
from tests.dashboard.entities import made
from tests.dashboard.served import LEAST, OPERATOR, filled

pytestmark = pytest.mark.slow

NO_PAGES = {
    "/favicon.ico",
    "/operator/audit/export",
    "/assets/{name}",
    "/manual/images/{name}",
    "/sdk/{name}",
    "/sign-in/oidc",
}
PATHS = [
    path
    for method, _, path in (route.partition(" ") for route in LEAST)
    if method == "GET" and path not in NO_PAGES and not path.endswith(("/live", "/stream", "/{number}"))
]
OVERFLOW = "() => document.scrollingElement.scrollWidth - innerWidth"


@pytest.fixture(scope="module")
def entities(service, people):
    return made(service)


@pytest.fixture(scope="module")
def browsing(entities, browsing):  # what has no page yet is made before the browser holds the thread's event loop
    return browsing


def person_for(path):
    least = LEAST[f"GET {path}"]
    return "operator" if least == OPERATOR else "" if path.startswith("/sign-in") else "owner"


def problems_of(page, axe):
    """What axe finds in light and in dark, and by how many pixels the page is too wide for a phone."""
    found = [f"light: {one}" for one in axe(page)]
    page.emulate_media(color_scheme="dark")
    found += [f"dark: {one}" for one in axe(page)]
    page.set_viewport_size(SIZES["phone"])
    wide = page.evaluate(OVERFLOW)
    return found + ([f"{wide} pixels too wide for a phone"] if wide > 0 else [])


@pytest.mark.parametrize("path", PATHS)
def test_page_is_accessible_and_keeps_the_policy(browsing, axe, entities, path):
    with browsing.opened(person_for(path)) as page:
        answer = page.goto(filled(path, **entities.values))
        assert answer.status == (403 if path.endswith("/callback") else 200)
        assert problems_of(page, axe) == []


@pytest.mark.parametrize("part", ["", "/job"])
def test_pull_request_page_is_accessible_and_keeps_the_policy(browsing, axe, entities, part):
    with browsing.opened("editor") as page:
        assert page.goto(f"{entities.pull_request}{part}").status == 200
        assert problems_of(page, axe) == []


@pytest.mark.parametrize("path", ["/nowhere", "/dashboard/nowhere/jobs", "/sign-in#wrong"])
def test_error_page_is_accessible_and_keeps_the_policy(browsing, axe, path):
    with browsing.opened("owner") as page:
        page.goto(path)
        assert problems_of(page, axe) == []
