"""``docsmith completion``: what shells need to complete commands and options, from their declarations."""

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

from service.cli.output import DONE, Output
from service.cli.parsing import add_command


class Words(NamedTuple):
    """The words that may follow a command: those of its level, and the values of each option."""

    path: tuple[str, ...]
    words: tuple[tuple[str, str], ...]
    """Each with what it does."""
    choices: dict[str, tuple[str, ...]]
    files: tuple[str, ...]
    """Options that take a file or a folder; among them the empty one when the command itself takes one."""
    others: tuple[str, ...]
    """Options that take what only people know."""


PLACES = ("DIR", "FILE", "FOLDER", "URL_OR_PATH")
"""How the help calls files and folders."""
TABLES = """\
_docsmith_words() {{
    case "$1" in
{words}
    esac
}}
_docsmith_values() {{
    case "$1" in
{values}
    esac
}}
"""
"""The words that may follow, by the commands so far; for an option its values: words, FILES, or OTHER."""
BASH = """\
# eval "$(docsmith completion bash)", or into /etc/bash_completion.d/docsmith
{tables}_docsmith() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} at=docsmith values one
    if [[ $word == = ]]; then  # bash takes --option=value for three words
        word=
    elif [[ $before == = ]]; then
        before=${{COMP_WORDS[COMP_CWORD-2]}}
    fi
    for one in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        [[ -n $(_docsmith_words "$at $one") ]] && at="$at $one"
    done
    values=$(_docsmith_values "$at:$before")
    if [[ -z $values && $word != -* ]]; then
        for one in $(_docsmith_words "$at"); do
            [[ $one != -* ]] && values="$values $one"
        done
        values=${{values:-$(_docsmith_values "$at:")}}
    fi
    case "$values" in
        FILES)
            local IFS=$'\n' # a name may have spaces
            COMPREPLY=($(compgen -f -- "$word"))
            ;;
        OTHER) COMPREPLY=() ;;
        *) COMPREPLY=($(compgen -W "${{values:-$(_docsmith_words "$at")}}" -- "$word")) ;;
    esac
}}
complete -o filenames -F _docsmith docsmith
"""
ZSH = """\
# eval "$(docsmith completion zsh)", after compinit
{tables}_docsmith() {{
    local at=docsmith values one
    for one in "${{(@)words[2,CURRENT-1]}}"; do
        [[ -n $(_docsmith_words "$at $one") ]] && at="$at $one"
    done
    values=$(_docsmith_values "$at:${{words[CURRENT-1]}}")
    if [[ -z $values && ${{words[CURRENT]}} != -* ]]; then
        for one in ${{=$(_docsmith_words "$at")}}; do
            [[ $one != -* ]] && values="$values $one"
        done
        values=${{values:-$(_docsmith_values "$at:")}}
    fi
    if [[ $values == FILES ]]; then
        _files
    elif [[ $values != OTHER ]]; then
        values=${{values:-$(_docsmith_words "$at")}}
        compadd -- ${{=values}}
    fi
}}
compdef _docsmith docsmith
"""


def add_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    one = add_command(
        commands,
        "completion",
        "print what a shell needs to complete commands and options",
        examples=['completion bash   # eval "$(docsmith completion bash)"', "completion fish | source"],
        parents=[common],
    )
    one.add_argument("shell", choices=("bash", "zsh", "fish"), help="for which shell")
    one.set_defaults(command=complete, works_alone=True)


async def complete(options: argparse.Namespace, output: Output) -> int:
    levels = tuple(_levels(options.whole_parser(), ()))
    if options.shell == "fish":
        text = _fish(levels)
    else:
        text = {"bash": BASH, "zsh": ZSH}[options.shell].format(tables=_tables(levels))
    output.result({"text": text}, text.rstrip("\n"))
    return DONE


def _levels(parser: argparse.ArgumentParser, path: tuple[str, ...]) -> Iterator[Words]:
    words, choices, files, others = [], {}, [], []
    for action in parser._actions:  # argparse has no other way to ask
        if isinstance(action, argparse._SubParsersAction):
            does = {choice.dest: choice.help or "" for choice in action._choices_actions}
            words += [(name, does.get(name, "")) for name in action.choices]
            for name, inner in action.choices.items():
                yield from _levels(inner, (*path, name))
        elif action.option_strings:
            option = action.option_strings[-1]
            words.append((option, action.help or ""))
            if action.choices:
                choices[option] = tuple(map(str, action.choices))
            elif action.metavar in PLACES:
                files.append(option)
            elif action.nargs != 0:
                others.append(option)
        elif action.choices:
            words += [(str(choice), "") for choice in action.choices]
        elif action.metavar in PLACES:
            files.append("")
    yield Words(path, tuple(words), choices, tuple(files), tuple(others))


def _tables(levels: tuple[Words, ...]) -> str:
    words, values = [], []
    for level in levels:
        path = " ".join(("docsmith", *level.path))
        words.append(f'        "{path}") echo "{" ".join(word for word, _ in level.words)}" ;;')
        taken = {
            **dict.fromkeys(level.files, "FILES"),
            **dict.fromkeys(level.others, "OTHER"),
            **{o: " ".join(c) for o, c in level.choices.items()},
        }
        values += [f'        "{path}:{option}") echo "{what}" ;;' for option, what in taken.items()]
    return TABLES.format(words="\n".join(words), values="\n".join(values))


def _fish(levels: tuple[Words, ...]) -> str:
    lines = ["# docsmith completion fish | source", "complete -c docsmith -f"]
    for level in levels:
        inner = [word for word, _ in level.words if not word.startswith("-")]
        seen = "; and ".join(f"__fish_seen_subcommand_from {name}" for name in level.path)
        after = f"; and not __fish_seen_subcommand_from {' '.join(inner)}" if inner and level.path else ""
        when = f"{seen}{after}" if level.path else "__fish_use_subcommand"
        for word, does in level.words:
            told = " ".join(does.split()).replace("%(default)s", "…").replace("'", "")
            if word.startswith("-"):
                wanted = f" -xa '{' '.join(level.choices[word])}'" if word in level.choices else ""
                wanted = " -rF" if word in level.files else " -x" if word in level.others else wanted
                lines.append(f"complete -c docsmith -n '{when}' -l {word.lstrip('-')}{wanted} -d '{told}'")
            else:
                lines.append(f"complete -c docsmith -n '{when}' -a {word} -d '{told}'")
        if "" in level.files:
            lines.append(f"complete -c docsmith -n '{when}' -F")
    return "\n".join(lines) + "\n"
