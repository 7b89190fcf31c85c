"""The formats of files that leave the service, such as ``docsmith-checkpoint-2``: a name, and a number that grows."""

from service.domain.errors import Invalid


class NewerFormat(Invalid):
    """A newer program made the file: that does not mean that it was tampered with."""

    code = "newer_format"


def require_known(found: str, newest: str) -> None:
    """Raise NewerFormat for a format of the same name whose number comes after that of the newest one known here."""
    name, _, number = found.rpartition("-")
    known_name, _, known_number = newest.rpartition("-")
    if name == known_name and number.isdecimal() and int(number) > int(known_number):
        raise NewerFormat(f"its format {found} was made by a newer docsmith; use that one (this one knows {newest}).")
