"""``python -m service``, and the ``docsmith`` command."""

import gc
import signal
import sys

COLLECTED_OBJECTS = 10_000
"""New objects after which Python looks for cycles among them. Its own 700 are made 220 times while the service starts,
for 60 ms; to look through this many takes less than a millisecond.
"""


def main() -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Until a command is under way there is nothing to end in order, and Python would print which import it was at.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(COLLECTED_OBJECTS)
    # Imported here, since child processes import this module again and need none of it.
    from service.main.program import main as run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    import multiprocessing

    multiprocessing.freeze_support()  # does not return in a child of the single binary
    if getattr(sys, "frozen", False):
        from service.main.process.frozen import prepare

        prepare()
    main()
