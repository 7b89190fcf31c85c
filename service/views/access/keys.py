"""API keys, without their secret part."""

from typing import Annotated, Literal

from msgspec import Struct

from service.domain.access.keys import KeyKind, KeyScope, KeyUse
from service.views.fields import NextCursor, Timestamp, described

KeyStatus = Literal["in_force", "expired", "revoked"]


class KeyView(Struct, frozen=True, rename="camel"):
    """An API key."""

    id: Annotated[str, described("The key's id.")]
    kind: Annotated[KeyKind, described("Which of the two APIs it opens.")]
    organization_id: Annotated[str, described("The organization that owns it.")]
    name: Annotated[str, described("The key's purpose.")]
    last_four: Annotated[str, described("Its last four characters.")]
    status: Annotated[KeyStatus, described("Whether it can be used.")]
    domains: Annotated[tuple[str, ...], described("The sites that an assistant key serves.")]
    allowed_addresses: Annotated[tuple[str, ...], described("From where it may be used; empty for anywhere.")]
    allowed_origins: Annotated[tuple[str, ...], described("The websites that may use it; empty for any.")]
    use: Annotated[
        KeyUse | None,
        described(
            "The callers of an assistant key: `open` for any, `server` for no web page, `browser` for pages of its"
            " origins; null for an admin key."
        ),
    ]
    reader_tokens: Annotated[bool, described("Whether each call from a page carries a reader token.")]
    created_at: Annotated[Timestamp, described("When it was created.")]
    expires_at: Annotated[Timestamp | None, described("When it ends; null for never.")]
    used_at: Annotated[Timestamp | None, described("When it was last used, to the hour.")]
    revoked_at: Annotated[Timestamp | None, described("When it was revoked.")]
    scope: Annotated[
        KeyScope | None,
        described(
            "What an admin key may do: `read`, `jobs` (read, and change jobs) or `all`. Null for an assistant key."
        ),
    ]


class CreatedKeyView(KeyView, frozen=True, rename="camel", kw_only=True):
    """A new key, with its secret part."""

    token: Annotated[str, described("The whole key. It is shown this once, and kept nowhere.")]


class KeyList(Struct, frozen=True, rename="camel"):
    """Some of an organization's keys, the newest first."""

    keys: Annotated[tuple[KeyView, ...], described("The keys.")]
    next_cursor: NextCursor
