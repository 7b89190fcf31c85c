"""The flows of the code hosts without a network: each request in order, and what each answer makes of it.

GitHub's words are those of its documentation and of well-known replies; its emulator does not refuse what it does.
"""

import json
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec.structs import replace

from service.adapters.code_hosts import gitea as gitea_protocol
from service.adapters.code_hosts import github as github_protocol
from service.adapters.code_hosts import gitlab as gitlab_protocol
from service.adapters.code_hosts.comments import MAX_LIST_BYTES, Pages, answered, has_no_next_link
from service.adapters.code_hosts.github import GitHubApi, installation_token
from service.adapters.code_hosts.protocol import ApiAnswer, ApiCalls, Edited, NoAnswer, opened, updated
from service.domain.errors import Conflict, Forbidden, Invalid, NotFound, Unavailable
from service.ports.review_host import NewAnswer, text_of
from tests.contracts.code_host import NEW

REPOSITORY = "https://github.com/octo/guide.git"
PLACE = github_protocol.repository_address(REPOSITORY, "")


def pull(**changes):
    here = {"repo": {"full_name": "octo/guide"}}
    return {
        "number": 5, "html_url": "https://github.com/octo/guide/pull/5", "title": NEW.title, "body": NEW.body,
        "state": "open", "draft": False, "merged_at": None,
        "head": {"ref": "docs/one", **here}, "base": {"ref": "main", **here}, **changes,
    }  # fmt: skip


def says(status, body, **headers):
    return ApiAnswer(status, headers, json.dumps(body).encode())


def invalid(*errors):
    return says(422, {"message": "Validation Failed", "errors": list(errors), "documentation_url": "https://docs"})


EXISTS = invalid({"resource": "PullRequest", "code": "custom", "message": "A pull request already exists for octo:x."})
NOTHING = says(200, [])


def run(steps, *answers):
    """The flow's result, and its requests. An answer that is an exception is thrown in, as the sender does."""
    requests, coming = [], iter(answers)
    try:
        request = next(steps)
        while True:
            requests.append(request)
            answer = next(coming)
            request = steps.throw(answer) if isinstance(answer, Exception) else steps.send(answer)
    except StopIteration as end:
        assert next(coming, None) is None, "not all answers were asked for"
        return end.value, requests


def github():
    return GitHubApi(PLACE, "ghp_s3cret")


def methods(requests):
    return [request.method for request in requests]


def test_pull_request_is_looked_for_before_it_is_opened():
    made, requests = run(opened(github(), NEW), NOTHING, says(201, pull()))
    assert (made.number, methods(requests)) == (5, ["GET", "POST"])
    asked = parse_qs(urlsplit(requests[0].url).query)
    assert (asked["head"], asked["base"], asked["state"]) == (["octo:docs/one"], ["main"], ["open"])
    assert json.loads(requests[1].body) == {
        "title": NEW.title, "body": NEW.body, "head": "docs/one", "base": "main", "draft": False,
    }  # fmt: skip


def test_open_pull_request_is_adopted():
    found, requests = run(opened(github(), NEW), says(200, [pull(title="Theirs")]))
    assert (found.title, methods(requests)) == ("Theirs", ["GET"])


@pytest.mark.parametrize(
    "other",
    [
        pull(head={"ref": "docs/one", "repo": {"full_name": "somebody/guide"}}),
        pull(head={"ref": "docs/one", "repo": None}),
        pull(head={"ref": "docs/other", "repo": {"full_name": "octo/guide"}}),
        pull(base={"ref": "next", "repo": {"full_name": "octo/guide"}}),
        pull(state="closed"),
    ],
)
def test_another_one_is_not_taken_for_ours(other):
    made, _ = run(opened(github(), NEW), says(200, [other]), says(201, pull(number=6)))
    assert made.number == 6


RUBBISH = [
    (ApiAnswer(200, {}, b"<html>Sign in</html>"), "--api-url"),
    (ApiAnswer(201, {}, b"[" * 100_000), "--api-url"),
    (says(201, pull(html_url="javascript:alert(1)")), "no address"),
]


