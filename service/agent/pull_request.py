"""The words of a job's commit and pull request."""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from service.agent.workspace import Workspace
from service.domain.jobs.decider import ModelReplied, Problem, Round, Running
from service.markup.blocks import blocks_of
from service.markup.markdown import Markdown, without_comments

MAX_SUBJECT = 72
"""Limit for a commit's subject, in characters: ``git log --oneline`` and the code hosts show no more."""
MAX_TITLE = 200
MAX_BODY = 60_000
"""GitHub refuses more than 65,536 characters, the strictest limit we know."""
MAX_TEMPLATE = 10_000
MAX_FILES_LISTED = 60
MAX_ROUNDS_LISTED = 30
MAX_PROBLEMS_LISTED = 50

TEMPLATES = (
    *(
        f"{folder}pull_request_template.{suffix}"
        for folder in (".github/", ".gitea/", ".forgejo/", "", "docs/")
        for suffix in ("md", "txt")
    ),
    ".gitlab/merge_request_templates/default.md",
)
"""Where the code hosts look for one, in lower case: they take either."""

_CONVENTIONAL = re.compile(r"[a-z]{2,10}(\([\w./ -]{1,40}\))?!?: ")
_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "summary": (r"summary|description|overview|abstract", r"what|why|purpose|motivation|changes|proposed|context"),
    "files": (r"files|pages|changes|changed|what",),
    "checks": (r"test|check(?!list)|verif|validat|quality",),
}
"""Words of headings that ask for each thing, the plainest first."""
_CHECKED = "Links, anchors, front matter, markup, navigation and secrets were checked; "
_MENTION = re.compile(r"(?<![\w`/.@])@([A-Za-z0-9][\w-]*(?:/[\w.-]+)?)")


def title(text: str) -> str:
    return _shortened(_one_line(text) or "Update the documentation", MAX_TITLE)


def commit_subject(text: str) -> str:
    """``docs: …``, as conventionalcommits.org has it."""
    line = (_one_line(text) or "update the documentation").rstrip(".")
    return _shortened(line if _CONVENTIONAL.match(line) else f"docs: {line}", MAX_SUBJECT)


def commit_message(subject: str, summary: str, job_id: str) -> str:
    text = _wrapped(_quiet(_visible(summary)))
    return f"{commit_subject(subject)}\n\n{f'{text}{chr(10)}{chr(10)}' if text else ''}Docsmith-Job: {job_id}\n"


