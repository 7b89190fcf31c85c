"""The npm packages of a folder with a ``package.json``, installed as its lock says."""

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

INSTALL = ["npm", "ci", "--no-audit", "--no-fund"]
INSTALL_SECONDS = 300


class CannotInstall(Exception):
    """Its message says what is missing."""


def install(folder: Path, *, finish: Callable[[], None] | None = None, version: str = "") -> None:
    """Install the packages when they are missing or the lock, or ``version``, has changed.

    ``finish``: what to do with them once they are there.

    Raises:
        CannotInstall: there is no node or npm, or the registry cannot be reached.
    """
    for command in ("node", "npm"):
        if shutil.which(command) is None:
            raise CannotInstall(
                f"{command} is missing: install Node.js 20 or later; `{' '.join(INSTALL)}` does the rest"
            )
    installed = folder / "node_modules" / ".installed"
    with (folder / "package-lock.json").open("rb") as lock:  # several test processes may find them missing at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = hashlib.sha256(lock.read() + version.encode()).hexdigest()
        if installed.is_file() and installed.read_text() == wanted:
            return
        done = subprocess.run(INSTALL, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
            raise CannotInstall(f"the npm packages cannot be installed ({' '.join(INSTALL)} in {folder}): {said[0]}")
        if finish is not None:
            finish()
        installed.write_text(wanted)


def require_packages(folder: Path, *, finish: Callable[[], None] | None = None, version: str = "") -> None:
    """Install the packages of a folder; skip the test where that cannot be. Once per test session is enough."""
    try:
        install(folder, finish=finish, version=version)
    except CannotInstall as error:
        pytest.skip(str(error))
