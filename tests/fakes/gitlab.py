"""A small GitLab: the part of its API that has to do with merge requests, with the answers that its documentation
gives. None of its servers was there to be asked.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.fakes.people import FakePeople, Said, stamp

PROJECT = 42


class FakeGitLab:
    """One project, ``group/sub/guide``. ``branches``: the commit of each."""

    def __init__(self, branches: Callable[[], Mapping[str, str]], *, token: str = "glpat") -> None:
        self.branches, self.token = branches, token
        self.people = FakePeople()
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
        app.router.add_get("/api/v4/users/{id}", self._user)
        app.router.add_get(f"{project}/members/all/{{id}}", self._member)
        merge_request = f"{project}/merge_requests/{{number}}"
        app.router.add_get(f"{merge_request}/discussions", self._discussions)
        app.router.add_post(f"{merge_request}/discussions/{{id}}/notes", self._answer)
        app.router.add_post(f"{merge_request}/notes", self._say)
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

    async def _user(self, request: web.Request) -> web.Response:
        for account in self.people.accounts.values():
            if str(account.id) == request.match_info["id"]:
                return web.json_response({**self._author(account.name), "bot": account.is_bot})
        return told(404, "404 User Not Found")

    async def _member(self, request: web.Request) -> web.Response:
        for account in self.people.accounts.values():
            if str(account.id) == request.match_info["id"]:
                level = 30 if account.level == "write" else 20
                return web.json_response({**self._author(account.name), "access_level": level, "expires_at": None})
        return told(404, "404 Not found")

    async def _discussions(self, request: web.Request) -> web.Response:
        number = self._known(request)["iid"]
        noted = {**self._note(self.people.add(number, "added 1 commit", "ada")), "system": True}
        self.people.comments.pop()
        found = [{"id": "a" * 40, "individual_note": True, "notes": [{**noted, "id": 1}]}]
        found += [
            {
                "id": f"{thread[0].thread:040x}",
                "individual_note": len(thread) == 1 and not thread[0].path,
                "notes": [self._note(one) for one in thread],
            }
            for thread in self.people.threads(number)
        ]
        page, size = int(request.query.get("page", 1)), int(request.query.get("per_page", 20))
        shown = found[(page - 1) * size : page * size]
        tagged = json.dumps(shown[1:] if page == 1 else shown)
        headers = {"ETag": f'W/"{hashlib.sha256(tagged.encode()).hexdigest()[:32]}"'}
        headers["X-Next-Page"] = str(page + 1) if page * size < len(found) else ""
        if request.headers.get("If-None-Match") == headers["ETag"]:
            return web.Response(status=304, headers=headers)
        return web.json_response(shown, headers=headers)

    async def _answer(self, request: web.Request) -> web.Response:
        thread = self.people.thread(int(request.match_info["id"], 16))
        if not thread:
            return told(404, "404 Discussion Not Found")
        body = (await request.json())["body"]
        said = self.people.add(
            self._known(request)["iid"], body, "docsmith", path=thread[0].path, line=thread[0].line,
            thread=thread[0].thread,
        )  # fmt: skip
        return web.json_response(self._note(said), status=201)

    async def _say(self, request: web.Request) -> web.Response:
        said = self.people.add(self._known(request)["iid"], (await request.json())["body"], "docsmith")
        return web.json_response(self._note(said), status=201)

    def _author(self, name: str) -> dict[str, Any]:
        return {"id": self.people.accounts[name].id, "username": name, "name": name, "state": "active"}

    def _note(self, one: Said) -> dict[str, Any]:
        note: dict[str, Any] = {
            "id": one.id, "type": "DiffNote" if one.path else None, "body": one.text,
            "author": self._author(one.author),
            "created_at": stamp(one.created_at), "updated_at": stamp(one.updated_at), "system": False,
            "noteable_type": "MergeRequest", "noteable_iid": one.number, "resolvable": bool(one.path),
        }  # fmt: skip
        if one.path:
            note["position"] = {
                "base_sha": "a", "start_sha": "a", "head_sha": "b", "old_path": one.path, "new_path": one.path,
                "position_type": "text", "old_line": None, "new_line": one.line,
            }  # fmt: skip
        return note

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