async def body(state: Running, workspace: Workspace, changes: Mapping[str, str | None], job_id: str) -> str:
    """Summary, what earlier rounds did, changed files, remaining problems, how it was made; within the repository's own
    template if it has one.

    The template is the base commit's, so that nothing the job wrote can shape it.
    """
    finish = state.work.finish
    assert finish is not None
    summary = _quiet(_visible(finish.summary))[: MAX_BODY // 2]
    models = list(dict.fromkeys(step.model for step in state.work.transcript if isinstance(step, ModelReplied)))
    earlier = {path: text for done in state.work.rounds for path, text in done.changes.items()}
    files = _files(workspace, {**earlier, **changes})
    problems = state.work.remaining_problems or ()
    details = [_earlier(state.work.rounds)] if state.work.rounds else []
    made_with = f" with {', '.join(f'`{model}`' for model in models[:5])}" if models else ""
    footer = f"Made by Docsmith{made_with}, job `{job_id}`. Please review it as you would a colleague's change."
    template = await _template(workspace)
    if not template:
        parts = [summary, *details, files, _problems(problems)]
    else:
        checks = _CHECKED + (f"what they found is below ({len(problems)})." if problems else "nothing was found.")
        filled, asked = _filled(template, {"summary": summary, "files": files, "checks": checks})
        parts = [*(() if "summary" in asked else (summary,)), filled, *details]
        parts += [*(() if "files" in asked else (files,)), _problems(problems)]
    parts = [*filter(None, parts), f"---\n\n{footer}"]
    return _shortened_text("\n\n".join(parts), MAX_BODY) + "\n"


async def _template(workspace: Workspace) -> str:
    found = {path.lower(): path for path in workspace.base_paths() if path.lower() in TEMPLATES}
    for name in TEMPLATES:
        text = await workspace.base_text(found[name]) if name in found else None
        if text and len(text) <= MAX_TEMPLATE:
            return text.replace("\r\n", "\n").strip()
    return ""


def _filled(template: str, texts: Mapping[str, str]) -> tuple[str, set[str]]:
    """Each text under the first heading that asks for it, in place of the hint there; and which were asked for.

    What else the template has stays as it is: a box is for the person who has looked to tick.
    """
    headings = list(_headings(template))
    chosen: dict[int, str] = {}
    for name, rules in _SECTIONS.items():
        fitting = (at for rule in rules for at, (_, _, words) in enumerate(headings)
                   if at not in chosen and re.search(rf"\b(?:{rule})", words, re.IGNORECASE))  # fmt: skip
        at = next(fitting, None)
        if at is not None:
            chosen[at] = name
    parts = [template[: headings[0][0]] if headings else template]
    for at, (start, body_start, _) in enumerate(headings):
        end = headings[at + 1][0] if at + 1 < len(headings) else len(template)
        if at in chosen:
            parts += [template[start:body_start], texts[chosen[at]], _COMMENT.sub("", template[body_start:end])]
        else:
            parts.append(template[start:end])
    return "\n\n".join(part.strip() for part in parts if part.strip()), set(chosen.values())


_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def _headings(template: str) -> Iterator[tuple[int, int, str]]:
    """Yield where each begins, where what is under it begins, and its words."""
    page = Markdown(template)
    for block in page.headings:
        yield *page.place_of(block), without_comments(block.text).strip()


def _earlier(rounds: Sequence[Round]) -> str:
    """Return the titles of the earlier rounds, the newest first."""
    told = [f"- {_quiet(_one_line(done.finish.title))}" for done in reversed(rounds[-MAX_ROUNDS_LISTED:])]
    return "\n".join(["Before that, in the same pull request:", "", *told])


def _files(workspace: Workspace, changes: Mapping[str, str | None]) -> str:
    lines = []
    for path, text in changes.items():
        kind = "deleted" if text is None else "changed" if workspace.in_base(path) else "added"
        lines.append(f"- `{path}` ({kind})")
    if len(lines) > MAX_FILES_LISTED:
        lines[MAX_FILES_LISTED:] = [f"- and {len(lines) - MAX_FILES_LISTED} more"]
    return "\n".join(["Files:", "", *lines])


def _problems(problems: Sequence[Problem]) -> str:
    if not problems:
        return ""
    lines = [
        f"- `{problem.path}`{f', line {problem.line}' if problem.line else ''}: {_quiet(problem.message)}"
        for problem in problems[:MAX_PROBLEMS_LISTED]
    ]
    if len(problems) > MAX_PROBLEMS_LISTED:
        lines.append(f"- and {len(problems) - MAX_PROBLEMS_LISTED} more")
    return "\n".join(["The checks found problems that remain:", "", *lines])


def _one_line(text: str) -> str:
    return " ".join(_visible(text).split())


def _visible(text: str) -> str:
    """Without control characters, which could hide words from a reviewer's terminal."""
    return "".join(c for c in text.replace("\r\n", "\n") if c.isprintable() or c in "\n\t").strip()


def _quiet(text: str) -> str:
    """Return the text with its mentions quoted: a page must not be able to notify people about a pull request."""
    return _MENTION.sub(r"`@\1`", text)


def _shortened(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    cut = line[: width - 1]
    return (cut.rpartition(" ")[0] if " " in cut[width // 2 :] else cut).rstrip(" ,;:-") + "…"


def _shortened_text(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 20].rstrip() + "\n\n[shortened]"


def _wrapped(text: str) -> str:
    """Each paragraph and list item at 72 columns; code and long words as they are."""
    lines: list[str] = []
    paragraph: list[str] = []

    def end_paragraph() -> None:
        if paragraph:
            mark = re.match(r"(?:[-*+]|\d{1,3}[.)])\s+", paragraph[0])
            lines.extend(
                textwrap.wrap(
                    " ".join(paragraph), MAX_SUBJECT, break_long_words=False, break_on_hyphens=False,
                    subsequent_indent=" " * (mark.end() if mark else 0),
                )
            )  # fmt: skip
            paragraph.clear()

    in_code = {line for block in blocks_of(text) if block.kind in ("fence", "code")
               for line in range(block.first, block.after)}  # fmt: skip
    for number, line in enumerate(text.split("\n")):
        if number in in_code:
            end_paragraph()
            lines.append(line.rstrip())
        elif not line.strip():
            end_paragraph()
            if lines and lines[-1]:
                lines.append("")
        else:
            if re.match(r"\s*(?:[-*+]|\d{1,3}[.)])\s", line):
                end_paragraph()
            paragraph.append(line.strip())
    end_paragraph()
    return "\n".join(line if not line.startswith("#") else f" {line}" for line in lines).strip("\n")