@pytest.mark.parametrize(("rubbish", "words"), RUBBISH)
def test_pull_request_is_looked_up_after_an_unreadable_answer(rubbish, words):
    found, requests = run(opened(github(), NEW), NOTHING, rubbish, says(200, [pull()]))
    assert (found.number, methods(requests)) == (5, ["GET", "POST", "GET"])
    with pytest.raises(Unavailable, match=words) as refused:
        run(opened(github(), NEW), *(3 * [NOTHING, rubbish]))
    assert refused.value.code == "code_host_unavailable"


def test_pull_request_is_not_opened_again_before_the_time_asked_for():
    busy = NoAnswer("busy", retry_after_seconds=90)
    with pytest.raises(NoAnswer) as refused:
        run(opened(github(), NEW), NOTHING, busy)
    assert refused.value.retry_after_seconds == 90


def test_pull_request_with_a_lost_answer_is_found_not_repeated():
    found, requests = run(opened(github(), NEW), NOTHING, NoAnswer("lost"), says(200, [pull()]))
    assert (found.number, methods(requests)) == (5, ["GET", "POST", "GET"])
    assert requests[2].after_seconds == 2.0


def test_pull_request_opened_meanwhile_by_others_is_adopted():
    found, requests = run(opened(github(), NEW), NOTHING, EXISTS, says(200, [pull()]))
    assert (found.number, methods(requests)) == (5, ["GET", "POST", "GET"])


def test_looking_and_making_has_an_end():
    with pytest.raises(Unavailable):
        run(opened(github(), NEW), *(3 * [NOTHING, NoAnswer("lost")]))
    with pytest.raises(Conflict, match="already exists for octo:x"):
        run(opened(github(), NEW), *(3 * [NOTHING, EXISTS]))


def test_host_without_drafts_gets_an_ordinary_pull_request():
    refused = says(422, {"message": "Draft pull requests are not supported in this repository."})
    made, requests = run(opened(github(), replace(NEW, draft=True)), NOTHING, refused, says(201, pull()))
    assert not made.draft
    assert [json.loads(request.body)["draft"] for request in requests[1:]] == [True, False]


@pytest.mark.parametrize(
    ("answer", "kind", "code", "words"),
    [
        (invalid({"message": "No commits between main and docs/one"}), Conflict, "no_commits", "nothing that main"),
        (
            invalid({"resource": "PullRequest", "field": "head", "code": "invalid"}),
            Conflict, "no_such_branch", "'docs/one'",
        ),
        (invalid("something else"), Conflict, "pull_request_refused", "GitHub says: Validation Failed; something else"),
        (says(401, {"message": "Bad credentials"}), Forbidden, "token_refused", "Make a new one.*Bad credentials"),
        (
            says(403, {"message": "Resource not accessible by personal access token"}),
            Forbidden, "rights_missing", "needs the right to write contents and pull requests.*not accessible",
        ),
        (
            says(403, {"message": "Repository was archived so is read-only."}),
            Conflict, "repository_archived", "Unarchive it",
        ),
        (says(404, {"message": "Not Found"}), NotFound, "no_such_repository", "is private"),
        (says(301, {"message": "Moved Permanently"}), Conflict, "repository_moved", "project update"),
        (says(410, {"message": "Pull requests are disabled"}), Conflict, "pull_request_refused", "are disabled"),
        (says(451, {"message": "Repository access blocked"}), Forbidden, "rights_missing", "blocked"),
        (says(500, {}), Unavailable, "code_host_unavailable", "status 500"),
        (says(408, {}), Unavailable, "code_host_unavailable", "status 408"),
        (says(425, {}), Unavailable, "code_host_unavailable", "status 425"),
        (ApiAnswer(422, {}, b"\xff\x00"), Conflict, "pull_request_refused", "no reason"),
        (says(422, {"message": 70_000 * "x"}), Conflict, "pull_request_refused", "no reason"),
    ],
)  # fmt: skip
def test_why_it_was_refused_and_what_to_do(answer, kind, code, words):
    with pytest.raises(kind, match=words) as refused:
        run(opened(github(), NEW), NOTHING, answer)
    assert refused.value.code == code
    assert "s3cret" not in str(refused.value)
    assert str(refused.value).isprintable()


def test_a_host_s_words_are_shortened_and_on_one_line():
    with pytest.raises(Conflict) as refused:
        run(opened(github(), NEW), NOTHING, says(422, {"message": "a\n\x1b[31m" + 5000 * "x"}))
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 600


