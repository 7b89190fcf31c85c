"""The pages of jobs in Chromium: news shows by itself, typed text stays, and all of it works without scripts."""

import json
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from tests.dashboard.conftest import COOKIE, post_form
from tests.dashboard.entities import opened_pull_request
from tests.dashboard.test_jobs import jobs_of

pytestmark = pytest.mark.slow


def give(service, people, prompt, **fields):
    """The path of a new job's page."""
    cookie = {"Cookie": f"{COOKIE}={people.cookies['editor']}"}
    sent = {"project": service.project_id, "prompt": prompt, **fields}
    answer = post_form(f"{service.url}{jobs_of(service)}/new", sent, cookie)
    assert answer.status == 303, answer.text
    return f"{jobs_of(service)}/{answer.headers['Location'].rsplit('/', 1)[1]}"


def send(service, path, prompt):
    """Send a message by the API."""
    url = f"{service.url}/v2/agent/{service.project_id}/job/{path.rsplit('/', 1)[1]}/message"
    body = json.dumps({"prompt": prompt}).encode()
    headers = {**service.admin, "Content-Type": "application/json"}
    with urlopen(Request(url, body, headers), timeout=60) as answer:
        assert answer.status == 200


def test_steps_come_by_themselves_and_typed_text_stays(browsing, service, people):
    path = give(service, people, "Document the kites", model="away")
    with browsing.opened("editor") as page:
        page.goto(path)
        page.locator("#job-state-head", has_text="Waiting").wait_for()
        page.fill("#field-text", "Half a sentence")
        send(service, path, "Mention the string, too")
        page.locator("#steps li.said", has_text="Mention the string, too").wait_for()
        assert page.locator("#steps li", has_text="Mention the string, too").count() == 1
        assert page.input_value("#field-text") == "Half a sentence"
        page.locator("#actions summary", has_text="Cancel").click()
        page.get_by_role("button", name="Cancel the job").click()
        page.locator("#job-state-head", has_text="Cancelled").wait_for()
        page.get_by_role("button", name="Retry").click()
        page.locator("#job-state-head", has_text="Waiting").wait_for()


def test_form_pressed_twice_is_sent_once(browsing, service, people):
    with browsing.opened("editor") as page:
        page.goto(f"{jobs_of(service)}/new")
        page.get_by_label("Instruction").fill("Look at the pressed kite")
        sent = []
        page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
        page.evaluate("""() => {
          const form = document.querySelector("main form");
          form.requestSubmit();
          setTimeout(() => form.requestSubmit());
        }""")
        page.get_by_role("heading", name="Look at the pressed kite").first.wait_for()
        assert len(sent) == 1


def test_merge_pressed_twice_is_sent_once(browsing, service, people):
    _, address = opened_pull_request(service, 'Append "Kites are pressed twice." to index.md')
    with browsing.opened("editor") as page:
        page.goto(address)
        sent = []
        page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
        page.evaluate("""() => {
          const form = document.querySelector("form[action$='/merge']");
          form.requestSubmit();
          setTimeout(() => form.requestSubmit());
        }""")
        page.get_by_text("so the job opens another one").wait_for()
        assert len(sent) == 1


def test_new_job_appears_in_an_open_list(browsing, service, people):
    with browsing.opened("viewer") as page:
        page.goto(jobs_of(service))
        give(service, people, "Look at the newest kite")
        page.get_by_role("link", name="Look at the newest kite").wait_for()


def test_job_is_given_and_merged_without_scripts(browsing, service, people):
    with browsing.opened("editor", size="phone", scripts=False) as page:
        page.goto(f"{jobs_of(service)}/new")
        page.fill("#field-prompt", 'Append "Kites need no script." to index.md')
        page.get_by_role("button", name="Create the job").click()
        for _ in range(200):
            if page.locator("#job-state-head", has_text="Ready for review").count():
                break
            page.reload()
        page.locator("summary", has_text="Merge").click()
        page.get_by_role("button", name="Merge into main").click()
        page.locator("#job-state-head", has_text="Merged").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_pages_are_accessible(browsing, service, people, axe, scheme, size):
    path = give(service, people, 'Append "Kites are for all." to index.md')
    with browsing.opened("editor", scheme=scheme, size=size) as page:
        page.goto(path)
        link = page.get_by_role("link", name="Pull request")
        link.wait_for()
        pull_request = urlsplit(link.get_attribute("href")).path
        more = f"{path}/changes", f"{path}/requests", f"{path}/requests?number=1"
        for address in (path, jobs_of(service), f"{jobs_of(service)}/new", *more, pull_request):
            page.goto(address)
            assert axe(page, colors_only=scheme == "dark") == []
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_page_of_a_pull_request_follows_its_job(browsing, service, people, axe):
    path = give(service, people, 'Append "Kites are followed." to index.md')
    with browsing.opened("editor", size="phone") as page:
        page.goto(path)
        page.locator("#job-state-head", has_text="review").or_(
            page.get_by_role("link", name="Review it")
        ).first.wait_for()
        branch = service.cli("job", "show", path.rsplit("/", 1)[1])
        page.goto(urlsplit(branch["prLink"]).path)
        page.get_by_role("heading", name="Ready to merge").wait_for()
        page.fill("#comment-text", "Half a sentence")
        other = give(service, people, "Go on with it", model="away", branch=branch["branch"])
        page.get_by_role("heading", name="A job is changing it").wait_for()
        assert page.get_by_role("button", name="Merge into main").count() == 0
        assert page.input_value("#comment-text") == "Half a sentence"
        assert axe(page) == []
        service.cli("job", "cancel", other.rsplit("/", 1)[1])
        page.get_by_role("heading", name="Ready to merge").wait_for()
        send(service, path, 'Append "Kites are followed on." to retry.md')
        page.locator("#all-files", has_text="Kites are followed on.").wait_for()
        page.get_by_role("button", name="Close without merging").click()
