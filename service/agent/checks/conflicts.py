"""Conflict markers of a merge: what is between them was not decided by anyone."""

from collections import Counter

from service.agent.checks.rules import CONFLICT_MARKER
from service.domain.jobs.decider import Problem
from service.domain.texts.line_merge import conflict_lines

GATE = CONFLICT_MARKER.gate
MAX_PER_FILE = 10


def markers(path: str, before: str, after: str) -> list[Problem]:
    """Return the conflict markers of a file that it did not have before: a page about git may show some."""
    lines = after.splitlines()
    known = Counter(before.splitlines())
    found = []
    for number in conflict_lines(after):
        line = lines[number - 1]
        known[line] -= 1
        if known[line] < 0:
            message = "This is the marker of a conflict. Write what both sides meant, and remove the markers."
            found.append(CONFLICT_MARKER.problem(path, message, number))
    return found[:MAX_PER_FILE]
