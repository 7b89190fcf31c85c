"""The callers who read a site as Markdown, and the answers that they get.

They are those of the assistant's API: everyone where the site is public, else callers with an assistant key of it.
Each read counts as a search: of the address, or of the key, since many a key is public. Pages that are for groups of
readers are in no answer, with a key either: it says nothing of the reader behind it.
"""

import hashlib

from aiohttp import hdrs, web

from service.views.projects import ProjectView
from service.web.http.access.access import is_keyless, site_for
from service.web.http.connections.limits import count_briefly

EVERYONE: tuple[str, ...] = ()
"""The groups of readers whose pages are answered."""


async def site_to_read(request: web.Request) -> ProjectView:
    """Return the project of the site in the path, for a caller who may read it. Raise as ``site_for``; OverLimit."""
    project = await site_for(request)
    await count_briefly(request)
    return project


def tag_of(*parts: str | bytes) -> str:
    """Return the entity tag of what these parts make."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode() if isinstance(part, str) else part
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()[:32]


def head_of(request: web.Request, tag: str, content_type: str) -> dict[str, str]:
    """Return the headers of a text. It may be kept, and is asked for again by its tag: a site may be closed at once."""
    return {
        hdrs.CONTENT_TYPE: f"{content_type}; charset=utf-8",
        hdrs.ETAG: f'"{tag}"',
        hdrs.CACHE_CONTROL: "no-cache" if is_keyless(request) else "private, no-cache",
        hdrs.VARY: f"{hdrs.ACCEPT}, {hdrs.AUTHORIZATION}",
    }


def is_known(request: web.Request, tag: str) -> bool:
    """Return whether the caller has the text with this tag already."""
    return any(one.value in (tag, "*") for one in request.if_none_match or ())
