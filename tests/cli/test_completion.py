"""Completion, as the shells themselves work it out."""

import shutil
import subprocess

import pytest

from tests.cli.test_config import docsmith


@pytest.fixture(scope="module")
def bash(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completion")
    text = docsmith(folder, "completion", "bash").stdout
    (folder / "completion").write_text(text)
    (folder / "a-file.toml").touch()
    (folder / "b file").touch()

    def complete(line: str) -> list[str]:
        """What bash offers at the end of the line."""
        words = line.split(" ")
        script = (
            f"set -u; source ./completion; COMP_WORDS=({' '.join(repr(word) for word in words)}); "
            f"COMP_CWORD={len(words) - 1}; COMPREPLY=(); _docsmith; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        )
        done = subprocess.run(
            ["bash", "--norc", "-c", script], capture_output=True, text=True, cwd=folder, check=True, timeout=300
        )
        assert done.stderr == ""
        return done.stdout.removesuffix("\n").splitlines() if done.stdout != "\n" else []

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


def test_what_only_people_know_is_not_completed(bash):
    assert bash("docsmith key create --name ") == []
    assert bash("docsmith project create --domain k") == []
    assert "--data" not in bash("docsmith key ")
    assert "--data" in bash("docsmith key create -")


def test_a_value_after_an_equals_sign_completes(bash):
    assert bash("docsmith key create --kind = as") == ["assistant"]  # as bash parts it
    assert bash("docsmith key create --kind =") == ["admin", "assistant"]


def test_files_complete(bash):
    assert bash("docsmith restore a-") == ["a-file.toml"]
    assert bash("docsmith eval b") == ["b file"]
    assert bash("docsmith project create --repository a-") == ["a-file.toml"]
    assert bash("docsmith serve --config a-") == ["a-file.toml"]


def offered(shell: str, script: str) -> list[str]:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"asks {shell}; install it to run it")
    done = subprocess.run([program, "-c", script], capture_output=True, text=True, check=True, timeout=300)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_zsh_completes(tmp_path):
    (tmp_path / "completion").write_text(docsmith(tmp_path, "completion", "zsh").stdout)
    stand_in = 'compdef() { :; }; compadd() { shift; print -l -- "$@"; }; _files() { print files; }'
    begin = f"{stand_in}; source {tmp_path}/completion"

    def complete(*words: str) -> list[str]:
        return offered("zsh", f"{begin}; words=({' '.join(words)} ''); CURRENT={len(words) + 1}; _docsmith")

    assert "revoke" in complete("docsmith", "key")
    assert complete("docsmith", "key", "create", "--kind") == ["admin", "assistant"]
    assert complete("docsmith", "serve", "--config") == ["files"]
    assert complete("docsmith", "restore") == ["files"]
    assert complete("docsmith", "key", "create", "--name") == []


def test_fish_completes(tmp_path):
    (tmp_path / "completion").write_text(docsmith(tmp_path, "completion", "fish").stdout)

    def complete(line: str) -> list[str]:
        lines = offered("fish", f"source {tmp_path}/completion; complete -C '{line}'")
        return [line.split("\t")[0] for line in lines]

    assert complete("docsmith key re") == ["revoke"]
    assert complete("docsmith key create --kind ") == ["admin", "assistant"]
    assert f"{tmp_path}/completion" in complete(f"docsmith restore {tmp_path}/comp")
    assert complete("docsmith key create --name cr") == []


def test_what_the_builtin_agent_understands_stands_where_it_is_needed(tmp_path):
    shown = docsmith(tmp_path, "job", "create", "--help").stdout
    assert "  rename page PATH to PATH                            (and fixes the links to it)\n" in shown
