"""Every page in Chromium: what axe finds in light and dark, the policy, other origins, the width of a phone."""

from dataclasses import dataclass

import pytest

from tests.dashboard.browsing import SIZES
from tests.dashboard.entities import archived_job, made
from tests.dashboard.served import LEAST, OPERATOR, filled
from tests.dashboard.test_first_run import archive

pytestmark = pytest.mark.slow

NO_PAGES = {
    "/favicon.ico",
    "/operator/audit/export",
    "/assets/{name}",
    "/manual/images/{name}",
    "/sdk/{name}",
    "/widget.js",
    "/widget/{name}.js",
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
    """What axe finds in light, and of colors in dark, and by how many pixels the page is too wide for a phone."""
    found = [f"light: {one}" for one in axe(page)]
    page.emulate_media(color_scheme="dark")
    found += [f"dark: {one}" for one in axe(page, colors_only=True)]
    page.set_viewport_size(SIZES["phone"])
    wide = page.evaluate(OVERFLOW)
    return found + ([f"{wide} pixels too wide for a phone"] if wide > 0 else [])


@pytest.mark.parametrize("path", PATHS)
def test_page_is_accessible_and_keeps_the_policy(browsing, axe, entities, path):
    with browsing.opened(person_for(path)) as page:
        answer = page.goto(filled(path, **entities.values))
        assert answer.status == (403 if path.endswith("/callback") else 200)
        assert problems_of(page, axe) == []


@pytest.mark.parametrize(
    "path",
    ["questions?text=certificates", "questions?text=zzqxv", "jobs?only=archived", "sites/{domain}/search?q=delay"],
)
def test_list_with_a_choice_is_accessible(browsing, axe, service, entities, path):
    archived_job(service)
    with browsing.opened("owner") as page:
        chosen = path.replace("{domain}", service.domain)
        assert page.goto(f"/dashboard/{service.organization_id}/{chosen}").status == 200
        assert problems_of(page, axe) == []


@dataclass
class Sent:
    """A form that a person fills in, and the words of the page that answers it."""

    path: str
    fields: dict[str, str]
    button: str
    words: str
    """Empty where the page says in its own words why it was refused."""
    person: str = "owner"


BELOW = "/dashboard/{organizationId}"
GOLDEN = """{"query": "How is the delay between two tries set?", "relevant": ["retry.md"]}
{"query": "How long is a piece of string?", "relevant": ["index.md"]}"""
SENT = {
    "admin key created": Sent(f"{BELOW}/keys/new", {"Name": "Looked at"}, "Create the key", "Copy the key"),
    "assistant key created": Sent(
        f"{BELOW}/keys/new?kind=assistant&use=server&site={{domain}}",
        {"Name": "Looked at, too"},
        "Create the key",
        "Copy the key",
    ),
    "webhook created": Sent(
        f"{BELOW}/webhooks/new", {"Address": "https://hooks.example/seen"}, "Create the webhook", "Copy the secret now"
    ),
    "invitation": Sent(f"{BELOW}/people", {"Email": "invited@example.com"}, "Invite", "Sign-in link for"),
    "test questions": Sent(
        f"{BELOW}/sites/{{domain}}/golden", {"Questions": GOLDEN}, "Ask them", "Right page not among the first five"
    ),
    "test questions refused": Sent(f"{BELOW}/sites/{{domain}}/golden", {"Questions": "{"}, "Ask them", ""),
    "job reproduced": Sent(
        "/operator/audit/reproduce", {"Job": "{jobId}"}, "Reproduce", "Each commit has the id", "operator"
    ),
    "no job reproduced": Sent(
        "/operator/audit/reproduce", {"Job": "nothing"}, "Reproduce", "Job not found: nothing.", "operator"
    ),
    "log checked": Sent("/operator/audit/verify", {}, "Verify", "Every event is as it was recorded.", "operator"),
    "job refused": Sent(
        f"{BELOW}/jobs/new", {"Instruction": " ", "Branch": "no such..branch"}, "Create the job", "Write what the agent"
    ),
    "project refused": Sent(
        f"{BELOW}/projects/new?from=git", {"Repository": "https://127.0.0.1:1/x.git"}, "Create the project", ""
    ),
    "webhook refused": Sent(f"{BELOW}/webhooks/new", {"Address": "http://127.0.0.1/"}, "Create the webhook", ""),
}


@pytest.mark.parametrize("name", SENT)
def test_answer_to_a_form_is_accessible(browsing, axe, entities, name):
    sent = SENT[name]
    with browsing.opened(sent.person) as page:
        page.goto(filled(sent.path, **entities.values))
        for label, text in sent.fields.items():
            page.get_by_label(label).first.fill(filled(text, **entities.values))
        page.get_by_role("button", name=sent.button).click()
        answered = page.get_by_text(sent.words) if sent.words else page.get_by_role("alert")
        answered.first.wait_for()
        assert problems_of(page, axe) == []


def test_project_of_an_upload_is_accessible(browsing, axe, service):
    with browsing.opened("owner") as page:
        page.goto(f"/dashboard/{service.organization_id}/projects/new?from=upload")
        page.get_by_label("Project name", exact=True).fill("Sent to be looked at")
        page.get_by_text("More settings").click()
        page.get_by_label("Address of the site").fill("https://docs.example.com")
        file = {"name": "kite.zip", "mimeType": "application/zip", "buffer": archive()}
        page.get_by_label("Zip archive").set_input_files(file)
        page.get_by_role("button", name="Create the project").click()
        page.get_by_text("The project is created.").wait_for()
        page.goto(f"/dashboard/{service.organization_id}/sites/sent-to-be-looked-at/project")
        page.locator("input[type=file]").wait_for()
        assert page.get_by_label("Address of the site").input_value() == "https://docs.example.com"
        assert problems_of(page, axe) == []


def test_bound_of_a_site_is_saved_in_its_row(browsing, axe, service):
    with browsing.opened("owner") as page:
        page.goto(f"/dashboard/{service.organization_id}/usage")
        row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=service.domain, exact=True))
        bound = row.get_by_label(f"Cost limit of {service.domain}")
        bound.fill("2.5")
        row.get_by_role("button", name="Save").click()
        row.get_by_text("$2.50").wait_for()
        assert bound.input_value() == "2.5"
        bound.fill("two")
        row.get_by_role("button", name="Save").click()
        assert bound.evaluate("(one) => one.validity.patternMismatch")
        assert problems_of(page, axe) == []
        bound.fill("")
        bound.press("Enter")
        row.get_by_text("$2.50").wait_for(state="detached")
    assert service.cli("project", "show", service.project_id)["maxCostUsdDay"] == 0


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
