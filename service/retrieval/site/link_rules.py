"""The rules of a generator for links: enough to prove that one leads nowhere, or why that cannot be known."""

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct


class Fallback(Struct, frozen=True, array_like=True):
    """A translation: a page that it lacks is shown in the language that it is made from."""

    folder: str
    prefix: str
    """The beginning of its addresses."""
    original_folder: str
    original_prefix: str


class LinkRules(Struct, frozen=True, omit_defaults=True):
    """How links are read on a site. By default nothing is known, so that only a missing file is a broken link."""

    relative: Literal["", "file", "address"] = ""
    """Where a relative link without the suffix of a page counts from; empty where either may be meant."""
    slash: bool | None = None
    """Whether addresses of pages end in a slash, which relative links count from; None for either."""
    has_all_addresses: bool = False
    """Whether every address of the site is known, so that one of no page leads nowhere."""
    has_all_files: bool = True
    """Whether a link to the file of a page needs that file; False where a build may add files."""
    has_liquid: bool = False
    """Whether tags of Liquid that name a file need it."""
    reads_files: bool = False
    """Whether the generator makes links to files of pages lead to the pages."""
    has_all_anchors: bool = True
    """Whether every anchor of a page is read from its text."""
    knows_root: bool = False
    """Whether links from the root of the host are known to reach this site."""
    base: str = ""
    """The beginning that links from the root of the host need; pages below it are the site's."""
    below: tuple[str, ...] = ()
    """Beginnings of the addresses that are known, where the site has others that programs make."""
    made: tuple[tuple[str, str], ...] = ()
    """Beginnings of addresses that the build makes from something else than pages that are read, and from what."""
    made_files: tuple[tuple[str, str], ...] = ()
    """Files, or folders of files, that the build takes from elsewhere, and from where."""
    programs: frozenset[str] = frozenset()
    """Addresses of pages that programs make."""
    patterns: tuple[tuple[str, str], ...] = ()
    """Redirects of all addresses that fit: ``:name`` is one part, ``:name*`` and ``*`` all that follows. Those with two
    of the last, or with two parameters in one part, fit nothing: no generator has them, and they take long to try.
    """
    labels: Mapping[str, str] = {}
    """Names that pages give to places in them, which links of others may have instead of addresses: in lower case, with
    the page.
    """
    has_roles: bool = False
    """Whether roles name documents and labels, and includes count from the file, as Sphinx reads them."""
    labels_elsewhere: str = ""
    """Why a label that no page gives may be there; empty where it is not."""
    list_file: str = ""
    """A list of pages in which nothing but blanks is percent-encoded; it names no page with ``#``, ``?`` or ``%``."""
    served: tuple[str, ...] = ()
    """Folders whose files are served from the root of the site."""
    fallbacks: tuple[Fallback, ...] = ()


UNKNOWN = LinkRules()
TERM = "term "
"""Before a term of a glossary among the labels of a site; ``*`` is one that is not known."""
MAX_PATTERNS = 200
_UNUSUAL = re.compile(r"\*[^*]*+\*|:\w++[^/:]*+:")
_PARAMETER = re.compile(r":([A-Za-z]\w{0,50})\*?|\*")


def redirected(address: str, rules: LinkRules) -> str | None:
    """Return where a pattern of redirects leads an address; None where none fits."""
    for source, destination in rules.patterns[:MAX_PATTERNS]:
        if _UNUSUAL.search(source):
            continue
        found = re.fullmatch(_PARAMETER.sub(_as_group, re.escape(source).replace("\\*", "*")), address)
        if found is not None:
            parts = _PARAMETER.split(destination)  # texts, and between them the names of parameters
            values = found.groupdict()
            return "".join(part if at % 2 == 0 else values.get(part or "rest") or "" for at, part in enumerate(parts))
    return None


def _as_group(match: re.Match[str]) -> str:
    name = match[1] or "rest"
    return f"(?P<{name}>.*)" if match[0].endswith("*") else f"(?P<{name}>[^/]+)"


def reason_below(path: str, listed: tuple[tuple[str, str], ...]) -> str:
    """Return the reason that is given for a path or one above it; empty for none."""
    for beginning, reason in listed:
        bare = beginning.rstrip("/")
        if path == bare or path.startswith(f"{bare}/"):
            return reason
    return ""
