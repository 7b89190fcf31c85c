"""The program in a process of its own, forked from one that has imported it: some 20 ms instead of half a second.

Nothing else differs from ``python -m service``: it has its own arguments, environment, folder, output and process id,
and can be killed. What depends on how Python itself is started wants the real thing.
"""

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import IO

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.imported"])


class Forked:
    """As much of ``subprocess.Popen`` as tests need."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        stdout: IO[str] | IO[bytes] | int,
        stderr: IO[str] | IO[bytes],
    ) -> None:
        self.stdout: IO[str] | None = None
        if stdout == subprocess.PIPE:
            reading, writing = os.pipe()
            self.stdout = os.fdopen(reading, encoding="utf-8")
        else:
            writing = stdout.fileno()
        output = _Descriptor(writing), _Descriptor(stderr.fileno())
        self._process = CONTEXT.Process(
            target=_main, args=(list(arguments), dict(environment), str(Path.cwd()), *output)
        )
        self._process.start()
        if self.stdout is not None:
            os.close(writing)
        atexit.register(self.kill)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if (status := self._process.exitcode) is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout)
        atexit.unregister(self.kill)
        return status

    def send_signal(self, what: signal.Signals) -> None:
        if self._process.exitcode is None:
            with suppress(ProcessLookupError):  # it has ended, and the server that forked it is about to say so
                os.kill(self.pid, what)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class _Descriptor:
    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self):
        return _received, (DupFd(self.number),)


def _received(sent):
    return sent.detach()


def _main(arguments: list[str], environment: dict[str, str], folder: str, stdout: int, stderr: int) -> None:
    for number, output in enumerate((stdout, stderr), start=1):
        os.dup2(output, number)
        os.close(output)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[:] = ["docsmith", *arguments]
    from service import __main__ as program

    # As there: the processes that it starts import the main module first, else with all that a script imports.
    sys.modules["__main__"] = program
    try:
        program.main()
    finally:
        atexit._run_exitfuncs()  # as a Python of its own does: the last lines of the log are written then
