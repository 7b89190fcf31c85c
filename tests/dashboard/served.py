"""Every page and form that the service has registered for people, and who may use it."""

import importlib
import pkgutil
import re

from aiohttp import web

import service.web

API = (
    "/v1/",
    "/v2/",
    "/api/",
    "/discovery/",
    "/hooks/",
    "/mcp",
    "/sites/",
    "/.well-known/",
    "/healthz",
    "/readyz",
    "/openapi.json",
)
"""Beginnings of the paths that keys open, or anyone: no session counts there."""
PEOPLE = ("operator", "owner", "editor", "viewer", "outsider", "nobody")
ROLES = ("viewer", "editor", "owner")

ANYONE, PERSON, VIEWER, EDITOR, OWNER, OPERATOR = "anyone", "person", *ROLES, "operator"
READER = "reader"
"""A member of the organization whose site it is; anyone where the site is public."""
BELOW = "/dashboard/{organizationId}"
LEAST = {
    "GET /": ANYONE,
    "GET /ask/{domain}": READER,
    "POST /ask/{domain}/feedback": READER,
    "POST /ask/{domain}/message": READER,
    "GET /ask/{domain}/message/{chatId}/stream": READER,
    "POST /ask/{domain}/message/{chatId}/stop": READER,
    "GET /ask/{domain}/pages/{path}": READER,
    "POST /ask/{domain}/search": READER,
    "GET /favicon.ico": ANYONE,
    "GET /assets/{name}": ANYONE,
    "GET /docs": ANYONE,
    "GET /docs/{operation}": ANYONE,
    "GET /sdk/{name}": ANYONE,
    "GET /widget.js": ANYONE,
    "GET /widget/{name}.js": ANYONE,
    "GET /docs/errors/{code}": ANYONE,
    "GET /manual": ANYONE,
    "GET /manual/{page}": ANYONE,
    "GET /manual/images/{name}": ANYONE,
    "GET /manual/search": ANYONE,
    "GET /sign-in": ANYONE,
    "POST /sign-in": ANYONE,
    "GET /sign-in/oidc": ANYONE,
    "GET /sign-in/oidc/callback": ANYONE,
    "POST /sign-in/passkey": ANYONE,
    "POST /sign-in/proxy": ANYONE,
    "POST /sign-in/passkey/options": ANYONE,
    "POST /account/passkeys": PERSON,
    "POST /account/passkeys/options": PERSON,
    "POST /account/passkeys/{passkeyId}/remove": PERSON,
    "POST /account/provider/remove": PERSON,
    "GET /account": PERSON,
    "POST /account/name": PERSON,
    "POST /account/sessions/{sessionId}/end": PERSON,
    "GET /dashboard": PERSON,
    f"GET {BELOW}": VIEWER,
    f"GET {BELOW}/analytics": VIEWER,
    f"GET {BELOW}/gaps": VIEWER,
    f"POST {BELOW}/gaps/{{gapId}}/dismiss": EDITOR,
    f"POST {BELOW}/gaps/{{gapId}}/job": EDITOR,
    f"POST {BELOW}/gaps/{{gapId}}/restore": EDITOR,
    f"GET {BELOW}/jobs": VIEWER,
    f"GET {BELOW}/jobs/live": VIEWER,
    f"GET {BELOW}/jobs/new": EDITOR,
    f"POST {BELOW}/jobs/new": EDITOR,
    f"GET {BELOW}/jobs/{{jobId}}": VIEWER,
    f"GET {BELOW}/jobs/{{jobId}}/changes": VIEWER,
    f"GET {BELOW}/jobs/{{jobId}}/requests": EDITOR,
    f"GET {BELOW}/jobs/{{jobId}}/live": VIEWER,
    f"POST {BELOW}/jobs/{{jobId}}/archive": EDITOR,
    f"POST {BELOW}/jobs/{{jobId}}/cancel": EDITOR,
    f"POST {BELOW}/jobs/{{jobId}}/close": EDITOR,
    f"POST {BELOW}/jobs/{{jobId}}/merge": EDITOR,
    f"POST {BELOW}/jobs/{{jobId}}/message": EDITOR,
    f"POST {BELOW}/jobs/{{jobId}}/retry": EDITOR,
    f"POST {BELOW}/jobs/{{jobId}}/unarchive": EDITOR,
    f"GET {BELOW}/keys": OWNER,
    f"POST {BELOW}/keys": OWNER,
    f"GET {BELOW}/keys/new": OWNER,
    f"GET {BELOW}/keys/{{keyId}}": OWNER,
    f"POST {BELOW}/keys/{{keyId}}": OWNER,
    f"POST {BELOW}/keys/{{keyId}}/revoke": OWNER,
    f"GET {BELOW}/people": VIEWER,
    f"POST {BELOW}/people": OWNER,
    f"POST {BELOW}/people/{{personId}}/link": OWNER,
    f"POST {BELOW}/people/{{personId}}/remove": OWNER,
    f"POST {BELOW}/people/{{personId}}/role": OWNER,
    f"GET {BELOW}/projects/new": OWNER,
    f"POST {BELOW}/projects/new": OWNER,
    f"GET {BELOW}/pulls/{{projectId}}/{{number}}/live": VIEWER,
    f"GET {BELOW}/questions": VIEWER,
    f"GET {BELOW}/questions/{{threadId}}": VIEWER,
    f"GET {BELOW}/questions/{{threadId}}/sources/{{messageId}}/{{number}}": VIEWER,
    f"POST {BELOW}/questions/{{threadId}}/erase": OWNER,
    f"GET {BELOW}/sites": VIEWER,
    f"GET {BELOW}/sites/{{domain}}": VIEWER,
    f"GET {BELOW}/sites/{{domain}}/access": VIEWER,
    f"POST {BELOW}/sites/{{domain}}/access": OWNER,
    f"GET {BELOW}/sites/{{domain}}/golden": EDITOR,
    f"POST {BELOW}/sites/{{domain}}/golden": EDITOR,
    f"POST {BELOW}/sites/{{domain}}/index": EDITOR,
    f"GET {BELOW}/sites/{{domain}}/live": VIEWER,
    f"GET {BELOW}/sites/{{domain}}/project": OWNER,
    f"POST {BELOW}/sites/{{domain}}/project": OWNER,
    f"POST {BELOW}/sites/{{domain}}/project/upload": OWNER,
    f"GET {BELOW}/sites/{{domain}}/report": VIEWER,
    f"GET {BELOW}/sites/{{domain}}/search": VIEWER,
    f"GET {BELOW}/sites/{{domain}}/widget": VIEWER,
    f"POST {BELOW}/sites/{{domain}}/widget": OWNER,
    f"GET {BELOW}/usage": VIEWER,
    f"POST {BELOW}/usage/bounds": OWNER,
    f"GET {BELOW}/webhooks": VIEWER,
    f"POST {BELOW}/webhooks": OWNER,
    f"GET {BELOW}/webhooks/new": OWNER,
    f"GET {BELOW}/webhooks/{{webhookId}}": VIEWER,
    f"POST {BELOW}/webhooks/{{webhookId}}/delete": OWNER,
    f"POST {BELOW}/webhooks/{{webhookId}}/enable": OWNER,
    f"POST {BELOW}/webhooks/{{webhookId}}/redeliver": OWNER,
    f"POST {BELOW}/webhooks/{{webhookId}}/test": OWNER,
    "GET /operator/health": OPERATOR,
    "GET /operator/audit": OPERATOR,
    "POST /operator/audit/checkpoint": OPERATOR,
    "GET /operator/audit/export": OPERATOR,
    "GET /operator/audit/reproduce": OPERATOR,
    "POST /operator/audit/reproduce": OPERATOR,
    "GET /operator/audit/events/{position}": OPERATOR,
    "GET /operator/audit/verify": OPERATOR,
    "POST /operator/audit/verify": OPERATOR,
    "GET /operator/audit/verify/live": OPERATOR,
    "GET /operator/health/live": OPERATOR,
    "GET /operator/models": OPERATOR,
    "POST /operator/models": OPERATOR,
    "POST /operator/models/choose": OPERATOR,
    "GET /operator/models/live": OPERATOR,
    "GET /operator/models/new": OPERATOR,
    "POST /operator/models/remove": OPERATOR,
    "POST /operator/models/try": OPERATOR,
    "GET /operator/organizations": OPERATOR,
    "POST /operator/organizations": OPERATOR,
    "GET /operator/settings": OPERATOR,
    "POST /operator/settings/folders/disallow": OPERATOR,
    "GET /begin": OPERATOR,
    "POST /begin": OPERATOR,
}
"""The least that a person needs. A member's role counts in the organization of the address alone."""
BY_LINK = {
    False: {"merge": EDITOR, "close": EDITOR, "comment": EDITOR, "resolve": EDITOR},
    True: {"merge": ANYONE, "close": ANYONE, "comment": EDITOR, "resolve": EDITOR},
}
"""The least that a person with the link of a pull request needs for what its page does, by ``hosted.act_by_link``."""
ELSEWHERE = {
    "POST /sign-out": "test_sign_in.py: it uses up a session",
}
"""Routes with tests of their own, and where."""
NUMBERS = ("position", "number")
"""Parts of paths that are digits; the others may be hexadecimal."""
HOSTED = "/hosted/"
"""Pages of pull requests: their address is a secret that lets anyone read; see ``BY_LINK`` for what they do."""


def served() -> list[str]:
    """The method and path of each route for people, as the modules of the web package declare them."""
    found = set()
    for one in pkgutil.walk_packages(service.web.__path__, "service.web."):
        for value in vars(importlib.import_module(one.name)).values():
            if isinstance(value, web.RouteTableDef):
                found |= {f"{route.method} {_plain(route.path)}" for route in value if isinstance(route, web.RouteDef)}
    return sorted(one for one in found if not one.partition(" ")[2].startswith((*API, HOSTED)))


def _plain(path: str) -> str:
    """The path without the expressions that its parts must match."""
    return re.sub(r"\{(\w+):(?:[^{}]|\{[^{}]*\})*\}", r"{\1}", path)


def filled(path: str, /, **values: str) -> str:
    """The path with its parts filled in: ids that exist nowhere, unless ``values`` has them."""
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], "1" if found[1] in NUMBERS else "0" * 32), path)
