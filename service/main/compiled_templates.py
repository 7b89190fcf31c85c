"""Compiles the templates that child processes render, when it is imported: by the server of children alone.

Each child is forked from there, and would else compile them again, which takes five times as long as a page itself.
"""

from service.web.pages.rendering import compile_templates

compile_templates(
    "base.html", "diff.html", "pull_request.html", "pull_request_file.html", "pull_request_rendered.html",
    "agent/job_changes_files.html",
)  # fmt: skip
