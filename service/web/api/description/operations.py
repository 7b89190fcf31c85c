"""One route of the API, as its handler describes it: with ``@routes.operation(…)``, which serves and describes it.

``openapi`` makes the API's description of it. Nothing here knows a handler.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Concatenate, Literal, ParamSpec, TypeAlias

from aiohttp import web
from msgspec import Meta, Struct, structs

from service.web.http.routes import aliases_of

SchemaOf = Any
"""A type that msgspec can describe."""

KeyName = Literal["admin", "assistant"]
OF_ORGANIZATIONS = "/v2/"
"""Beginning of the paths that admin keys open, besides those of a project."""


class Parameter(Struct, frozen=True):
    name: str
    description: str
    type: SchemaOf = str
    where: Literal["path", "query", "header"] = "query"
    required: bool = False
    example: Any = None


def limit_parameter(listed: int, most: int) -> Parameter:
    """Return the parameter for the length of a list."""
    kind = Annotated[int, Meta(ge=1, le=most)]
    return Parameter("limit", f"How many at most, 1 to {most}; {listed} when not given.", kind, example=listed)


def cursor_parameter(kind: SchemaOf) -> Parameter:
    return Parameter("cursor", "The `nextCursor` of an earlier answer.", kind)


ID_CURSOR = cursor_parameter(Annotated[str, Meta(pattern="^[0-9a-f]{32}$")])
PATH_PARAMETERS = {
    parameter.name: parameter
    for parameter in (
        Parameter("projectId", "The project's id, as `docsmith project list` shows it.", where="path"),
        Parameter("domain", "The site's name, such as `guide` or `docs.example.com`.", where="path", example="guide"),
        Parameter("id", "The job's id.", where="path"),
        Parameter("chatId", "The `id` that the chat's requests carry in their body.", where="path"),
        Parameter("keyId", "The key's id.", where="path"),
        Parameter("personId", "The person's id.", where="path"),
        Parameter("webhookId", "The webhook's id.", where="path"),
        Parameter("deliveryId", "The delivery's id: the `webhook-id` that was sent.", where="path"),
        Parameter("threadId", "The thread's id, or that of a question in it.", where="path"),
        Parameter("gapId", "The gap's id, as the list of gaps shows it.", where="path"),
        Parameter("messageId", "The reply's id.", where="path"),
        Parameter("number", "The number of a citation in the answer.", where="path", example="1"),
    )
}


class Answer(Struct, frozen=True):
    """One answer that is no error."""

    description: str
    type: SchemaOf = None
    """Type of its JSON body; None without a body, or with one that is not JSON. In a stream of events: of their
    ``data``.
    """
    media_type: str = "application/json"
    headers: Sequence[str] = ()
    """Names in ``HEADERS``, besides those that all such answers have."""
    example: Any = None
    also: Mapping[str, str] = {}
    """Other media types that the caller may choose, each with an example."""
    leads_to: Mapping[str, str] = {}
    """Operations that take an ``id`` of this answer: their names, and where it is."""


class Operation(Struct, frozen=True):
    method: Literal["GET", "POST"]
    path: str
    id: str
    """A name for the functions of generated clients."""
    tag: str
    summary: str
    answers: Mapping[int, Answer]
    description: str = ""
    body: SchemaOf = None
    body_examples: Mapping[str, Any] = {}
    is_body_optional: bool = False
    file: str = ""
    """The media type of the file that is its body."""
    parameters: Sequence[Parameter] = ()
    """Besides those of its path."""
    errors: Mapping[int, Sequence[str]] = {}
    """Status to codes, besides those that ``common_errors`` adds."""
    limited: bool = False
    """Counted by the limits."""
    answers_head: bool = True
    """False for a GET with effects."""

    @property
    def key(self) -> KeyName | None:
        if "{projectId}" in self.path or self.path.startswith(OF_ORGANIZATIONS):
            return "admin"
        return "assistant" if "{domain}" in self.path else None

    @property
    def is_deprecated(self) -> bool:
        return self.tag == "Deprecated"

    @property
    def aliases(self) -> Sequence[str]:
        """Older paths that the same handler answers."""
        return aliases_of(self.path)

    @property
    def path_parameters(self) -> Sequence[Parameter]:
        return [PATH_PARAMETERS[name] for name in re.findall(r"{(\w+)}", self.path)]

    @property
    def all_parameters(self) -> Sequence[Parameter]:
        return [*self.path_parameters, *self.parameters]


class Notice(Struct, frozen=True):
    """A request that the service sends to an address outside."""

    name: str
    summary: str
    description: str
    body: SchemaOf
    example: Any
    headers: Mapping[str, str]
    answers: Mapping[str, str]


class Tag(Struct, frozen=True):
    name: str
    description: str


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---" for _ in head], *rows))


P = ParamSpec("P")
Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _registers(describe: Callable[P, Operation]) -> Callable[Concatenate["Routes", P], Callable[[Handler], Handler]]:
    def register(routes: "Routes", /, *fields: P.args, **named_fields: P.kwargs) -> Callable[[Handler], Handler]:
        operation = describe(*fields, **named_fields)
        options = {} if operation.answers_head else {"allow_head": False}
        routes.operations.append(structs.replace(operation, path=_without_patterns(operation.path)))

        def serve(handler: Handler) -> Handler:
            for path in (operation.path, *aliases_of(operation.path)):
                routes.route(operation.method, path, **options)(handler)
            return handler

        return serve

    return register


class Routes(web.RouteTableDef):
    """The routes of a module. ``operation`` takes the fields of an ``Operation``; its path may have patterns."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[Operation] = []

    operation = _registers(Operation)


def _without_patterns(path: str) -> str:
    """Return a route's path as the description has it: ``{id:[0-9]+}`` is ``{id}``."""
    first, *parts = path.split("{")
    for part in parts:
        named, _, rest = part.partition("}")
        first += f"{{{named.partition(':')[0]}}}{rest}"
    return first
