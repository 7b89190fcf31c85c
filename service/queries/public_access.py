"""The words for the access to a public site: who reads what, within which limits, and who pays."""

from collections.abc import Sequence

from msgspec import Struct

from service.queries.payments import payer
from service.runtime.settings.settings import LimitsSection
from service.views.sites import PaymentView


class PublicSite(Struct, frozen=True):
    """A site that answers everyone."""

    domain: str
    origins: Sequence[str]
    pages: int | None
    """Pages of its index; None where it has none yet."""
    restricted: int
    """Pages among them that are for groups of readers alone."""


def access_lines(site: PublicSite, payment: PaymentView, limits: LimitsSection) -> dict[str, str]:
    """Return what becomes readable, within which limits, and who pays for it, by its name."""
    return {
        "access": "public: without a key",
        "readable": _readable(site),
        "for agents": f"/sites/{site.domain}/llms.txt and /mcp/{site.domain}",
        "origins": ", ".join(site.origins) or "none: no web page may ask it, programs may",
        "limits": f"{_limit(limits.public_site_day)} questions a day, {_limit(limits.public_address_hour)} an hour from"
        f" an address, {_limit(limits.public_searches_minute)} searches a minute",
        "paid by": payer(payment),
    }


def _readable(site: PublicSite) -> str:
    if site.pages is None:
        return f"nothing yet: docsmith index {site.domain}"
    hidden = f"; {site.restricted:,} restricted to groups stay hidden" if site.restricted else ""
    return f"{site.pages - site.restricted:,} pages of its index, by anyone, in answers, searches and as text{hidden}"


def _limit(number: int) -> str:
    return f"{number:,}" if number else "any number of"
