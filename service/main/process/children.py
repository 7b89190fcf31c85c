"""Modules that child processes find already imported."""

from service.runtime.processes import preload

PRELOADED = (
    "service.adapters.git.dulwich_docs",
    "service.adapters.git.remote.clients",
    "service.retrieval.index.build",
    "service.retrieval.readers.html",
    "service.retrieval.readers.sphinx.rst",
    "service.adapters.hosted.code_host",
    "service.adapters.hosted.git_serve",
    "service.web.pages.pull_request_views",
    "service.web.pages.rendered_pages",
    "service.main.compiled_templates",
)


def preload_children() -> None:
    """Call before the first child is started; their server then imports these modules once."""
    preload(PRELOADED)
