"""``python -m service``, and the ``docsmith`` command."""

import sys


def main() -> None:
    # Imported here, since child processes import this module again and need none of it.
    from service.app import main as run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    import multiprocessing

    multiprocessing.freeze_support()  # does not return in a child of the single binary
    if getattr(sys, "frozen", False):
        from service.frozen import prepare

        prepare()
    main()
