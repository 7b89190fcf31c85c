"""How a site reads its Markdown."""

from msgspec import Struct

from service.markup.slugs import SlugStyle

PYTHON_MARKDOWN = frozenset(("python", "python-unicode", "pymdownx"))


class Dialect(Struct, frozen=True):
    mdx: bool = False
    """``.md`` files too; ``.mdx`` are in any case."""
    shortcodes: bool = False
    """Hugo's."""
    vue: bool = False
    """VitePress's: ``{{ }}`` and ``<script setup>`` in pages, files that ``<<<`` and ``<!--@include: -->`` name."""
    book: bool = False
    """mdBook's: ``{{#include}}``, and lines of Rust that begin with ``# ``."""
    kramdown: bool = False
    """Jekyll's: Liquid, and lists of attributes as ``{: .name }``."""
    slugs: SlugStyle = "github"
    """How it makes anchors."""

    def is_mdx(self, path: str) -> bool:
        return self.mdx or path.lower().endswith(".mdx")


PLAIN = Dialect()
