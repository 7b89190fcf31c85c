"""The forms of instructions that the builtin editor understands; help, replies and the manual show these."""

from msgspec import Struct

FORMS = (
    'replace "A" with "B" [in PATH, or in every page]',
    'add "TEXT" to PATH [under "HEADING", before "HEADING", or at the top], or to every page',
    'create page PATH with title "T" [and text "TEXT"]',
    "rename page PATH to PATH",
    "remove page PATH",
    'set title of PATH to "T"',
    "fix broken links [in PATH]",
)


class Form(Struct, frozen=True):
    """A form as people fill it in."""

    text: str
    """Without what may be left out."""
    more: str
    """Words that may be added to it; empty for none."""


def forms() -> tuple[Form, ...]:
    """Return the forms to fill in."""
    return tuple(_form(one) for one in FORMS)


def _form(text: str) -> Form:
    needed, bracket, more = text.partition(" [")
    if not bracket:
        return Form(text, "")
    optional, _, rest = more.rpartition("]")
    return Form(needed, f"{optional}{rest}")
