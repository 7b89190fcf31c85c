r"""Halves of surrogate pairs in JSON text, as ``JSON.stringify`` writes the half of an emoji that was cut in two.

``"\ud83d"`` on its own is JSON by RFC 8259 (section 8.2), but no text: decoders refuse it, and no store or stream can
hold it. A reader whose text was cut there by a client cannot do anything about it.
"""

REPLACEMENT = rb"\ufffd"
_ESCAPE = len(REPLACEMENT)


def without_half_pairs(body: bytes) -> bytes:
    """Return the JSON with U+FFFD for each half of a surrogate pair that is escaped and stands alone."""
    pieces: list[bytes] = []
    kept = at = 0
    while (at := body.find(b"\\", at)) >= 0:
        half = _half_at(body, at)
        if not half:
            at += 2
        elif half == "high" and _half_at(body, at + _ESCAPE) == "low":
            at += 2 * _ESCAPE
        else:
            pieces += [body[kept:at], REPLACEMENT]
            kept = at = at + _ESCAPE
    return b"".join([*pieces, body[kept:]]) if pieces else body


def _half_at(body: bytes, at: int) -> str:
    """Return ``high`` or ``low`` where an escape of such a half begins, else an empty text."""
    if body[at : at + 2] != b"\\u":
        return ""
    try:
        code = int(body[at + 2 : at + _ESCAPE], 16)
    except ValueError:
        return ""
    if not 0xD800 <= code < 0xE000:
        return ""
    return "high" if code < 0xDC00 else "low"
