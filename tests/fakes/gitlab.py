"""A small GitLab: the part of its API that has to do with merge requests, with the answers that its documentation
gives. None of its servers was there to be asked.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

PROJECT = 42


class FakeGitLab:
    """One project, ``group/sub/guide``. ``branches``: the commit of each."""

    def __init__(self, branches: Callable[[], Mapping[str, str]], *, token: str = "glpat") -> None:
        self.branches, self.token = branches, token
        self.merge_requests: list[dict[str, Any]] = []
        self.users = {"ada": 5, "grace": 6}
        self.archived = self.moved = False
        self.enabled = True
        self.level: int | None = 30
        self.scopes = ["api"]
        self.expires_at: str | None = None
        self.asked: list[tuple[str, str]] = []  # method, path with query as it was sent
        self.received: list[tuple[str, str, str, bytes]] = []  # besides, the token and the body
        self.server = TestServer(self._app())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def _app(self) -> web.Application:
        app = web.Application(middlewares=[self._enter])
        project = "/api/v4/projects/{project}"
        app.router.add_get("/api/v4/users", self._users)
        app.router.add_get("/api/v4/personal_access_tokens/self", self._token)
        app.router.add_get(project, self._project)
        app.router.add_get(f"{project}/merge_requests", self._list)
        app.router.add_post(f"{project}/merge_requests", self._create)
        app.router.add_get(f"{project}/merge_requests/{{number}}", self._get)
        app.router.add_put(f"{project}/merge_requests/{{number}}", self._edit)
        return app

    @web.middleware
    async def _enter(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.asked.append((request.method, request.rel_url.raw_path_qs))
        token = request.headers.get("PRIVATE-TOKEN", "")
        self.received.append((*self.asked[-1], token, await request.read()))
        if token != self.token:
            return web.json_response({"message": "401 Unauthorized"}, status=401)
        if "project" in request.match_info and request.match_info["project"] not in ("group/sub/guide", str(PROJECT)):
            return told(404, "404 Project Not Found")
        if self.moved and "project" in request.match_info:
            if request.method != "GET":
                return told(405, "405 Method Not Allowed - Non GET methods are not allowed for moved projects")
            return web.Response(status=301, headers={"Location": f"/api/v4/projects/{PROJECT}"})
        try:
            return await handler(request)
        except web.HTTPNotFound:
            return told(404, "404 Not Found")

    async def _token(self, _request: web.Request) -> web.Response:
        return web.json_response({"id": 1, "scopes": self.scopes, "expires_at": self.expires_at, "active": True})

    async def _users(self, request: web.Request) -> web.Response:
        name = request.query["username"]
        return web.json_response([{"id": self.users[name], "username": name}] if name in self.users else [])

    async def _project(self, _request: web.Request) -> web.Response:
        access = None if self.level is None else {"access_level": self.level, "notification_level": 3}
        return web.json_response(
            {
                "id": PROJECT,
                "path_with_namespace": "group/sub/guide",
                "archived": self.archived,
                "merge_requests_enabled": self.enabled,
                "permissions": {"project_access": None, "group_access": access},
            }
        )

    async def _list(self, request: web.Request) -> web.Response:
        query = request.query
        found = [
            one
            for one in self.merge_requests
            if query.get("state", "all") in ("all", one["state"])
            and query.get("source_branch", one["source_branch"]) == one["source_branch"]
            and query.get("target_branch", one["target_branch"]) == one["target_branch"]
        ]
        return web.json_response([self._public(one) for one in found])

    async def _create(self, request: web.Request) -> web.Response:
        body = await request.json()
        if self.archived:
            return told(403, "403 Forbidden")
        missing = [name for name in ("title", "source_branch", "target_branch") if not body.get(name)]
        if missing:
            return web.json_response({"error": ", ".join(f"{name} is missing" for name in missing)}, status=400)
        if body["source_branch"] not in self.branches():
            return told(422, ['Source branch "x" does not exist'])
        same = [
            one["iid"]
            for one in self.merge_requests
            if (one["source_branch"], one["target_branch"], one["state"], one["source_project_id"])
            == (body["source_branch"], body["target_branch"], "opened", PROJECT)
        ]
        if same:
            return told(409, [f"Another open merge request already exists for this source branch: !{same[0]}"])
        self.add(body["source_branch"], body["target_branch"], body["title"], body.get("description"))
        return web.json_response(self._public(self.merge_requests[-1]), status=201)

    def add(self, head: str, base: str, title: str, body: str | None = None, *, project: int = PROJECT) -> None:
        self.merge_requests.append(
            {
                "iid": len(self.merge_requests) + 1, "source_branch": head, "target_branch": base, "title": title,
                "description": body, "state": "opened", "source_project_id": project, "target_project_id": PROJECT,
                "labels": [], "reviewers": [],
            }
        )  # fmt: skip

    async def _get(self, request: web.Request) -> web.Response:
        return web.json_response(self._public(self._known(request)))

    async def _edit(self, request: web.Request) -> web.Response:
        known, body = self._known(request), await request.json()
        known["labels"] = list(dict.fromkeys([*known["labels"], *filter(None, body.pop("add_labels", "").split(","))]))
        known["reviewers"] = body.pop("reviewer_ids", known["reviewers"])
        known.update(body)
        return web.json_response(self._public(known))

    def _known(self, request: web.Request) -> dict[str, Any]:
        for one in self.merge_requests:
            if str(one["iid"]) == request.match_info["number"]:
                return one
        raise web.HTTPNotFound

    def _public(self, one: dict[str, Any]) -> dict[str, Any]:
        return {
            **one,
            "web_url": f"{self.url}/group/sub/guide/-/merge_requests/{one['iid']}",
            "draft": re.match(r"\[draft\]|\(draft\)|draft:", one["title"], re.IGNORECASE) is not None,
        }


def told(status: int, message: str | list[str]) -> web.Response:
    return web.json_response({"message": message}, status=status)
