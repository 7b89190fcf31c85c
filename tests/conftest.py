"""What holds for all tests."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from service.main.process.children import preload_children

# No example has a deadline of its own: of the 200 ms that it would have (where the variable CI is not set), a loaded
# machine may need more for one and less when it is tried again, which Hypothesis then calls a flaky test.
settings.register_profile("unhurried", settings.default, deadline=None)
settings.register_profile("quick", settings.get_profile("unhurried"), max_examples=30)
preload_children()

TESTS = Path(__file__).parent
SLOW_FOLDERS = {"agents", "cli", "clients", "end_to_end", "github"}
"""Their tests start the program, or that of a client, many times: among the quick ones only where they are named."""

LONG_FILES = {"test_faults.py", "test_fuzz_answers.py", "test_generators.py", "test_schemathesis.py"}
"""Some of their tests take minutes, so they begin first: at the end, a worker would be busy alone."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--slow", action="store_true", help="run the tests marked slow, and only those; properties with more examples"
    )


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("unhurried" if config.getoption("--slow") else "quick")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage among what is collected, which stays: that took a third of the time of the collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Properties are tested both times: with few examples among the quick tests, with many among the slow ones."""
    slow, is_named = config.getoption("--slow"), config.args_source is config.ArgsSource.ARGS
    kept, others = [], []
    for item in items:
        is_slow = item.get_closest_marker("slow") is not None
        if not is_slow and (slow or not is_named):
            is_slow = item.path.relative_to(TESTS).parts[0] in SLOW_FOLDERS
        is_property = hasattr(getattr(item, "obj", None), "hypothesis")
        (kept if is_slow == slow or (slow and is_property) else others).append(item)
    if others:
        config.hook.pytest_deselected(items=others)
    items[:] = sorted(kept, key=lambda item: item.path.name not in LONG_FILES)
