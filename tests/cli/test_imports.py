"""Commands start fast: none imports what it does not need."""

import json
import subprocess
import sys
from importlib import import_module

import pytest

from service.cli.main import COMMANDS
from tests.service_process import Service

HEAVY = ("aiohttp", "dulwich", "eventstore", "jinja2", "litellm", "service.agent", "service.web", "service.workers")
"""Each takes from 50 ms to two seconds."""


def imported_by(*arguments: str) -> set[str]:
    """The names of the modules, and of the packages above them."""
    program = (
        "import json, sys\n"
        "from service.main.program import main\n"
        "code = main(sys.argv[1:])\n"
        "print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    code, modules = json.loads(done.stderr.splitlines()[-1])  # below a note of the command, if there is one
    assert code == 0
    return set(modules)


def test_the_version_needs_no_library_to_speak_of():
    for small in (["version"], ["--help"], ["help"]):
        assert not imported_by(*small).intersection({*HEAVY, "asyncio"})


@pytest.mark.parametrize("command", [("project", "list"), ("key", "list"), ("key", "create", "--kind", "admin")])
def test_small_commands_import_nothing_that_serves(tmp_path, command):
    service = Service(tmp_path / "data")
    service.cli("organization", "create", "--name", "Acme")
    modules = imported_by(*command, "--data", str(service.data))
    assert not modules.intersection(set(HEAVY) - {"eventstore"})


def test_every_command_is_in_the_module_named_in_the_table(tmp_path):
    for name, (place, does) in COMMANDS.items():
        module, _, attribute = place.partition(":")
        command = getattr(import_module(f"service.cli.{module}"), attribute)
        assert command.name == name
        shown = Service(tmp_path / "data").run(name, "--help")
        assert shown.returncode == 0
        assert does[1:20] in " ".join(shown.stdout.split())


def test_the_service_leaves_to_its_children_what_only_they_need():
    """8 MB of memory."""
    program = (
        "import json, sys, service.main.running, service.adapters.website.site\nprint(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"docutils", "lxml"}.intersection(json.loads(done.stdout))
