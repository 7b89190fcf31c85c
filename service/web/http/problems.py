"""Errors as problem details (RFC 9457), and the reading of bodies.

``error`` repeats ``detail``: older clients read that field, and chat clients show the whole body to people, so both are
one short plain sentence.
"""

import asyncio
import errno
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

import msgspec
import structlog
from aiohttp import hdrs, web
from msgspec import Struct
from multidict import istr

from eventstore import Metadata, OutcomeUnknown, StoreUnavailable, WrongExpectedVersion
from service.domain.access.idempotency import KeyReused
from service.domain.access.proof_of_work import Challenge, ProofRequired
from service.domain.errors import (
    OUT_OF_DESCRIPTORS,
    BodyBroken,
    BodyTooLarge,
    BodyTooSlow,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    RateLimited,
    ServiceError,
    Unauthorized,
    Unavailable,
    UnsupportedMediaType,
)
from service.runtime.content_coding import unpacked
from service.views.fields import Reference, described
from service.web.http.access.hosts import is_page
from service.web.http.answers.security_headers import PLAIN_HEADERS
from service.web.http.half_pairs import without_half_pairs
from service.web.http.routes import route_of

log = structlog.get_logger()

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
T = TypeVar("T")

INVALID_JSON = "invalid_json"
MAX_BODY_BYTES = 5 * 1024 * 1024
"""Chat clients send echoed tool results back."""

RETRY_SECONDS = 5
"""The ``Retry-After`` of what cannot be done right now, where nothing says more."""

STATUS: dict[type[ServiceError], int] = {
    Invalid: 400,
    Unauthorized: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    RateLimited: 429,
    Unavailable: 503,
    ServiceError: 500,
}
TITLES = {
    400: "Bad request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    408: "Request timeout",
    409: "Conflict",
    413: "Request body too large",
    415: "Unsupported media type",
    417: "Expectation failed",
    421: "Misdirected request",
    422: "Unprocessable content",
    429: "Too many requests",
    431: "Request header fields too large",
    500: "Internal error",
    503: "Unavailable",
}
CODES = {
    400: "invalid_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "body_too_slow",
    413: "body_too_large",
    415: "unsupported_media_type",
    417: "expectation_failed",
    431: "head_too_large",
    500: "internal",
}
SENTENCES = {
    400: "The request could not be read.",
    401: "This needs an API key.",
    404: "There is nothing at this address.",
    405: "This address does not support that method.",
    408: BodyTooSlow.sentence,
    413: f"The request body is larger than {MAX_BODY_BYTES // 1024 // 1024} MiB.",
    417: "Send no Expect header, or 100-continue.",
    431: "The request line or a header is too long.",
    500: "Something went wrong on our side; it has been logged.",
}


class SignInRequired(Unauthorized):
    """A page asks who it is for, and no one is signed in. A browser that opens a page is sent to sign in."""

    code = "sign_in_required"

    def __init__(self) -> None:
        super().__init__("This needs you to be signed in. Open the sign-in page.")


REQUEST_ID = web.RequestKey("request_id", str)
X_REQUEST_ID = istr("X-Request-Id")
ACTOR = web.RequestKey("actor", str)


class FieldProblem(Struct, frozen=True):
    """What is wrong at one place of the body."""

    path: Annotated[str, described("A JSON path into the body, such as `$.messages[0].role`, or a name of the query.")]
    message: Annotated[str, described("The problem at that place.")]


