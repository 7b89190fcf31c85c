"""Which names a tree of ours may hold. Without a checkout nothing is written by these names here, but others check
out what we commit, on file systems that fold case (macOS, Windows), ignore code points (HFS+) or know other spellings
(NTFS). The rules are those of git's ``verify_path`` (read-cache.c) and ``is_hfs_dotgit``/``is_ntfs_dotgit`` (path.c).
"""

import re
import unicodedata

from service.domain.errors import Invalid
from service.domain.texts.unicode_forms import normalized

MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 4_096
MAX_DEPTH = 64
MAX_SHOWN = 1_000
"""Characters of a path that is shown though it cannot be used."""

HFS_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Code points that HFS+ drops when it compares names (utf8.c, ``next_hfs_char``)."""

NTFS_DOTGIT = re.compile(r"(?:\.git|git~1)[ .]*(?::.*)?", re.IGNORECASE | re.DOTALL)
"""NTFS drops trailing spaces and dots and splits off an alternate data stream; ``git~1`` is the short name."""

GIT_FILES = re.compile(r"\.git(?:modules|attributes)[ .]*(?::.*)?", re.IGNORECASE | re.DOTALL)
"""Files that make git act: read as text, never written."""


def is_dot_git(name: str) -> bool:
    """Would some file system take this for ``.git``? Backslashes part names on NTFS."""
    return any(NTFS_DOTGIT.fullmatch(HFS_IGNORED.sub("", part)) for part in name.split("\\"))


def is_plain(name: bytes) -> bool:
    """May a tree entry of this name be shown? Only UTF-8, and nothing that means something else anywhere."""
    return unusable(name) is None


def unusable(name: bytes) -> str | None:
    """Return why a tree entry of this name is not shown, as a sentence; None when it is."""
    if len(name) > MAX_NAME_BYTES:
        return f"Its name is longer than {MAX_NAME_BYTES} bytes."
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return "Its name is not UTF-8."
    if "\\" in text:
        return "Its name has a backslash, which parts folders on Windows."
    return None if is_plain_text(text) else "Its name has control characters, or is one that git keeps for itself."


def shown(path: bytes) -> str:
    """Return a path for people to read, with escapes for what cannot be shown; cut when it is too long."""
    text = path.decode("utf-8", "backslashreplace")
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def is_plain_text(name: str) -> bool:
    return not (
        name in ("", ".", "..")
        or "/" in name
        or "\\" in name
        or not (name.isprintable() or not any(unicodedata.category(character) in ("Cc", "Cs") for character in name))
        or is_dot_git(name)
    )


def folded(name: str) -> str:
    """Equal for names that a case-folding or normalising file system takes for the same."""
    return normalized("NFC", HFS_IGNORED.sub("", normalized("NFC", name)).casefold())


def difference(one: str, other: str) -> str:
    """Return in what two names differ that ``folded`` takes for the same."""
    if normalized("NFC", one) == normalized("NFC", other):
        return "in Unicode normalisation"
    return "in case" if one.casefold() == other.casefold() else "in case and Unicode normalisation"


def checked_path(path: str) -> tuple[str, ...]:
    """The parts of a path that may be written. Raises Invalid."""
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        raise Invalid("A path is text.", code="bad_path") from None
    if size > MAX_PATH_BYTES:
        raise Invalid("The path is too long.", code="bad_path")
    parts = tuple(path.split("/"))
    if len(parts) > MAX_DEPTH:
        raise Invalid("The path is too deep.", code="bad_path")
    for part in parts:
        if not is_plain_text(part) or GIT_FILES.fullmatch(HFS_IGNORED.sub("", part)):
            raise Invalid(f"{path!r} is not the path of a file that can be written.", code="bad_path")
        if len(part.encode()) > MAX_NAME_BYTES:
            raise Invalid("A name in the path is too long.", code="bad_path")
    return parts
