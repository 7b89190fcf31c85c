"""The words of a job's commit and pull request."""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from service.agent.workspace import Workspace
from service.domain.jobs.comments import without_mentions
from service.domain.jobs.decider import ModelReplied, Problem, Round, Running, WorkFinished
from service.markup.blocks import blocks_of
from service.markup.fences import code_span
from service.markup.markdown import Markdown, without_comments

MAX_SUBJECT = 72
"""Limit for a commit's subject, in characters: ``git log --oneline`` and the code hosts show no more."""
MERGE_TITLE = "Merge the documentation's branch"
"""The title of a round that merges and does nothing else: it is no change of the pull request."""
MAX_TITLE = 200
MAX_BODY = 60_000
"""GitHub refuses more than 65,536 characters, the strictest limit we know."""
MAX_TEMPLATE = 10_000
MAX_SUMMARY = 12_000
MAX_LIST = 12_000
"""Limit for a list, in characters; the longest that a job's gates let pass is shorter."""
MAX_JOINED_TITLE = 100
MAX_ROUNDS_LISTED = 30
MAX_NOTE = 300
"""Characters of an answer that are shown at once."""
SHOWN_AT_ONCE = 10
"""Items of a list; a longer one is collapsed."""
SHOWN_LINES = 15
"""Lines of the summary; the rest of a longer one is collapsed."""

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


def title(finish: WorkFinished, rounds: Sequence[Round] = ()) -> str:
    """Return a title for all rounds of a pull request: the agent's own for the whole, else one made of its titles."""
    titles: list[str] = []
    for done in (*(done.finish for done in rounds), finish):
        whole = _one_line(done.whole_title)
        titles = [whole] if whole else [*titles, _one_line(done.title)]
    first, *others = dict.fromkeys(title for title in titles if title and title != MERGE_TITLE) or [
        "Update the documentation"
    ]
    if not others:
        return _shortened(first, MAX_TITLE)
    joined = "; ".join([first, *map(_continued, others)])
    if len(joined) <= MAX_JOINED_TITLE:
        return joined
    more = f" and {len(others)} more {'change' if len(others) == 1 else 'changes'}"
    return _shortened(first, MAX_JOINED_TITLE - len(more)) + more


def summary(finish: WorkFinished, rounds: Sequence[Round] = ()) -> str:
    """Return a summary of all rounds of a pull request: the agent's last one for the whole, else that of the first."""
    every = [*(done.finish for done in rounds), finish]
    return next((done.whole_summary for done in reversed(every) if done.whole_summary.strip()), every[0].summary)


def _continued(title: str) -> str:
    """Return a title as it stands behind another: without its kind, and its first word in lower case."""
    title = _CONVENTIONAL.sub("", title)
    return title[:1].lower() + title[1:] if title.partition(" ")[0][1:].islower() else title


def commit_subject(text: str) -> str:
    """``docs: …``, as conventionalcommits.org has it."""
    line = (_one_line(text) or "update the documentation").rstrip(".")
    return _shortened(line if _CONVENTIONAL.match(line) else f"docs: {line}", MAX_SUBJECT)


def commit_message(subject: str, summary: str, job_id: str) -> str:
    text = _wrapped(without_mentions(_visible(summary)))
    return f"{commit_subject(subject)}\n\n{f'{text}{chr(10)}{chr(10)}' if text else ''}Docsmith-Job: {job_id}\n"


async def body(
    state: Running,
    workspace: Workspace,
    changes: Mapping[str, str | None],
    job_id: str,
    sources: Sequence[str] = (),
    *,
    moved: Mapping[str, str] = MappingProxyType({}),
    mention: str = "",
) -> str:
    """Return the description: errors, the summary of the whole, a note on each further round, changed files, the
    sources of what is new, warnings and how it was made; within the repository's own template if it has one.

    ``changes`` are those of the whole pull request, as ``workspace`` is of it; ``moved`` has the new paths of files by
    the old ones. The template is the base commit's, so that nothing the job wrote can shape it.
    """
    finish = state.work.finish
    assert finish is not None
    rounds, is_stuck = state.work.rounds, finish.ending == "stuck"
    stands = summary(rounds[-1].finish, rounds[:-1]) if is_stuck and rounds else summary(finish, rounds)
    shown = _folded(without_mentions(_visible(stands))[:MAX_SUMMARY])
    models = list(dict.fromkeys(step.model for step in state.work.transcript if isinstance(step, ModelReplied)))
    files = _files(workspace, changes, moved)
    problems = state.work.remaining_problems or ()
    errors = [problem for problem in problems if problem.is_error]
    warnings = [problem for problem in problems if not problem.is_error]
    notes = [] if not rounds else [_notes([*(done.finish for done in rounds[1:]), *([] if is_stuck else [finish])])]
    made_with = f" with {', '.join(f'`{model}`' for model in models[:5])}" if models else ""
    footer = f"Made by Docsmith{made_with}, job `{job_id}`. Please review it as you would a colleague's change."
    if mention:
        footer += f" To ask for more, write a comment that mentions `@{mention}`."
    top = [_problems("**The checks found errors. Correct them before merging:**", "errors", errors)]
    if is_stuck:
        top.append("**The agent stopped before it was done. Answer it with a message to the job. Its last words:**")
        top += [_folded(without_mentions(_visible(finish.summary))[:MAX_SUMMARY])] if rounds else []
    if (errors and not is_stuck) or (is_stuck and rounds):
        top.append("**What was done:**")  # else the list of errors and a list that begins the summary would be one
    template = await _template(workspace)
    if not template:
        parts = [*top, shown, *notes, files]
    else:
        found = " and ".join(filter(None, (_counted(errors, "error"), _counted(warnings, "warning"))))
        remaining = f"{found} {'remains' if len(problems) == 1 else 'remain'}." if found else "nothing was found."
        checks = _CHECKED + remaining
        filled, asked = _filled(template, {"summary": shown, "files": files, "checks": checks})
        parts = [*top, *(() if "summary" in asked else (shown,)), filled, *notes]
        parts += [] if "files" in asked else [files]
    parts += [_list("Sources of what is new:", "sources", sources) if sources else ""]
    parts += [_problems("The checks found warnings:", "warnings", warnings), f"---\n\n{footer}"]
    return _shortened_text("\n\n".join(filter(None, parts)), MAX_BODY) + "\n"