class ProblemDetails(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """An error, as RFC 9457 has it."""

    type: Annotated[Reference, described("The address of a page that says what to do about it.")]
    title: Annotated[str, described("The meaning of the status.")]
    status: Annotated[int, described("The answer's status.")]
    detail: Annotated[str, described("The problem in one plain sentence, which may change.")]
    code: Annotated[str, described("A stable name of the problem, for programs.")]
    error: Annotated[str, described("The same as `detail`: older clients read it here.")]
    request_id: Annotated[str, described("The request's id, as in `X-Request-Id` and in the service's log.")]
    errors: Annotated[
        tuple[FieldProblem, ...], described("The problems with their places; left out when there are none.")
    ] = ()
    challenge: Annotated[
        Challenge | None, described("Work to do first, where the code is `proof_required`; left out elsewhere.")
    ] = None


STATUS |= {BodyTooSlow: 408, BodyTooLarge: 413, UnsupportedMediaType: 415}

UNAVAILABLE_SENTENCE = "The service cannot do this right now; try again."
OUTCOME_UNKNOWN = "outcome_unknown"
OUTCOME_UNKNOWN_SENTENCE = (
    "It is not known whether this was recorded. Look before you send it again, or use an Idempotency-Key."
)

ErrorPage = Callable[[web.Request, int, str, str], web.Response]
ERROR_PAGE: web.AppKey[ErrorPage] = web.AppKey("ERROR_PAGE")
"""Makes a page of an error, from its status, code and sentence: for people whose browser opened the address."""

BODY_SECONDS: web.AppKey[float] = web.AppKey("BODY_SECONDS")
"""For a JSON body to arrive."""
STATUS[KeyReused] = 422  # the status that the draft on idempotency keys has for it


def problem(
    request: web.Request,
    status: int,
    code: str,
    detail: str,
    *,
    errors: tuple[tuple[str, str], ...] = (),
    headers: dict[str, str] | None = None,
) -> web.Response:
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers = {"Retry-After": str(RETRY_SECONDS), **(headers or {})}
    if ERROR_PAGE in request.app and _reads_pages(request):
        page = request.app[ERROR_PAGE](request, status, code, detail)
        page.headers.update(headers or {})
        return page
    body = encoded_problem(status, code, detail, request.get(REQUEST_ID, ""), errors)
    return web.Response(status=status, body=body, content_type="application/problem+json", headers=headers)


def _reads_pages(request: web.Request) -> bool:
    """Return whether a browser or htmx asks for a page: both name HTML, which programs and their libraries do not."""
    return is_page(request) and "text/html" in request.headers.get("Accept", "")


def encoded_problem(
    status: int,
    code: str,
    detail: str,
    request_id: str,
    errors: tuple[tuple[str, str], ...] = (),
    challenge: Challenge | None = None,
) -> bytes:
    details = ProblemDetails(
        type=f"/docs/errors/{code}",
        title=TITLES.get(status, "Error"),
        status=status,
        detail=detail,
        code=code,
        error=detail,
        request_id=request_id,
        errors=tuple(FieldProblem(path, message) for path, message in errors),
        challenge=challenge,
    )
    return msgspec.json.encode(details)


def problem_response(request_id: str, status: int) -> web.Response:
    """Return the problem for a request that none of our code has seen, from its status alone."""
    code = CODES.get(status, f"http_{status}")
    body = encoded_problem(status, code, SENTENCES.get(status, TITLES.get(status, "Error") + "."), request_id)
    headers = {**PLAIN_HEADERS, "Cache-Control": "no-store", "X-Request-Id": request_id}
    response = web.Response(status=status, body=body, content_type="application/problem+json", headers=headers)
    response.headers["Server"] = ""
    return response


def status_of(error: ServiceError) -> int:
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


async def problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every failure before the answer has begun becomes a problem; after that the connection is cut."""
    try:
        return await handler(request)
    except ServiceError as error:
        return _of_service_error(request, error)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        kept = {
            name: error.headers[name]
            for name in ("Allow", "Cache-Control", "WWW-Authenticate")
            if name in error.headers
        }
        code = CODES.get(error.status, f"http_{error.status}")
        return problem(request, error.status, code, SENTENCES.get(error.status, error.reason + "."), headers=kept)
    except (StoreUnavailable, WrongExpectedVersion, TimeoutError) as error:
        if _begun(request):
            raise
        log.warning("store unavailable", path=route_of(request), kind=type(error).__name__)
        if isinstance(error, OutcomeUnknown):
            return problem(request, 503, OUTCOME_UNKNOWN, OUTCOME_UNKNOWN_SENTENCE)
        return problem(request, 503, "unavailable", UNAVAILABLE_SENTENCE)
    except ConnectionResetError:
        raise
    except Exception as error:  # the edge of a request; the other such clauses are at the edges of a job and of a reply
        is_short = isinstance(error, OSError) and error.errno in OUT_OF_DESCRIPTORS | {errno.EIO}
        if is_short:
            log.warning("files cannot be used", path=route_of(request), reason=str(error))
        else:
            log.exception("unhandled", path=route_of(request), request_id=request.get(REQUEST_ID))
        if _begun(request):
            raise
        if is_short:
            return problem(request, 503, "unavailable", UNAVAILABLE_SENTENCE)
        return problem(request, 500, "internal", "Something went wrong on our side; it has been logged.")


def _begun(request: web.Request) -> bool:
    """Return whether the answer's head has been sent: then only a cut connection shows that it is incomplete."""
    writer = request._payload_writer if hasattr(request, "_payload_writer") else None
    return bool(writer is not None and getattr(writer, "output_size", 0))


def _of_service_error(request: web.Request, error: ServiceError) -> web.Response:
    headers: dict[str, str] = {}
    if isinstance(error, SignInRequired):
        return _to_sign_in(request, error)
    if isinstance(error, ProofRequired):
        status, request_id = status_of(error), request.get(REQUEST_ID, "")
        body = encoded_problem(status, error.code, str(error), request_id, challenge=error.challenge)
        return web.Response(status=status, body=body, content_type="application/problem+json")
    if isinstance(error, Unauthorized):
        # RFC 6750, section 3.1: an error is named to those who sent a key, so that a client asks for another one.
        is_sent = request.headers.get(hdrs.AUTHORIZATION, "").lower().startswith("bearer ")
        is_refused = is_sent and error.code in ("unauthorized", "key_expired")
        headers["WWW-Authenticate"] = 'Bearer error="invalid_token"' if is_refused else "Bearer"
    if isinstance(error, Unavailable) and error.retry_after_seconds is not None:
        headers["Retry-After"] = str(max(1, round(error.retry_after_seconds)))
    errors = error.problems if isinstance(error, Invalid) else ()
    return problem(request, status_of(error), error.code, str(error), errors=errors, headers=headers)


def _to_sign_in(request: web.Request, error: SignInRequired) -> web.Response:
    """Return the way to the sign-in page and back, relative so that it works behind a proxy with a path of its own."""
    up = "../" * (request.path.count("/") - 1) or "./"
    address = f"{up}sign-in?next={quote(request.path_qs, safe='/')}"
    if "HX-Request" in request.headers:  # a part of a page: the page itself has to go
        return problem(request, 401, error.code, str(error), headers={"HX-Redirect": address})
    if request.method in ("GET", "HEAD"):
        return web.Response(status=303, headers={"Location": address})
    return problem(request, 401, error.code, str(error))


def name_request(request: web.Request, response: web.StreamResponse) -> None:
    """Add the request's id to every answer's head."""
    response.headers.setdefault(X_REQUEST_ID, request.get(REQUEST_ID, ""))


def metadata_of(request: web.Request) -> Metadata:
    return Metadata(actor=request.get(ACTOR, "system"), correlation_id=request[REQUEST_ID])


async def read_body(request: web.Request, kind: type[T], *, mends_text: bool = False) -> T:
    """Return the JSON body as the given type. ``mends_text``: half an emoji in it is replaced, and not refused.

    Raises:
        UnsupportedMediaType: its content type is another than JSON's.
        Invalid: not JSON, or not of that shape; the message names the place.
        BodyTooSlow: it did not arrive in time.
    """
    if request.content_type != "application/json" and not request.content_type.endswith("+json"):
        raise UnsupportedMediaType("Send the body as Content-Type: application/json.")
    body = await read_bytes(request)
    try:
        return decoded_at("$", body, kind)
    except Invalid as error:
        if not mends_text or error.code != INVALID_JSON:
            raise
        mended = await asyncio.to_thread(without_half_pairs, body)
        if mended is body:
            raise
    return decoded_at("$", mended, kind)


async def read_bytes(request: web.Request) -> bytes:
    """Return the body, unpacked. Raises Invalid, BodyTooSlow, BodyTooLarge, UnsupportedMediaType."""
    try:
        async with asyncio.timeout(request.app[BODY_SECONDS]):
            body = await request.read()
    except TimeoutError:
        raise BodyTooSlow() from None
    except web.RequestPayloadError:
        raise BodyBroken() from None
    coding = request.headers.get("Content-Encoding", "")
    return await asyncio.to_thread(unpacked, coding, body, MAX_BODY_BYTES) if coding else body


def forget_body(request: web.Request) -> None:
    """Free the memory of the body that was read: aiohttp keeps it for as long as the request is answered."""
    request._read_bytes = None


def decoded_at(place: str, raw: bytes | msgspec.Raw, kind: type[T]) -> T:
    """A part of the body as the given type; ``place`` is its JSON path. Raises Invalid, as ``read_body``."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        message, path = _message_and_path(str(error))
        path = place + path.removeprefix("$")
        raise Invalid(f"{path}: {message}", problems=((path, message),)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Invalid("The body is not valid JSON.", code=INVALID_JSON) from None


def _message_and_path(text: str) -> tuple[str, str]:
    """Return place and message from msgspec's ``Expected `str`, got `int` - at `$.a` ``; a missing field's own name is
    added to the path.
    """
    message, _, at = text.partition(" - at ")
    path = at.strip("`") or "$"
    missing = re.fullmatch(r"Object missing required field `([^`]+)`", message)
    if missing:
        return "is required", f"{path}.{missing[1]}"
    return message.replace("`", ""), path


def json_response(value: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        status=status, body=msgspec.json.encode(value), content_type="application/json", headers=headers
    )
