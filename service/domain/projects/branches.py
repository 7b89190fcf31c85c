"""Names of branches, as git accepts them."""

import re

from service.domain.errors import Invalid

MAX_BRANCH_PART_BYTES = 240
"""Limit for one part of a branch's name, in bytes. File systems allow 255; git needs some of them, for ``.lock``."""


def checked_ref(ref: str) -> str:
    """Return a branch's name. Raise Invalid when git does not accept it (git-check-ref-format(1))."""
    if ref != legal_branch(ref) or len(ref) > 200:
        raise Invalid(f"Git does not accept {ref!r} as the name of a branch.")
    return ref


def legal_branch(name: str, *, fallback: str = "docs/update") -> str:
    """Return the nearest branch name that git accepts, by the rules of git-check-ref-format(1); idempotent.

    The whole name of a branch, ``refs/heads/main``, becomes ``main``. Each part of it is a file's name on most servers,
    and so has at most MAX_BRANCH_PART_BYTES.
    """
    name = re.sub(r"[\x00-\x20\x7f~^:?*\[\\]+|\.\.+|@\{", "-", name[:200])
    parts: list[str] = []
    for part in name.split("/"):
        part = part.encode(errors="ignore")[:MAX_BRANCH_PART_BYTES].decode(errors="ignore")
        part = part.lstrip(".-" if not parts else ".").rstrip(".")
        while part.endswith(".lock"):
            part = part[: -len(".lock")].rstrip(".")
        if part:
            parts.append(part)
    if parts[:2] == ["refs", "heads"]:
        return legal_branch("/".join(parts[2:]), fallback=fallback)
    legal = "/".join(parts)
    return fallback if legal in ("", "@", "HEAD") else legal
