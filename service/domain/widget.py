"""The settings of a site's widget: its title, its greeting, its form and where it sends readers for more help."""

import re
from typing import Literal, get_args
from urllib.parse import urlsplit

from msgspec import Struct

from service.domain.errors import Invalid

WidgetForm = Literal["side", "modal", "popover", "inline"]
FORMS: tuple[WidgetForm, ...] = get_args(WidgetForm)
MAX_TITLE_CHARACTERS = 80
MAX_GREETING_CHARACTERS = 500
MAX_SUGGESTIONS = 6
MAX_SUGGESTION_CHARACTERS = 200
MAX_HAND_OFF_CHARACTERS = 500

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_MAIL = re.compile(r"[^\s@<>,;:?&#%\"'\\(){}\[\]]+@[^\s@<>,;:?&#%\"'\\(){}\[\]]+\.[^\s@<>,;:?&#%\"'\\(){}\[\]]+")
_COLOR = re.compile(r"#[0-9a-f]{6}")
_SHORT_COLOR = re.compile(r"#[0-9a-f]{3}")


class Widget(Struct, frozen=True, omit_defaults=True):
    """The choices of an owner; empty text means that the widget's own is shown, in the reader's language."""

    title: str = ""
    greeting: str = ""
    suggestions: tuple[str, ...] = ()
    """Questions to begin with."""
    hand_off: str = ""
    """An address that begins with ``https:``, ``http:`` or ``mailto:``. ``{threadId}`` in a link stands for the id of
    the reader's conversation; where it is missing, the id is added to the query of a link, and to a mail's subject.
    """
    form: WidgetForm = "side"
    accent: str = ""
    """A colour such as ``#0b6e4f``."""


class WidgetChange(Struct, frozen=True):
    """New values; None stays as it is, and what is empty goes back to the widget's own."""

    title: str | None = None
    greeting: str | None = None
    suggestions: tuple[str, ...] | None = None
    hand_off: str | None = None
    form: WidgetForm | None = None
    accent: str | None = None


def changed_widget(widget: Widget, change: WidgetChange) -> Widget:
    """Return the settings after a change. Raise Invalid."""
    return Widget(
        widget.title if change.title is None else _line("title", change.title, MAX_TITLE_CHARACTERS),
        widget.greeting if change.greeting is None else _line("greeting", change.greeting, MAX_GREETING_CHARACTERS),
        widget.suggestions if change.suggestions is None else _suggestions(change.suggestions),
        widget.hand_off if change.hand_off is None else _hand_off(change.hand_off.strip()),
        widget.form if change.form is None else change.form,
        widget.accent if change.accent is None else _color(change.accent.strip().lower()),
    )


def _line(name: str, text: str, most: int) -> str:
    line = text.strip()
    if _CONTROL.search(line):
        raise Invalid(f"The {name} has a line break or another control character. Write it on one line.")
    if len(line) > most:
        raise Invalid(f"The {name} has {len(line):,} characters. Write at most {most}.")
    return line


def _suggestions(texts: tuple[str, ...]) -> tuple[str, ...]:
    lines = tuple(dict.fromkeys(_line("suggestion", text, MAX_SUGGESTION_CHARACTERS) for text in texts if text.strip()))
    if len(lines) > MAX_SUGGESTIONS:
        raise Invalid(f"There are {len(lines)} suggestions. Give at most {MAX_SUGGESTIONS}.")
    return lines


def _hand_off(text: str) -> str:
    """Return a link as it is, and a mail address with ``mailto:`` before it."""
    if not text:
        return ""
    address = _line("address for more help", text, MAX_HAND_OFF_CHARACTERS)
    mail = address.removeprefix("mailto:")
    if _MAIL.fullmatch(mail):
        return f"mailto:{mail}"
    if _is_link(address):
        return address
    raise Invalid(f"{text!r} is no link and no mail address. Give one such as https://example.com/support.")


def _is_link(address: str) -> bool:
    if not address.isascii() or re.search(r"[\s<>\"\\^`|]", address):
        return False
    try:
        parts = urlsplit(address)
        _ = parts.port  # it is read late, and may be no number
    except ValueError:
        return False
    return parts.scheme in ("https", "http") and bool(parts.hostname) and parts.username is None


def _color(text: str) -> str:
    if _SHORT_COLOR.fullmatch(text):
        return "#" + "".join(digit * 2 for digit in text[1:])
    if text and not _COLOR.fullmatch(text):
        raise Invalid(f"{text!r} is not a colour. Give one such as #0b6e4f.")
    return text
