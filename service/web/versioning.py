"""What answers of a deprecated version of the API carry."""

from datetime import UTC, datetime

DEPRECATED_SINCE = datetime(2026, 11, 21, tzinfo=UTC)


def deprecated(successor: str) -> dict[str, str]:
    """``Deprecation`` (RFC 9745: a date as ``@`` and seconds since 1970) and the address that takes over (RFC 5829)."""
    return {
        "Deprecation": f"@{int(DEPRECATED_SINCE.timestamp())}",
        "Link": f'<{successor}>; rel="successor-version"',
    }
