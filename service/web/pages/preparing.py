"""Prepares what the first pages of a process need, after its start: that takes a thread 0.2 s."""

from importlib import import_module

from service.web.pages.manual import explained_errors, pages, tag_guides

MODULES = ("jinja2", "service.web.pages.safe_markdown")


def prepare_pages() -> None:
    """Import modules, and read the manual. For a thread."""
    for module in MODULES:
        import_module(module)
    for read in (explained_errors, tag_guides, pages):
        read()
