"""Secrets out of what others say, before it is logged or recorded: providers quote keys back."""

import re
from collections.abc import Collection, Mapping

LEAST_CHARACTERS = 8
"""Least length of a value that counts as a secret by its variable's name; shorter ones are words that occur anywhere.
"""
HIDDEN = "…"

_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|PRIVATE", re.IGNORECASE)
_OTHERWISE = ("_ENV", "_FILE", "_TOKENS")
"""Ends of names that hold another variable's name, a file's, or a number."""
_FORMS = re.compile(
    r"(?P<kept>"
    r"\b(?:authorization|x-api-key|api[-_ ]?key|access[-_]?token|secret|password|token)"
    r"[\"']{0,2}\s{0,3}[:=]\s{0,3}[\"']{0,2}(?:(?:bearer|basic)\s{1,3})?"
    r"|\bbearer\s{1,3}"
    r"|\b[a-z][a-z0-9+.-]{1,20}://(?=[^\s/@]{1,300}@)"
    r")[^\s\"',;&}\])@]+@?"
    r"|\b(?:sk|pk|rk|gsk|xai|hf|ghp|gho|ghs|glpat|github_pat|AKIA|AIza|docsmith)[-_]?[A-Za-z0-9_-]{12,}",
    re.IGNORECASE,
)
"""As headers, queries and JSON name them; what stands before the host of an address; keys with a vendor's prefix."""


def secrets_of(env: Mapping[str, str]) -> frozenset[str]:
    """Return the values of the variables whose names say that they hold a secret."""
    return frozenset(
        value.strip()
        for name, value in env.items()
        if _NAMES.search(name) and not name.upper().endswith(_OTHERWISE) and len(value.strip()) >= LEAST_CHARACTERS
    )


def without_secrets(text: str, secrets: Collection[str] = ()) -> str:
    """Return the text with these secrets, and what looks like one, hidden."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return _FORMS.sub(lambda found: (found["kept"] or "") + HIDDEN, text)
