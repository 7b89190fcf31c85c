"""A small GitHub: what its API says of pull requests and of the comments on them, with the answers of its
documentation. The emulator in ``tests/github`` knows no comments.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.fakes.people import FakePeople, Said, stamp

REPO = "/repos/octo/guide"


class FakeGitHub:
    """One repository, ``octo/guide``."""

    def __init__(self, *, token: str = "ghp") -> None:
        self.token = token
        self.people = FakePeople()
        self.pulls: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str]] = []  # method, path with query
        self.locked = False
        self.on_answer: Callable[[], Awaitable[object]] | None = None  # awaited once, when it is there and unconfirmed
        self.page_size = 100
        self.server = TestServer(self._app())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def _app(self) -> web.Application:
        app = web.Application(middlewares=[self._enter])
        app.router.add_get(REPO, self._repository)
        app.router.add_get(f"{REPO}/pulls", self._list)
        app.router.add_post(f"{REPO}/pulls", self._create)
        app.router.add_get(f"{REPO}/pulls/{{number:\\d+}}", self._get)
        app.router.add_patch(f"{REPO}/pulls/{{number:\\d+}}", self._edit)
        app.router.add_get(f"{REPO}/issues/{{number:\\d+}}/comments", self._conversation)
        app.router.add_post(f"{REPO}/issues/{{number:\\d+}}/comments", self._say)
        app.router.add_get(f"{REPO}/pulls/{{number:\\d+}}/comments", self._on_lines)
        app.router.add_post(f"{REPO}/pulls/{{number:\\d+}}/comments/{{id:\\d+}}/replies", self._reply)
        app.router.add_get(f"{REPO}/pulls/{{number:\\d+}}/reviews", self._reviews)
        app.router.add_get(f"{REPO}/collaborators/{{name}}/permission", self._permission)
        return app

    @web.middleware
    async def _enter(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.asked.append((request.method, request.path_qs))
        if request.headers.get("Authorization") != f"token {self.token}":
            return told(401, "Bad credentials")
        try:
            return await handler(request)
        except web.HTTPNotFound:
            return told(404, "Not Found")

    async def _repository(self, _request: web.Request) -> web.Response:
        rights = {"admin": False, "push": True, "pull": True}
        return web.json_response({"id": 35129377, "full_name": "octo/guide", "archived": False, "permissions": rights})

    async def _list(self, request: web.Request) -> web.Response:
        head = request.query.get("head", "").partition(":")[2]
        found = [one for one in self.pulls if one["state"] == "open" and head in ("", one["head"])]
        return web.json_response([self._public(one) for one in found])

    async def _create(self, request: web.Request) -> web.Response:
        body = await request.json()
        number = len(self.pulls) + 1
        self.pulls.append({**body, "number": number, "state": "open", "merged_at": None})
        return web.json_response(self._public(self.pulls[-1]), status=201)

    async def _get(self, request: web.Request) -> web.Response:
        return web.json_response(self._public(self._known(request)))

    async def _edit(self, request: web.Request) -> web.Response:
        self._known(request).update(await request.json())
        return web.json_response(self._public(self._known(request)))

    async def _conversation(self, request: web.Request) -> web.Response:
        number = self._known(request)["number"]
        found = self.people.of(number, since=request.query.get("since", ""))
        return self._page(request, [self._said(one) for one in found if not one.path and not one.is_review])

    async def _on_lines(self, request: web.Request) -> web.Response:
        number = self._known(request)["number"]
        found = self.people.of(number, since=request.query.get("since", ""))
        return self._page(request, [self._on_line(one) for one in found if one.path])

    async def _reviews(self, request: web.Request) -> web.Response:
        found = [one for one in self.people.of(self._known(request)["number"]) if one.is_review]
        shown = [{**self._said(one), "state": "COMMENTED", "submitted_at": stamp(one.created_at)} for one in found]
        for one in shown:
            del one["created_at"], one["updated_at"]
        return self._page(request, shown)

    async def _say(self, request: web.Request) -> web.Response:
        if self.locked:
            return told(403, "Unable to create comment because issue is locked.")
        said = self.people.add(self._known(request)["number"], (await request.json())["body"], "docsmith")
        await self._answered()
        return web.json_response(self._said(said), status=201)

    async def _answered(self) -> None:
        on_answer, self.on_answer = self.on_answer, None
        if on_answer is not None:
            await on_answer()

    async def _reply(self, request: web.Request) -> web.Response:
        first = self.people.thread(int(request.match_info["id"]))
        if not first or first[0].id != first[0].thread:
            raise web.HTTPNotFound
        said = self.people.add(
            self._known(request)["number"], (await request.json())["body"], "docsmith",
            path=first[0].path, line=first[0].line, thread=first[0].id,
        )  # fmt: skip
        return web.json_response(self._on_line(said), status=201)

    async def _permission(self, request: web.Request) -> web.Response:
        account = self.people.accounts.get(request.match_info["name"])
        if account is None:
            return told(404, f"{request.match_info['name']} is not a user")
        user = self._user(account.name)
        return web.json_response({"permission": account.level, "role_name": account.level, "user": user})

    def _page(self, request: web.Request, items: list[dict[str, Any]]) -> web.Response:
        page, size = int(request.query.get("page", 1)), min(int(request.query.get("per_page", 30)), self.page_size)
        body = json.dumps(items[(page - 1) * size : page * size]).encode()
        headers = {"ETag": f'W/"{hashlib.sha256(body).hexdigest()}"'}
        if page * size < len(items):
            headers["Link"] = f'<{request.url.update_query(page=page + 1)}>; rel="next"'
        if request.headers.get("If-None-Match") == headers["ETag"]:
            return web.Response(status=304, headers=headers)
        return web.Response(body=body, content_type="application/json", headers=headers)

    def _known(self, request: web.Request) -> dict[str, Any]:
        number = int(request.match_info["number"])
        if not 1 <= number <= len(self.pulls):
            raise web.HTTPNotFound
        return self.pulls[number - 1]

    def _user(self, name: str) -> dict[str, Any]:
        account = self.people.accounts[name]
        shown = f"{name}[bot]" if account.is_bot else name
        return {"login": shown, "id": account.id, "type": "Bot" if account.is_bot else "User", "site_admin": False}

    def _said(self, one: Said) -> dict[str, Any]:
        return {
            "id": one.id, "body": one.text, "user": self._user(one.author), "author_association": "MEMBER",
            "created_at": stamp(one.created_at), "updated_at": stamp(one.updated_at),
            "html_url": f"https://github.com/octo/guide/pull/{one.number}#issuecomment-{one.id}",
        }  # fmt: skip

    def _on_line(self, one: Said) -> dict[str, Any]:
        reply = {"in_reply_to_id": one.thread} if one.thread != one.id else {}
        return {
            **self._said(one), "path": one.path, "line": one.line, "start_line": None, "original_line": one.line,
            "original_start_line": None, "side": "RIGHT", "diff_hunk": "@@ -1,3 +1,3 @@\n-old\n+new",
            "html_url": f"https://github.com/octo/guide/pull/{one.number}#discussion_r{one.id}", **reply,
        }  # fmt: skip

    def _public(self, pull: dict[str, Any]) -> dict[str, Any]:
        here = {"repo": {"full_name": "octo/guide"}}
        return {
            "number": pull["number"], "html_url": f"https://github.com/octo/guide/pull/{pull['number']}",
            "title": pull["title"], "body": pull["body"], "state": pull["state"], "draft": pull["draft"],
            "merged_at": pull["merged_at"], "head": {"ref": pull["head"], **here},
            "base": {"ref": pull["base"], **here},
        }  # fmt: skip


def told(status: int, message: str) -> web.Response:
    return web.json_response({"message": message, "documentation_url": "https://docs.github.com/rest"}, status=status)
