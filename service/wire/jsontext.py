"""JSON on one line, for every kind of line reader."""

import msgspec

_ENCODER = msgspec.json.Encoder()


def json_line(value: object) -> bytes:
    r"""The value as JSON without any line end inside it.

    JSON escapes CR, LF and the other C0 controls itself. U+0085, U+2028 and U+2029 it may leave as they are, but
    ``str.splitlines``, and with it line readers such as httpx's, ends a line there: so they are escaped too.
    """
    text = _ENCODER.encode(value)
    if text.isascii():
        return text
    return (
        text.replace(b"\xc2\x85", rb"\u0085")
        .replace(b"\xe2\x80\xa8", rb"\u2028")
        .replace(b"\xe2\x80\xa9", rb"\u2029")
    )  # fmt: skip
