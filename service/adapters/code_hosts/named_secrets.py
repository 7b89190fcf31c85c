"""The secrets that projects name by their variables: a token, or the private key of a GitHub App.

A secret is the value of the variable, or the content of the file that the variable of the same name with ``_FILE`` at
its end names, as container platforms mount them. It is read at each use, so a renewed one counts at once.
"""

from collections.abc import Mapping
from pathlib import Path

from service.domain.errors import Forbidden
from service.ports.code_host import TOKEN_MISSING
from service.ports.docs_source import Source

MAX_SECRET_BYTES = 64 * 1024


def secret(env: Mapping[str, str], variable: str, purpose: str) -> str:
    """Raises Forbidden (``token_missing``): neither variable is set, or the file cannot be read."""
    if value := env.get(variable, "").strip():
        return value
    file = env.get(f"{variable}_FILE", "").strip()
    if not file:
        raise Forbidden(
            f"The variable {variable}, named for {purpose}, is not set; set it, or {variable}_FILE to a file's name.",
            code=TOKEN_MISSING,
        )
    try:
        with Path(file).open("rb") as opened:
            value = opened.read(MAX_SECRET_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Forbidden(
            f"{file}, which {variable}_FILE names for {purpose}, cannot be read: {reason}.", code=TOKEN_MISSING
        ) from None
    if not value:
        raise Forbidden(f"{file}, which {variable}_FILE names for {purpose}, is empty.", code=TOKEN_MISSING)
    return value


def token_from(env: Mapping[str, str], source: Source) -> str:
    """The token that a source names, "" when it names none. Raises Forbidden."""
    if not source.git_token_env:
        return ""
    token = secret(env, source.git_token_env, f"the token of {source.repository}")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise Forbidden(
            f"The variable {source.git_token_env} does not hold a token: tokens have no spaces or line breaks.",
            code=TOKEN_MISSING,
        )
    return token
