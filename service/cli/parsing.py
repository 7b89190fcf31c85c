"""How commands are declared: the help of each says what it does, its options, and how to type it."""

import argparse
import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn


class WrongUsage(Exception):
    """The command line cannot be understood; the message is one line, with what to type to learn more."""


class Parser(argparse.ArgumentParser):
    """Takes options by their whole names alone, since a script that shortens one breaks when another begins like it,
    and names the nearest right one.
    """

    def __init__(self, **how: Any) -> None:
        super().__init__(allow_abbrev=False, **how)

    def error(self, message: str) -> NoReturn:
        raise WrongUsage(f"{message}{'' if message.endswith('?') else '.'} See: {self.prog} --help")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        try:
            found, unknown = super().parse_known_args(args, namespace)
        except WrongUsage as error:
            is_ours = str(error).endswith(f" See: {self.prog} --help")
            if is_ours and "are required" in str(error):  # is it there, but misspelt?
                for word in args or ():
                    if word.startswith("--") and word.partition("=")[0] not in {*self._option_string_actions, "--"}:
                        self._no_option(word)
            raise
        if unknown:  # here, and not where the outermost command looks, for this one knows its options
            if unknown[0].startswith("-") and unknown[0] != "-":
                self._no_option(unknown[0])
            self.error(f"{unknown[0]!r} is one argument too many")
        return found, unknown

    def _no_option(self, word: str) -> NoReturn:
        name = word.partition("=")[0]
        self.error(f"there is no option {name}{_nearest(name, self._option_string_actions)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"there is no command {str(value)!r}{_nearest(str(value), choices)}")
        near = _nearest(str(value), choices) or f". It is one of {', '.join(choices)}"
        raise argparse.ArgumentError(action, f"{str(value)!r} will not do{near}")


def _nearest(word: str, right: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(right), n=1)
    return f". Did you mean {near[0]}?" if near else ""


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
    if not text.isdecimal() or not 0 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: a number from 0 to 65535")
    return int(text)


def count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


class Formatter(argparse.HelpFormatter):
    """Fills the description, and leaves what has lines of its own."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        if isinstance(action, argparse._SubParsersAction):  # argparse forgets that these are indented once more
            widest = max((len(name) for name in action.choices), default=0)
            self._action_max_length = max(self._action_max_length, widest + self._current_indent + 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return text
        return super()._fill_text(text, width, indent)