def test_unchanged_title_is_not_sent():
    same, requests = run(updated(github(), 5, Edited(NEW.title, NEW.body, None)), says(200, pull()))
    assert (same.number, methods(requests)) == (5, ["GET"])


@pytest.mark.parametrize(
    ("draft", "mutation"), [(True, "markPullRequestReadyForReview"), (False, "convertPullRequestToDraft")]
)
@pytest.mark.parametrize(
    ("answer", "changes"),
    [
        (says(200, {"data": {}}), True),
        (says(200, {"data": None, "errors": [{"message": "Draft pull requests are not supported"}]}), False),
        (says(403, {"message": "Resource not accessible by integration"}), False),
    ],
)
def test_github_draft_changes_by_graphql(draft, mutation, answer, changes):
    known = pull(draft=draft, node_id="PR_5")
    wanted = Edited("Retries", "There.", not draft)
    changed, requests = run(updated(github(), 5, wanted), says(200, known), says(200, known), answer)
    assert changed.draft is (not draft if changes else draft)
    assert methods(requests) == ["GET", "PATCH", "POST"]
    assert requests[2].url == "https://api.github.com/graphql"
    asked = json.loads(requests[2].body)
    assert (mutation in asked["query"], asked["variables"]) == (True, {"id": "PR_5"})


def test_github_enterprise_has_its_graphql_beside_rest():
    place = github_protocol.repository_address("https://git.acme.example/octo/guide", "")
    known = pull(draft=True, node_id="PR_5")
    steps = updated(GitHubApi(place, "t"), 5, Edited(NEW.title, NEW.body, draft=False))
    _, requests = run(steps, says(200, known), says(200, known), says(200, {}))
    assert requests[2].url == "https://git.acme.example/api/graphql"


def repository(**changes):
    return {"full_name": "octo/guide", "archived": False, "permissions": {"push": True}, **changes}


@pytest.mark.parametrize(
    ("body", "headers", "kind", "code"),
    [
        (repository(archived=True), {}, Conflict, "repository_archived"),
        (repository(full_name="octo/handbook"), {}, Conflict, "repository_moved"),
        (repository(permissions={"push": False, "pull": True}), {}, Forbidden, "rights_missing"),
        (repository(), {"x-oauth-scopes": "gist, read:org"}, Forbidden, "rights_missing"),
    ],
)
def test_the_check_finds_what_a_job_would_fail_of(body, headers, kind, code):
    with pytest.raises(kind) as refused:
        run(github().check(), says(200, body, **headers))
    assert refused.value.code == code


def test_check_warns_of_what_it_could_not_find_out():
    checked, _ = run(github().check(), says(200, repository(full_name="Octo/Guide"), **{"x-oauth-scopes": "repo"}))
    assert checked.warnings == ()
    expiry = {"github-authentication-token-expiration": "2026-12-24 00:00:00 UTC"}
    checked, _ = run(github().check(), says(200, repository(permissions=None), **expiry))
    assert [("not tell" in one, "2026-12-24" in one) for one in checked.warnings] == [(True, False), (False, True)]


WRITE = {"contents": "write", "pull_requests": "write", "metadata": "read"}


