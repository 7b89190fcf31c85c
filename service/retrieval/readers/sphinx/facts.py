"""Facts about a page of Sphinx that its configuration and the other pages give."""

from collections.abc import Mapping

from msgspec import Struct


class SphinxFacts(Struct, frozen=True):
    default_role: str = ""
    captions: Mapping[str, str] = {}
    """Words of the roles of ``extlinks``, with ``%s`` for what a page writes."""
    appended: str = ""
    """``rst_prolog`` and ``rst_epilog``: definitions for every page."""
    substitutions: Mapping[str, str] = {}
    """Words for ``|version|`` and the like, and of MyST for ``{{ key }}``."""
    titles: Mapping[str, str] = {}
    """Titles of documents by ``doc NAME``, of what labels name by ``ref LABEL``."""


NO_FACTS = SphinxFacts()
