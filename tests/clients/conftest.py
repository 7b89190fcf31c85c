import pytest

from tests.clients.chat_clients import require_clients


@pytest.fixture(scope="session")
def chat_clients() -> None:
    """The npm clients are installed; skips where they cannot be."""
    require_clients()
