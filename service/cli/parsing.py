"""How commands are declared: the help of each says what it does, its options, and how to type it."""

import argparse
from collections.abc import Sequence
from typing import Any


def add_command(
    commands: Any, name: str, does: str, *, more: str = "", examples: Sequence[str] = (), **rest: Any
) -> argparse.ArgumentParser:
    """A command, or a group of commands. ``does`` is its line in the list of commands, and begins its own help."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=does,
        description=f"{does[0].upper()}{does[1:]}.{' ' if more else ''}{more}",
        epilog="\n  ".join(["examples:", *(f"docsmith {example}" for example in examples)]) if examples else None,
        formatter_class=Formatter,
        **rest,
    )
    return parser


def port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return number


def count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("give a number from 1")
    return number


class Formatter(argparse.HelpFormatter):
    """Fills the description, and leaves what has lines of its own."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return text
        return super()._fill_text(text, width, indent)
