"""Templates, and Markdown by strangers made safe. Nothing here knows of requests, so that a child process can do it."""

import re
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from service.runtime.sample import MANUAL
from service.web.pages.assets import TEMPLATES, asset_address
from service.web.pages.readable import counted, duration, elapsed, moment_of, readable_size, readable_time

if TYPE_CHECKING:  # 20 ms, for which a start does not wait
    from jinja2 import Environment

MAX_NAME = 300
"""Characters of a name or a title that are shown."""

INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""Control, direction and zero-width characters: text that is not what it looks like (CVE-2021-42574).

Not among them: the joiners U+200C and U+200D, which Persian and emoji need.
"""


def rendered(template: str, **values: object) -> str:
    """The template's text. Pages take ``root``, the way from their address to the root of the service."""
    return _environment().get_template(template).render(**values)


def compile_templates(*templates: str) -> None:
    """Compile templates ahead of their use."""
    for name in templates:
        _environment().get_template(name)


def safe_markdown(text: str) -> Markup:
    """See ``service.web.pages.safe_markdown``, which takes 20 ms to import: a start does not wait for it."""
    from service.web.pages import safe_markdown as markdown

    return markdown.safe_markdown(text)


def visible(text: str) -> str:
    """The text with its invisible characters shown by their code point."""
    return INVISIBLE.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text.replace("\r\n", "\n"))


def clipped(text: str) -> str:
    """The beginning of a name or a title that others chose."""
    return text if len(text) <= MAX_NAME else text[:MAX_NAME] + "…"


def web_address(url: str) -> str:
    """Return the address that others gave, if a link may lead there; else nothing, as for one that runs a script."""
    return url if is_web_link(url) else ""


def here(url: str, root: str) -> str:
    """Return the way to a pull request that this service hosts, whatever address it had when it was opened: a link that
    names another one would leave the session behind. Other addresses stay.
    """
    found = _HOSTED.fullmatch(url)
    return root + found[1] if found is not None else url


@cache
def models_page() -> str:
    """Return the way from the root to the page of the manual that says how a model is set up."""
    return "manual/models" if (MANUAL / "models.md").is_file() else "manual/configuration#models"


_HOSTED = re.compile(r"https?://[^/?#]+(?:/[^?#]*)?/(hosted/[0-9a-f]{32}/pulls/[0-9]+-[\w-]+)")


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(
        visible=visible,
        clipped=clipped,
        web_address=web_address,
        here=here,
        readable_time=readable_time,
        elapsed=elapsed,
        moment=moment_of,
        duration=duration,
        size=readable_size,
        counted=counted,
        markdown=safe_markdown,
    )
    environment.globals.update(asset=asset_address, models_page=models_page)
    return environment


def is_web_link(url: str) -> bool:
    """Return whether an address has no scheme, or that of the web."""
    scheme = re.match(r"\s*+([^/?#:]*+):", url)
    return scheme is None or scheme[1].lower() in ("http", "https")
