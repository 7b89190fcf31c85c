"""A client of the protocol that sends what a test says, in both eras."""

import json
from typing import Any

import aiohttp
from msgspec import Struct

META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"


def modern(method: str, params: dict[str, Any] | None = None, *, id_: Any = 1, **meta: Any) -> dict[str, Any]:
    """Return a message of the modern era."""
    about = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}, **meta}
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": {**(params or {}), "_meta": about}}


def headers_of(message: dict[str, Any]) -> dict[str, str]:
    """Return the headers that a modern message needs."""
    params = message["params"]
    named = params.get("name", params.get("uri"))
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
    return headers if named is None else {**headers, "Mcp-Name": named}


def legacy(method: str, params: dict[str, Any] | None = None, *, id_: Any = 1) -> dict[str, Any]:
    """Return a message of the era of ``initialize``."""
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params or {}}


class Answer(Struct):
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def result(self) -> Any:
        assert self.status == 200, self.text
        return self.json["result"]

    @property
    def code(self) -> int:
        """The code of an error."""
        return self.json["error"]["code"]

    @property
    def events(self) -> list[Any]:
        """The messages of a stream."""
        return [json.loads(line[6:]) for line in self.text.splitlines() if line.startswith("data: ")]


class Client:
    def __init__(self, http: aiohttp.ClientSession, url: str, **headers: str) -> None:
        self.http, self.url, self.headers = http, url, headers

    async def send(self, message: Any, **headers: str) -> Answer:
        """Send a message as it is."""
        sent = message if isinstance(message, bytes) else json.dumps(message).encode()
        headers = {"Content-Type": "application/json", **self.headers, **headers}
        async with self.http.post(self.url, data=sent, headers=headers) as response:
            return Answer(response.status, dict(response.headers), await response.text())

    async def ask(self, method: str, params: dict[str, Any] | None = None, **headers: str) -> Answer:
        """Send a modern request."""
        message = modern(method, params)
        return await self.send(message, **headers_of(message), **headers)

    async def call(self, tool: str, **arguments: Any) -> Any:
        """Return the result of a tool."""
        return (await self.ask("tools/call", {"name": tool, "arguments": arguments})).result
