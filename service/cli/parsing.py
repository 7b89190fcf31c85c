"""How commands are declared, on click: the help of each says what it does, its options, and how to type it.

Parsing only returns a ``Call``, which runs when click is done: what a command raises is reported in one place.
"""

import difflib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
T = TypeVar("T")


class Options(SimpleNamespace):
    """The values of a command's options and arguments, by name."""


class Choice(click.Choice[T]):
    """One of some values; a misspelt one is reported with the nearest."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        near = difflib.get_close_matches(str(value), [str(one) for one in self.choices], n=1)
        return super().get_invalid_choice_message(value, ctx) + (f" Did you mean {near[0]!r}?" if near else "")


class Number(click.IntRange):
    """A whole number from ``min`` on, or to ``max``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            end = "on" if self.max is None else f"to {self.max}"
            self.fail(f"{value!r} is not a number from {self.min} {end}.", param, ctx)


class LanguageTag(click.ParamType[str]):
    """The code of a language, as BCP 47 has them."""

    name = "tag"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if _LANGUAGE_TAG.fullmatch(value) is None:
            self.fail(f"{value!r} is not the code of a language, such as de or pt-BR.", param, ctx)
        return value


_LANGUAGE_TAG = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8}){0,3}")

FILE = click.Path(readable=False, path_type=Path)
"""A file or a folder; the command itself reports what is wrong with it."""
PLACE = click.Path(readable=False)
"""A file, a folder or a URL, as it was typed."""
COUNT = Number(1)
LANGUAGE = LanguageTag()
PORT = Number(0, 65535)

DEFAULT_DATA = Path("data")

COMMON = (
    click.Option(
        ["--data"],
        type=FILE,
        metavar="DIR",
        envvar="DOCSMITH_DATA",
        default=DEFAULT_DATA,
        help="the data folder (DOCSMITH_DATA; default: data)",
    ),
    click.Option(["--json"], is_flag=True, help="print one JSON document on standard output and nothing else"),
    click.Option(
        ["--config"],
        type=FILE,
        metavar="FILE",
        envvar="DOCSMITH_CONFIG",
        help="the settings file (DOCSMITH_CONFIG; default: docsmith.toml, when it is there)",
    ),
)
"""The options of every command; they may stand before it, too."""


class Described(click.Command):
    """A command or a group. ``does`` is its line in the list of commands, and begins its help; ``notes`` and
    ``examples`` end it.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        does: str = "",
        more: str = "",
        notes: str = "",
        examples: Sequence[str] = (),
        params: Sequence[click.Parameter] | None = None,
        common: Sequence[click.Parameter] = COMMON,
        **rest: Any,
    ) -> None:
        super().__init__(name, params=[*(params or ()), *common], **rest)
        for one in self.params:
            if one.metavar is None and one.name and not isinstance(one.type, click.Choice | click.types.BoolParamType):
                one.metavar = one.name.upper()  # rather than its type
        self._more = more
        lines = "\n  ".join(["examples:", *(f"docsmith {example}" for example in examples)]) if examples else ""
        self._ends = [text for text in (notes, lines) if text]
        self.describe(does)

    def describe(self, does: str) -> None:
        self.short_help = does
        self.help = " ".join(text for text in (does and f"{does[0].upper()}{does[1:]}.", self._more) if text)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "show this message and exit"  # in lower case, as the others
        return option

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        for title, is_common in (("Options", False), ("Common options", True)):
            rows = [one.get_help_record(ctx) for one in options if (one in COMMON) is is_common]
            if shown := [row for row in rows if row is not None]:
                with formatter.section(title):
                    formatter.write_dl(shown)

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for text in self._ends:
            formatter.write(f"\n{text}\n")


class Command(Described):
    """Each of ``at_most_one`` names options that exclude each other; of ``one_of`` one is required, too.

    Its function takes the open data folder (Runtime), Options and Output. With ``works_alone`` it takes no folder, and
    opens of it what it needs, as it needs it; with ``reads_settings`` it takes Program and what reads the settings
    instead, since it also reports what is wrong with them; with ``prints`` it only prints what Program knows. With
    ``takes_words`` its last argument may be any words: one that begins with a dash, and is near to no option of the
    command, is that argument.
    """

    function: Callable[..., Any]

    def __init__(
        self,
        name: str | None = None,
        *,
        works_alone: bool = False,
        reads_settings: bool = False,
        creates_data_folder: bool = False,
        writes_for_others: bool = False,
        prints: bool = False,
        takes_words: bool = False,
        at_most_one: Sequence[Sequence[str]] = (),
        one_of: Sequence[str] = (),
        **rest: Any,
    ) -> None:
        super().__init__(name, **rest)
        assert self.callback is not None
        self.function = self.callback
        self.works_alone, self.reads_settings, self.prints = works_alone, reads_settings, prints
        self.creates_data_folder, self.writes_for_others = creates_data_folder, writes_for_others
        self._takes_words = takes_words
        self._at_most_one, self._one_of = at_most_one, one_of

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = self._parsed(ctx, args)
        if ctx.resilient_parsing:
            return rest
        for names in (*self._at_most_one, self._one_of):
            typed = [_option(name) for name in names if _is_typed(ctx, name)]
            if len(typed) > 1:
                ctx.fail(f"{typed[0]} and {typed[1]} exclude each other.")
            if names is self._one_of and names and not typed:
                ctx.fail(f"Missing option {' or '.join(map(_option, names))}.")
        return rest

    def _parsed(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, [*args])
        except click.NoSuchOption as error:
            if not self._takes_words or "--" in args or error.option_name not in args:
                raise
            if error.possibilities:
                hint = f"Did you mean {error.possibilities[0]!r}, or the words -- {error.option_name}?"
                raise click.UsageError(f"{error.message} {hint}", ctx) from error
            at = args.index(error.option_name)
            return super().parse_args(ctx, [*args[:at], *args[at + 1 :], "--", args[at]])

    def invoke(self, ctx: click.Context) -> "Call":
        return Call(self, _options(ctx))


class Call(NamedTuple):
    """The command that a command line names, with its options."""

    command: Command
    options: Options


class Group(click.Group, Described):
    command_class = Command

    def __init__(self, name: str, **rest: Any) -> None:
        super().__init__(name, no_args_is_help=False, **rest)

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self.commands)  # as they are declared


def command(name: str, **how: Any) -> Callable[[Callable[..., Any]], Command]:
    """Return a decorator that declares a command; of one beneath no group, the list of commands says what it does."""
    return click.command(name, cls=Command, **how)


def together(*decorators: Decorator) -> Decorator:
    """Return a decorator that adds the options of all of them, for several commands to have."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for one in reversed(decorators):
            function = one(function)
        return function

    return decorate


def _options(ctx: click.Context) -> Options:
    """Return the values: those typed after the command win over those typed before it, and all typed over defaults."""
    values: dict[str, Any] = {}
    typed: set[str] = set()
    at: click.Context | None = ctx
    while at is not None:
        for name, value in at.params.items():
            if name not in values or (name not in typed and _is_typed(at, name)):
                values[name] = value
            if _is_typed(at, name):
                typed.add(name)
        at = at.parent
    return Options(**values)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _is_typed(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is click.ParameterSource.COMMANDLINE
