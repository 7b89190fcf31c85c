"""A small, true Gitea: the part of its API that has to do with pull requests, with the answers that a real one gave
(1.22; what later versions have besides is said).
"""

from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.fakes.people import FakePeople, Said, stamp

REPO = 7


class FakeGitea:
    """One repository, ``octo/guide``. ``branches``: the commit of each."""

    def __init__(self, branches: Callable[[], Mapping[str, str]], *, token: str = "gta") -> None:
        self.branches, self.token = branches, token
        self.people = FakePeople()
        self.may_ask_rights = True
        self.pulls: list[dict[str, Any]] = []
        self.labels = {"docs": 3, "by bot": 4}
        self.label_ids: dict[int, set[int]] = {}
        self.reviewers: dict[int, list[str]] = {}
        self.archived = self.moved = False
        self.may_push = True
        self.tells_draft = False  # later versions do
        self.page_size = 50
        self.asked: list[tuple[str, str]] = []  # method, path with query
        self.server = TestServer(self._app())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def _app(self) -> web.Application:
        app = web.Application(middlewares=[self._enter])
        repo = "/api/v1/repos/octo/guide"
        app.router.add_get(repo, self._repository)
        app.router.add_get(f"{repo}/pulls", self._list)
        app.router.add_post(f"{repo}/pulls", self._create)
        app.router.add_get(f"{repo}/pulls/{{number}}", self._get)
        app.router.add_patch(f"{repo}/pulls/{{number}}", self._edit)
        app.router.add_post(f"{repo}/pulls/{{number}}/requested_reviewers", self._review)
        app.router.add_get(f"{repo}/issues/{{number}}/comments", self._conversation)
        app.router.add_post(f"{repo}/issues/{{number}}/comments", self._say)
        app.router.add_get(f"{repo}/pulls/{{number}}/reviews", self._reviews)
        app.router.add_post(f"{repo}/pulls/{{number}}/reviews", self._add_review)
        app.router.add_get(f"{repo}/pulls/{{number}}/reviews/{{id}}/comments", self._on_lines)
        app.router.add_get(f"{repo}/collaborators/{{name}}/permission", self._permission)
        app.router.add_get(f"{repo}/labels", self._labels)
        app.router.add_post(f"{repo}/issues/{{number}}/labels", self._label)
        return app

    @web.middleware
    async def _enter(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.asked.append((request.method, request.path_qs))
        if request.headers.get("Authorization") != f"token {self.token}":
            return told(401, "invalid username, password or token")
        if self.moved:
            return web.Response(status=307, headers={"Location": request.path.replace("guide", "handbook")})
        try:
            return await handler(request)
        except web.HTTPNotFound:
            return not_found()

    async def _repository(self, _request: web.Request) -> web.Response:
        return web.json_response(
            {
                "id": REPO,
                "full_name": "octo/guide",
                "archived": self.archived,
                "has_pull_requests": True,
                "permissions": {"admin": self.may_ask_rights, "push": self.may_push, "pull": True},
            }
        )

    async def _list(self, request: web.Request) -> web.Response:
        page, limit = int(request.query.get("page", 1)), min(int(request.query.get("limit", 30)), self.page_size)
        found = [pull for pull in reversed(self.pulls) if pull["state"] == request.query.get("state", "open")]
        shown = found[(page - 1) * limit : page * limit]
        headers = {"X-Total-Count": str(len(found))}
        if page * limit < len(found):
            headers["Link"] = f'<{request.url.update_query(page=page + 1)}>; rel="next"'
        return web.json_response([self._public(pull) for pull in shown], headers=headers)

    async def _create(self, request: web.Request) -> web.Response:
        body = await request.json()
        if self.archived:
            return told(423, "Repo octo/guide is archived.")
        if not body.get("title"):
            return told(422, "[Title]: Required")
        if body["head"] == body["base"]:
            return told(422, "Invalid PullRequest: There are no changes between the head and the base")
        branches = self.branches()
        if body["head"] not in branches or body["base"] not in branches:
            return not_found()
        if any((one["head"], one["base"], one["state"]) == (body["head"], body["base"], "open") for one in self.pulls):
            return told(409, "pull request already exists for these targets [id: 1, issue_id: 1, …]")
        self.add(body["head"], body["base"], body["title"], body.get("body", ""))
        return web.json_response(self._public(self.pulls[-1]), status=201)

    def add(self, head: str, base: str, title: str, body: str = "", *, head_repo: int = REPO) -> None:
        self.pulls.append(
            {
                "number": len(self.pulls) + 1, "head": head, "base": base, "title": title, "body": body,
                "state": "open", "merged": False, "head_repo": head_repo,
            }
        )  # fmt: skip

    async def _get(self, request: web.Request) -> web.Response:
        return web.json_response(self._public(self._known(request)))

    async def _edit(self, request: web.Request) -> web.Response:
        self._known(request).update(await request.json())
        return web.json_response(self._public(self._known(request)), status=201)

    async def _review(self, request: web.Request) -> web.Response:
        wanted = (await request.json()).get("reviewers", [])
        if "nobody" in wanted:
            return told(404, "user does not exist [uid: 0, name: nobody, keyid: 0]")
        self.reviewers.setdefault(self._known(request)["number"], []).extend(wanted)
        return web.json_response([], status=201)

    async def _labels(self, _request: web.Request) -> web.Response:
        return web.json_response([{"id": number, "name": name} for name, number in self.labels.items()])

    async def _label(self, request: web.Request) -> web.Response:
        ids = (await request.json())["labels"]
        self.label_ids.setdefault(self._known(request)["number"], set()).update(ids)
        return web.json_response([], status=200)

    async def _conversation(self, request: web.Request) -> web.Response:
        found = self.people.of(self._known(request)["number"], since=request.query.get("since", ""))
        return web.json_response([self._said(one) for one in found if not one.path])

    async def _say(self, request: web.Request) -> web.Response:
        said = self.people.add(self._known(request)["number"], (await request.json())["body"], "docsmith")
        return web.json_response(self._said(said), status=201)

    async def _reviews(self, request: web.Request) -> web.Response:
        """Each comment on a line has a review of its own, whose id is one more."""
        found = [one for one in self.people.of(self._known(request)["number"]) if one.path]
        return web.json_response([self._review_of(one) for one in found])

    async def _add_review(self, request: web.Request) -> web.Response:
        number, body = self._known(request)["number"], await request.json()
        (asked,) = body["comments"]
        if not any(one.path == asked["path"] for one in self.people.of(number)) and asked["path"] != "guide/a.md":
            return told(422, "the file is not part of the changes")
        first = next((one.thread for one in self.people.of(number) if one.path == asked["path"]), 0)
        said = self.people.add(
            number, asked["body"], "docsmith", path=asked["path"], line=asked["new_position"], thread=first
        )
        return web.json_response(self._review_of(said), status=200)

    async def _on_lines(self, request: web.Request) -> web.Response:
        number, review = self._known(request)["number"], int(request.match_info["id"])
        return web.json_response([self._on_line(one) for one in self.people.of(number) if one.id + 1 == review])

    async def _permission(self, request: web.Request) -> web.Response:
        if not self.may_ask_rights:
            return told(403, "Only admins can query all permissions, repo admins can query all repo permissions")
        account = self.people.accounts.get(request.match_info["name"])
        if account is None:
            return not_found()
        user = self._user(account.name)
        return web.json_response({"permission": account.level, "role_name": account.level, "user": user})

    def _user(self, name: str) -> dict[str, Any]:
        account = self.people.accounts[name]
        return {"id": -2 if account.is_bot else account.id, "login": name, "full_name": ""}

    def _said(self, one: Said) -> dict[str, Any]:
        return {
            "id": one.id, "html_url": f"{self.url}/octo/guide/pulls/{one.number}#issuecomment-{one.id}",
            "pull_request_url": f"{self.url}/octo/guide/pulls/{one.number}", "issue_url": "", "body": one.text,
            "user": self._user(one.author), "created_at": stamp(one.created_at), "updated_at": stamp(one.updated_at),
        }  # fmt: skip

    def _review_of(self, one: Said) -> dict[str, Any]:
        return {
            "id": one.id + 1, "user": self._user(one.author), "state": "COMMENT", "body": "", "comments_count": 1,
            "submitted_at": stamp(one.created_at), "updated_at": stamp(one.created_at),
            "html_url": f"{self.url}/octo/guide/pulls/{one.number}#issuecomment-{one.id}",
        }  # fmt: skip

    def _on_line(self, one: Said) -> dict[str, Any]:
        return {
            **self._said(one), "resolver": None, "pull_request_review_id": one.id + 1, "path": one.path,
            "diff_hunk": "@@ -1,3 +1,3 @@\n-old\n+new", "position": one.line, "original_position": 0,
        }  # fmt: skip

    def _known(self, request: web.Request) -> dict[str, Any]:
        for pull in self.pulls:
            if str(pull["number"]) == request.match_info["number"]:
                return pull
        raise web.HTTPNotFound

    def _public(self, pull: dict[str, Any]) -> dict[str, Any]:
        return {
            "number": pull["number"],
            "html_url": f"{self.url}/octo/guide/pulls/{pull['number']}",
            "title": pull["title"],
            "body": pull["body"],
            "state": pull["state"],
            "merged": pull["merged"],
            "head": {"label": pull["head"], "ref": pull["head"], "repo_id": pull["head_repo"]},
            "base": {"label": pull["base"], "ref": pull["base"], "repo_id": REPO},
        } | ({"draft": pull["title"].startswith("WIP:")} if self.tells_draft else {})


def told(status: int, message: str) -> web.Response:
    return web.json_response({"message": message, "url": "https://git.example/api/swagger"}, status=status)


def not_found() -> web.Response:
    return web.json_response({"errors": None, "message": "The target couldn't be found.", "url": ""}, status=404)
