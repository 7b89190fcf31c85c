"""The rules of the checks, in one table: the gate that applies each, its code, its severity, what breaks it.

Errors are what readers or builds would stumble over, or what a person must look at before it is published; guesses and
matters of taste are warnings. ``service/manual/agent.md`` lists the same table, and a test compares the two.
"""

from msgspec import Struct

from service.domain.jobs.decider import Problem
from service.domain.jobs.events import Severity


class Rule(Struct, frozen=True):
    gate: str
    code: str
    severity: Severity
    summary: str

    def problem(self, path: str, message: str, line: int | None = None) -> Problem:
        return Problem(self.gate, path, message, line, severity=self.severity, code=self.code)


SECRET = Rule("secrets", "secret", "error", "A text looks like a key or a password. The job fails if it stays.")
PRIVATE_TEXT = Rule(
    "sources", "private_text", "error",
    "A line of a context repository that is not public stands in a page, the title or the description word for word:"
    " over 60 characters, or three lines in a row.",
)  # fmt: skip
PATH_REFUSED = Rule("paths", "path_refused", "error", "Git cannot commit a file of this name.")
CONFLICT_MARKER = Rule("conflicts", "conflict_marker", "error", "A page has the marker of a merge conflict.")
NEW_CODE = Rule(
    "code", "new_code", "error",
    "A page has new code: MDX that imports, exports or computes, or HTML that runs. A person has to review it.",
)  # fmt: skip
ADDRESS_TAKEN = Rule("addresses", "address_taken", "error", "Two pages have the same address, or the same id.")
FRONT_MATTER_INVALID = Rule("front-matter", "front_matter_invalid", "error", "The front matter cannot be read.")
FRONT_MATTER_REMOVED = Rule("front-matter", "front_matter_removed", "error", "The page lost its front matter.")
CODE_FENCE_UNCLOSED = Rule("markup", "code_fence_unclosed", "error", "A code block is never closed.")
TAG_UNBALANCED = Rule(
    "markup", "tag_unbalanced", "error", "A component or shortcode is not closed as often as it is opened."
)
IMPORT_REMOVED = Rule("markup", "import_removed", "error", "A page uses a component that it no longer imports.")
NAVIGATION_INVALID = Rule("navigation", "navigation_invalid", "error", "A navigation file cannot be read.")
NAVIGATION_PAGE_MISSING = Rule("navigation", "navigation_page_missing", "error", "The navigation names a missing page.")
LINK_BROKEN = Rule("links", "link_broken", "error", "A link leads to no page.")
ANCHOR_BROKEN = Rule("links", "anchor_broken", "error", "A link leads to a heading that its page does not have.")
IMAGE_MISSING = Rule("images", "image_missing", "error", "A new image shows a file that does not exist.")
PAGE_UNREACHABLE = Rule(
    "navigation", "page_unreachable", "error",
    "A page lost its last entry in the navigation, or its last link, and the instruction does not ask for that.",
)  # fmt: skip
PAGE_UNLISTED = Rule(
    "navigation", "page_unlisted", "warning", "The navigation names other pages of this folder, but not the new one."
)
NAME_LEFT = Rule(
    "links", "name_left", "warning",
    "A file that a job may not write, or a program, still names a page that has moved or is gone.",
)  # fmt: skip
REFERENCE_UNKNOWN = Rule(
    "links", "reference_unknown", "warning",
    "A new role, import or include names nothing that the repository has; it may be elsewhere.",
)  # fmt: skip
EXTERNAL_LINK_BROKEN = Rule(
    "links", "external_link_broken", "warning", "A link to another site does not work; checked on request only."
)
UNSOURCED = Rule(
    "sources", "unsourced", "warning",
    "New code has a name, flag, path or number that is not in the documentation, the instruction or a file that was"
    " read; or new prose has a number, unit, version, name or promise that what was read does not have, or has"
    " otherwise.",
)  # fmt: skip
SHRUNK = Rule("size", "shrunk", "warning", "A long file has lost most of its lines.")
TOO_LARGE = Rule("size", "too_large", "warning", "More files or lines are changed than people can review.")

RULES = (
    SECRET, PRIVATE_TEXT, PATH_REFUSED, CONFLICT_MARKER, NEW_CODE, ADDRESS_TAKEN, FRONT_MATTER_INVALID,
    FRONT_MATTER_REMOVED, CODE_FENCE_UNCLOSED, TAG_UNBALANCED, IMPORT_REMOVED, NAVIGATION_INVALID,
    NAVIGATION_PAGE_MISSING, LINK_BROKEN, ANCHOR_BROKEN, IMAGE_MISSING, PAGE_UNREACHABLE, PAGE_UNLISTED, NAME_LEFT,
    REFERENCE_UNKNOWN, EXTERNAL_LINK_BROKEN, UNSOURCED, SHRUNK, TOO_LARGE,
)  # fmt: skip
"""The most serious first."""
