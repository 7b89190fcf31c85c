"""Completion, as the shells themselves work it out: they ask the program."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.test_config import docsmith
from tests.service_process import PROGRAM


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With what each shell reads, and with the program by its name."""
    folder = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "zsh", "fish"):
        (folder / shell).write_text(docsmith(folder, "completion", shell).stdout)
    program = folder / "docsmith"
    program.write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
    program.chmod(0o755)
    return folder


def offered(folder, shell: str, script: str) -> list[str]:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"asks {shell}; install it to run it")
    tree = str(Path(__file__).parent.parent.parent)
    variables = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": tree}
    done = subprocess.run(
        [program, "-c", script], capture_output=True, text=True, cwd=folder, env=variables, check=True, timeout=300
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def bash(folder):
    def complete(line: str) -> list[str]:
        """What bash offers at the end of the line; FILES where it offers those."""
        words = line.split(" ")
        script = (
            f"compopt() {{ COMPREPLY=(FILES); }}; set -u; source ./bash; COMP_WORDS=({' '.join(map(repr, words))}); "
            f"COMP_CWORD={len(words) - 1}; COMPREPLY=(); _docsmith_completion docsmith; "
            'for one in ${COMPREPLY[@]+"${COMPREPLY[@]}"}; do echo "$one"; done'
        )
        return offered(folder, "bash", script)

    return complete


def test_commands_complete(bash):
    assert bash("docsmith ke") == ["key"]
    assert {"serve", "job", "config", "completion"} <= set(bash("docsmith "))


def test_commands_within_commands_complete(bash):
    assert bash("docsmith key re") == ["revoke"]
    assert bash("docsmith completion f") == ["fish"]


def test_options_and_their_values_complete(bash):
    assert bash("docsmith key create --ki") == ["--kind"]
    assert bash("docsmith key create --kind ") == ["admin", "assistant"]
    assert bash("docsmith --json key create --kind as") == ["assistant"]


def test_free_values_are_not_completed(bash):
    assert bash("docsmith key create --name ") == []
    assert bash("docsmith project create --domain k") == []
    assert "--data" not in bash("docsmith key ")
    assert "--data" in bash("docsmith key create -")


def test_a_value_after_an_equals_sign_completes(bash):
    assert bash("docsmith key create --kind = as") == ["assistant"]  # as bash parts it
    assert bash("docsmith key create --kind =") == ["admin", "assistant"]
    assert bash("docsmith completion --data = x ba") == ["bash"]


@pytest.mark.parametrize(
    "line",
    ["restore a-", "eval b", "project create --repository a-", "serve --config a-", "--data a-", "demo --docs ."],
)
def test_files_complete(bash, line):
    assert bash(f"docsmith {line}") == ["FILES"]


def test_completion_has_no_message_for_nonsense(bash):
    assert bash("docsmith nonsense x --y") == []
    assert bash("docsmith help ke") == ["key"]


def test_zsh_completes(folder):
    stand_in = (
        "compdef() { :; }; compadd() { shift 4; print -l -- ${(P)1}; }; _path_files() { print files; }; "
        "_describe() { print -l -- ${(P)3}; }"
    )

    def complete(*words: str) -> list[str]:
        begin = f"{stand_in}; rehash; source ./zsh"
        return offered(
            folder, "zsh", f"{begin}; words=({' '.join(words)} ''); CURRENT={len(words) + 1}; _docsmith_completion"
        )

    assert any(one.startswith("revoke:") for one in complete("docsmith", "key"))
    assert complete("docsmith", "key", "create", "--kind") == ["admin", "assistant"]
    assert complete("docsmith", "serve", "--config") == ["files"]
    assert complete("docsmith", "restore") == ["files"]
    assert complete("docsmith", "key", "create", "--name") == []


def test_fish_completes(folder):
    def complete(line: str) -> list[str]:
        return [one.split("\t")[0] for one in offered(folder, "fish", f"source ./fish; complete -C '{line}'")]

    assert complete("docsmith key re") == ["revoke"]
    assert complete("docsmith key create --kind ") == ["admin", "assistant"]
    assert f"{folder}/bash" in complete(f"docsmith restore {folder}/ba")
    assert complete("docsmith key create --name cr") == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_shells_are_answered_with_what_options_do(folder, shell):
    """As zsh and fish ask, also where they are not installed."""
    asked = {"_DOCSMITH_COMPLETE": f"{shell}_complete", "COMP_WORDS": "docsmith key crea", "COMP_CWORD": "2"}
    if shell == "fish":
        asked |= {"COMP_CWORD": "crea"}
    assert "create" in docsmith(folder, **asked).stdout
    assert "create a key" in docsmith(folder, **asked).stdout
    assert asked["_DOCSMITH_COMPLETE"] in (folder / shell).read_text()


def test_builtin_instructions_are_described_where_needed(tmp_path):
    shown = docsmith(tmp_path, "job", "create", "--help").stdout
    assert "  rename page PATH to PATH\n" in shown