def _counted(problems: Sequence[Problem], word: str) -> str:
    return f"{len(problems)} {word}{'' if len(problems) == 1 else 's'}" if problems else ""


def _folded(summary: str) -> str:
    """Return the summary with all that follows its first lines collapsed, parted where a block or a list item ends."""
    lines = summary.split("\n")
    if len(lines) <= SHOWN_LINES:
        return summary
    starts = [block.first for block in blocks_of(summary) if not lines[block.first][:1].isspace()]
    cut = max((line for line in starts if 0 < line <= SHOWN_LINES), default=0)
    if not cut:
        return summary
    shown, rest = "\n".join(lines[:cut]).rstrip(), "\n".join(lines[cut:])
    return f"{shown}\n\n{_details('More', rest)}"


def _details(heading: str, text: str) -> str:
    return f"<details><summary>{heading}</summary>\n\n{text}\n\n</details>"


def _list(heading: str, noun: str, items: Sequence[str]) -> str:
    """Return a list: whole when it is short, else collapsed."""
    room, listed = MAX_LIST, list[str]()
    for item in items:
        room -= len(item) + 3
        if room < 0:
            break
        listed.append(f"- {item}")
    if len(listed) < len(items):
        listed.append(f"- and {len(items) - len(listed)} more")
    text = "\n".join(listed)
    shown = text if len(items) <= SHOWN_AT_ONCE else _details(f"{len(items)} {noun}", text)
    return "\n\n".join(filter(None, (heading, shown)))


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


def _notes(rounds: Sequence[WorkFinished]) -> str:
    """Return a note on each further round, the newest first: its title, and the beginning of its answer."""
    notes, longer, room = list[str](), list[str](), MAX_LIST
    for finish in reversed(rounds[-MAX_ROUNDS_LISTED:]):
        title, words = without_mentions(_one_line(finish.title)), without_mentions(_visible(finish.summary))
        beginning = "; ".join(_ITEM.sub("", line, count=1) for line in words.partition("\n\n")[0].split("\n"))
        note = _shortened(_one_line(beginning), MAX_NOTE)
        notes.append(f"**{title}**{f': {note}' if note else ''}")
        room -= len(title) + len(words)
        if room > 0 and ("\n\n" in words or len(note) < len(_one_line(beginning))):
            longer.append(f"**{title}**\n\n{words}")
    listed = _list("Changed since it was opened, the newest first:", "changes", notes)
    return "\n\n".join([listed, *([_details("More about them", "\n\n".join(longer))] if longer else [])])


def _files(workspace: Workspace, changes: Mapping[str, str | None], moved: Mapping[str, str]) -> str:
    items, came_from = [], {new: old for old, new in moved.items()}
    for path, text in changes.items():
        if moved.get(path) in changes:
            continue
        kind = "deleted" if text is None else "changed" if workspace.in_base(path) else "added"
        kind = f"moved from {code_span(came_from[path])}" if path in came_from else kind
        items.append(f"{code_span(path)} ({kind})")
    return _list("Files:" if len(items) <= SHOWN_AT_ONCE else "", "files", items)


def _problems(heading: str, noun: str, problems: Sequence[Problem]) -> str:
    items = []
    for problem in problems:
        where = f"{code_span(problem.path)}{f', line {problem.line}' if problem.line else ''}: " if problem.path else ""
        items.append(f"{where}{without_mentions(problem.message)}")
    return _list(heading, noun, items) if items else ""


def _one_line(text: str) -> str:
    return " ".join(_visible(text).split())


def _visible(text: str) -> str:
    """Without control characters, which could hide words from a reviewer's terminal."""
    return "".join(c for c in text.replace("\r\n", "\n") if c.isprintable() or c in "\n\t").strip()


def _shortened(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    cut = line[: width - 1]
    return (cut.rpartition(" ")[0] if " " in cut[width // 2 :] else cut).rstrip(" ,;:-") + "…"


def _shortened_text(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    kept = text[: width - 40].rstrip()
    end = "\n\n</details>" if kept.count("<details>") > kept.count("</details>") else ""
    return f"{kept}{end}\n\n[shortened]"


def _wrapped(text: str) -> str:
    """Return the text with its long lines of prose broken at 72 columns. Every other line stays as it is, also those
    that the writer broke: lists, tables and code would not survive a new setting.
    """
    kept = {line for block in blocks_of(text) if block.kind != "text" for line in range(block.first, block.after)}
    lines: list[str] = []
    for number, line in enumerate(text.split("\n")):
        line = line.rstrip()
        if number in kept or len(line) <= MAX_SUBJECT or line.lstrip().startswith("|"):
            lines.append(line)
            continue
        mark = _ITEM.match(line)
        lines += textwrap.wrap(
            line, MAX_SUBJECT, break_long_words=False, break_on_hyphens=False, drop_whitespace=True,
            subsequent_indent=" " * (mark.end() if mark else 0),
        )  # fmt: skip
    return "\n".join(lines).strip("\n")


_ITEM = re.compile(r"\s*(?:(?:[-*+]|\d{1,3}[.)])\s+)?")
