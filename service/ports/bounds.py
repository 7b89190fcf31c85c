"""The bounds on work for others: what was refused, cut or ended because it reached one is counted.

The names are the values of the label ``bound`` of the metric ``docsmith_bounds_reached_total``: once released, a name
stays. A child process counts in what it returns, and its parent reports that.
"""

from typing import Literal, Protocol

Bound = Literal[
    "connections", "descriptors", "requests", "searches", "indexing_time", "indexing_memory", "page_time", "site_files",
    "uploads", "site_reports", "git_bodies", "git_turns", "git_work", "git_answers",
    "page_turns", "page_work", "live_pages", "full_texts", "trial_searches", "gaps", "diff_files", "diff_lines",
    "diff_words", "proofs",
]  # fmt: skip
"""
- ``connections``: a connection refused because there were too many.
- ``descriptors``: connections left waiting because the process may open no more files.
- ``requests``: a question or a job refused because one of ``[limits]`` had no room.
- ``searches``: a search refused in the same way.
- ``indexing_time``, ``indexing_memory``: an indexing of a site ended because it took too long, or too much memory.
- ``page_time``: a page of a site left out because reading it took too long.
- ``uploads``, ``site_reports``: one refused because its organization has too many under way.
- ``site_files``: a file or folder of a site left out because of its size, its name or its number.
- ``git_bodies``: a git client's body refused because it stalled, took too long or was too large.
- ``git_turns``: a git request refused because too many of its project waited, or it waited too long.
- ``git_work``: a git request ended because it took too much time or memory.
- ``git_answers``: an answer cut because a git client took it too slowly.
- ``page_turns``: a pull request's page refused because too many of its project waited, or it waited too long.
- ``page_work``: such a page ended because it took too much time or memory.
- ``live_pages``: an open page of the dashboard that does not change by itself, because its session or its organization
  has too many.
- ``full_texts``: a whole site as one text refused, because it or its caller is sent too many.
- ``trial_searches``: test questions, or a search that is explained, refused because too many of its organization
  waited.
- ``gaps``: a grouping of unanswered questions refused in the same way.
- ``diff_files``, ``diff_lines``: files of a pull request, or lines of a file, left out because there are too many.
- ``diff_words``: a pair of lines shown without marks for the words that changed, which took too long to find.
- ``proofs``: a reader token refused until its page solves a task, because its site is asked far more than usual.
"""


class CountBound(Protocol):
    def __call__(self, bound: Bound, times: int = 1, /) -> None:
        """Count that a bound was reached. Does not block; to be called on the event loop's thread."""


def ignore_bounds(_bound: Bound, _times: int = 1, /) -> None:
    """Count nothing, for commands, which no one measures."""
