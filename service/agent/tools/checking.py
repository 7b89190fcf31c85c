"""The tools that check the work before it is handed in."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from service.agent.checks.links.guesses import BrokenLink, UnknownLink
from service.agent.checks.links.links import Links
from service.agent.tools.arguments import CheckLinks
from service.agent.tools.results import MAX_RESULT_CHARACTERS, Outcome, as_data, number_of, with_data
from service.agent.tree import is_within
from service.domain.jobs.decider import Problem
from service.domain.tool_values import DeadLink, DeadLinks, NamedLink, UnknownLinks

MAX_LINKS_LISTED = 200
MAX_PROBLEMS_SHOWN = 60
MAX_REASONS, MAX_NAMED_FOR_REASON, MAX_TARGET = 10, 5, 200
"""Limits for the links of which it is not known where they lead: reasons, links for one, characters of a link."""


def checked(problems: Sequence[Problem]) -> Outcome:
    if not problems:
        return Outcome("The checks find no problem in your changes.")
    errors = sum(problem.is_error for problem in problems)
    counts = [number_of(errors, "error")] * bool(errors)
    counts += [number_of(len(problems) - errors, "warning")] * (errors < len(problems))
    return Outcome(f"The checks find {' and '.join(counts)}:\n{shown_problems(problems)}")


def shown_problems(problems: Sequence[Problem]) -> str:
    """Return the problems as data, one a line, warnings last."""
    ordered = sorted(problems, key=lambda problem: not problem.is_error)
    lines = [
        f"- {problem.path}{f', line {problem.line}' if problem.line else ''}: {problem.message}"
        f" ({problem.gate}{'' if problem.is_error else ', warning'})"
        for problem in ordered[:MAX_PROBLEMS_SHOWN]
    ]
    if len(problems) > MAX_PROBLEMS_SHOWN:
        lines.append(f"- and {len(problems) - MAX_PROBLEMS_SHOWN} more: correct these, and ask again")
    return as_data("\n".join(lines))


async def check_links(checker: Links, asked: CheckLinks, folder: str) -> Outcome:
    unknown: list[UnknownLink] = []
    if asked.changed:
        broken = await checker.broken_by_changes()
    else:
        report = await checker.report()
        broken, unknown = report.broken, [link for link in report.unknown if is_within(link.path, folder)]
    broken = [link for link in broken if is_within(link.path, folder)]
    reasons = Counter(link.reason for link in unknown)
    values = tuple(
        UnknownLinks(reason, count, tuple(_named(unknown, reason)))
        for reason, count in reasons.most_common(MAX_REASONS)
    )
    if not broken:
        said, _ = with_data("No broken links.", _shown_unknown(values)) if values else ("No broken links.", None)
        return Outcome(said, value=DeadLinks(0, unknown=values))
    shown, links, room = list[str](), list[DeadLink](), MAX_RESULT_CHARACTERS - 500
    path = ""
    for link in broken[:MAX_LINKS_LISTED]:
        lines = ([] if link.path == path else [link.path]) + [f"  {link.line}: {_shown_link(link)}"]
        path = link.path
        room -= sum(len(line) + 1 for line in lines)
        if room < 0:
            break
        shown += lines
        links.append(DeadLink(link.path, link.line, link.found, next(iter(link.suggestions), ""), link.clear))
    pages = len({link.path for link in broken})
    head = f"{number_of(len(broken), 'broken link')} in {number_of(pages, 'file')}"
    if len(links) < len(broken):
        head += f", of which the first {len(links)} are listed; fix them and ask again, or ask by folder"
    said, _ = with_data(f"{head}:", "\n".join([*shown, *([_shown_unknown(values)] if values else [])]))
    return Outcome(said, value=DeadLinks(len(broken), tuple(links), values))


def _named(unknown: Sequence[UnknownLink], reason: str) -> Iterator[NamedLink]:
    """Yield the first links for a reason."""
    some = [link for link in unknown if link.reason == reason][:MAX_NAMED_FOR_REASON]
    yield from (NamedLink(link.path, link.line, link.target[:MAX_TARGET]) for link in some)


def _shown_unknown(unknown: Sequence[UnknownLinks]) -> str:
    """Return the links that may be right: nothing is known to be wrong with them, so they are not to be changed."""
    lines = ["Not known to be broken, and to be left as they are:"]
    for each in unknown:
        first = each.links[0]
        lines.append(f"  {each.count} because {each.reason}, such as {first.path} {first.line}: {first.target}")
    return "\n".join(lines)


def _shown_link(link: BrokenLink) -> str:
    quoted = msgspec.json.encode(link.found).decode()
    if not link.suggestions:
        return f"{quoted} -> no page fits ({link.reason})"
    shown = link.suggestions[:1] if link.clear else link.suggestions[:3]
    options = " or ".join(msgspec.json.encode(option).decode() for option in shown)
    return f"{quoted} -> {options}{' (clear)' if link.clear else ''} ({link.reason})"