@pytest.mark.parametrize(
    ("installation", "kind", "code", "words"),
    [
        (says(404, {"message": "Not Found"}), NotFound, "no_such_repository", "is not installed on"),
        (says(401, {"message": "A JSON web token could not be decoded"}), Forbidden, "token_refused", "clock"),
        (
            says(200, {"id": 1, "permissions": WRITE, "suspended_at": "2026-01-01T00:00:00Z"}),
            Forbidden, "token_refused", "suspended",
        ),
        (
            says(200, {"id": 1, "permissions": {**WRITE, "contents": "read"}}),
            Forbidden, "rights_missing", "contents: write",
        ),
    ],
)  # fmt: skip
def test_an_app_that_may_not(installation, kind, code, words):
    with pytest.raises(kind, match=words) as refused:
        run(installation_token(PLACE, "7", "jwt"), installation)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("module", "repository", "api_url", "api", "path"),
    [
        (github_protocol, REPOSITORY, "", "https://api.github.com", "octo/guide"),
        (github_protocol, "https://ghe.example/o/r/", "", "https://ghe.example/api/v3", "o/r"),
        (github_protocol, "https://ghe.example/o/r", "https://api.example", "https://api.example", "o/r"),
        (gitlab_protocol, "https://gl.example/g/s/p.git", "", "https://gl.example/api/v4", "g/s/p"),
        (
            gitlab_protocol, "https://gl.example:8443/lab/g/s/p", "https://gl.example:8443/lab/api/v4",
            "https://gl.example:8443/lab/api/v4", "g/s/p",
        ),
        (
            gitlab_protocol, "https://git.example/lab/g/p", "https://api.example/lab/api/v4",
            "https://api.example/lab/api/v4", "lab/g/p",
        ),
        (gitea_protocol, "https://gt.example/o/r.git", "", "https://gt.example/api/v1", "o/r"),
        (gitea_protocol, "http://h.example/a b/git/o/r", "", "http://h.example/a%20b/git/api/v1", "o/r"),
        (gitea_protocol, "https://gt.example/o/na%20me", "", "https://gt.example/api/v1", "o/na me"),
    ],
)  # fmt: skip
def test_api_address_of_a_repository(module, repository, api_url, api, path):
    place = module.repository_address(repository, api_url)
    assert (place.api, place.path) == (api, path)


@pytest.mark.parametrize("module", [github_protocol, gitlab_protocol, gitea_protocol])
@pytest.mark.parametrize(
    "repository",
    ["", "/srv/guide", "git@github.com:octo/guide", "https://github.com", "https://github.com/octo",
     "https://x:y@github.com/o/r", "https://github.com/o/..", "https://github.com/o%2f/r", "https://github.com/o/.git",
     "https://github.com/o/r?x=1", "https://github.com/o/r%0a"],
)  # fmt: skip
def test_address_without_a_repository_is_refused(module, repository):
    with pytest.raises(Invalid) as refused:
        module.repository_address(repository, "")
    assert refused.value.code == "bad_repository"


ANSWER = NewAnswer("Done.", "m4rk", thread="31", asked_after=datetime(2026, 1, 2, 3, tzinfo=UTC))
NO_COMMENTS = (NOTHING, NOTHING, NOTHING)


def comment_with(text):
    return {"id": 40, "html_url": "https://github.com/octo/guide/pull/5#r40", "path": "a.md", "body": text,
            "updated_at": "2026-01-02T03:04:05Z", "user": {"login": "docsmith"}}  # fmt: skip


def test_answer_is_looked_for_before_it_is_posted():
    posted = says(201, comment_with(text_of(ANSWER)))
    url, requests = run(answered(github().comments, 5, ANSWER), *NO_COMMENTS, posted)
    assert url == "https://github.com/octo/guide/pull/5#r40"
    assert methods(requests) == ["GET", "GET", "GET", "POST"]
    assert parse_qs(urlsplit(requests[0].url).query)["since"] == ["2026-01-02T03:00:00Z"]
    assert requests[3].url.endswith("/pulls/5/comments/31/replies")


def test_answer_whose_response_was_lost_is_found():
    there = says(200, [comment_with(text_of(ANSWER))])
    url, requests = run(answered(github().comments, 5, ANSWER), *NO_COMMENTS, NoAnswer("lost"), NOTHING, there, NOTHING)
    assert url == "https://github.com/octo/guide/pull/5#r40"
    assert methods(requests).count("POST") == 1


def test_marker_in_a_quotation_is_no_answer_of_ours():
    quoted = says(200, [comment_with(f"> {text_of(ANSWER)}".replace("\n", "\n> "))])
    _, requests = run(answered(github().comments, 5, ANSWER), NOTHING, quoted, NOTHING, says(201, comment_with("x")))
    assert methods(requests).count("POST") == 1


def test_pages_of_a_host_that_never_ends_are_read_so_far():
    page, found = says(200, ["x" * 1_000_000] * 4, link='<https://x>; rel="next"'), []

    def reading():
        pages = Pages(ApiCalls("GitHub", PLACE, {}))
        found.extend((yield from pages.read("https://x/?a", list[str], has_no_next_link)))
        yield None

    steps = reading()
    request = next(steps)
    while request is not None:
        request = steps.send(page)
    assert MAX_LIST_BYTES - 4_000_000 < sum(map(len, found)) < MAX_LIST_BYTES + 4_000_000
