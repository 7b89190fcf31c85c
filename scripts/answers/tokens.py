"""The tokens of a text, as OpenAI counts them (``cl100k_base``). The table comes with litellm; nothing is fetched."""

import importlib.util
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken


@cache
def _encoding() -> "tiktoken.Encoding":
    found = importlib.util.find_spec("litellm")
    assert found is not None
    assert found.origin is not None
    os.environ["TIKTOKEN_CACHE_DIR"] = str(Path(found.origin).parent / "litellm_core_utils" / "tokenizers")
    import tiktoken

    return tiktoken.get_encoding("cl100k_base")


def tokens_of(text: str) -> int:
    return len(_encoding().encode(text, disallowed_special=()))
