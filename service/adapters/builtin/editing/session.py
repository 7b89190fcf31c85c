"""The builtin editor's work: the instructions that people give, one after the other, and the summary at its end."""

import re
from collections.abc import Sequence
from typing import assert_never

from msgspec.structs import replace

from service.adapters.builtin.editing.adding import add_text, create_page
from service.adapters.builtin.editing.forms import (
    Add,
    Create,
    FixLinks,
    Instruction,
    Remove,
    Rename,
    Replace,
    SetTitle,
    parse,
    short,
    title_of,
    title_of_all,
)
from service.adapters.builtin.editing.mending import mend_broken_by_changes, mend_links
from service.adapters.builtin.editing.merging import (
    MERGE_TITLE,
    UNRESOLVED,
    Side,
    asks_for_merge,
    resolve_conflicts,
    side_to_keep,
)
from service.adapters.builtin.editing.removing import remove_page
from service.adapters.builtin.editing.renaming import rename_page
from service.adapters.builtin.editing.replacing import replace_text
from service.adapters.builtin.editing.steps import MAX_NAMED, Call, Editing, Step, Steps, Turn
from service.adapters.builtin.editing.suggestions import nearest_form
from service.adapters.builtin.editing.titles import set_title
from service.domain.editor_forms import FORMS

MAX_INSTRUCTIONS = 20
MAX_SUGGESTED = 3
_YES = re.compile(r"\s*(?:yes|yep|yeah|ok|okay|sure|exactly|correct|do it)(?:,? please)?[\s.!]*", re.IGNORECASE)
_OPEN = re.compile(r"\bPATH\b|\"(?:TEXT|T|A|B)\"")
"""A place of a form that is not filled."""
_FORMS_IN_WORDS = "\n".join(
    (
        "The builtin agent understands instructions of these forms, several of them one a line:\n",
        *(f"- {form}" for form in FORMS),
        "\nTo have anything else done, configure a language model.",
    )
)


class Session:
    """Carries out instructions. What is done and what could not be done goes into the summary."""

    def __init__(self) -> None:
        self._waiting: list[Instruction] = []
        self._begun: list[Instruction] = []
        self._done: list[bool] = []
        """For each finished instruction, whether it changed something or had nothing to fix."""
        self._changed: list[Instruction] = []
        self._unknown: list[str] = []
        self._has_merge = False
        """Branches were merged, and the conflicts have not been looked at."""
        self._merged: list[bool] = []
        """For each request to merge, whether there was a merge."""
        self._keep: Side | None = None
        self._conflicts_left = 0
        self._suggested: list[Instruction] = []
        """The instructions that the last question suggested."""
        self._answered = 0
        """Instructions that had begun when people were last asked."""
        self._editing = Editing(self._hear)

    def run(self) -> Steps:
        self._editing.hear((yield Step("")))
        while True:
            if self._has_merge:
                self._has_merge = False
                self._conflicts_left = yield from resolve_conflicts(self._editing, self._keep)
                if self._conflicts_left:
                    self._editing.say(UNRESOLVED)
            while self._waiting:
                instruction, edits = self._waiting.pop(0), self._editing.edits
                self._begun.append(instruction)
                yield from self._carry_out(instruction)
                has_changed = self._editing.edits > edits
                self._done.append(has_changed or isinstance(instruction, FixLinks))
                if has_changed:
                    self._changed.append(instruction)
            plan = (("plan", self._plan()),) if self._begun else ()
            if question := self._question():
                yield from self._ask_people(question, plan)
                continue
            yield from self._editing.ask(Step("Done. ", (*plan, ("finish", self._finish()))))
            if self._editing.turn.checked:
                before = list(self._editing.report)
                yield from mend_broken_by_changes(self._editing, "Fixed links after the checks")
                if self._editing.report == before and not self._conflicts_left:
                    self._editing.say("The checks found problems that the builtin agent cannot correct.")

    def _hear(self, turn: Turn) -> None:
        self._has_merge = self._has_merge or turn.merged
        for text in turn.asked:
            is_yes = _YES.fullmatch(text) is not None
            known, unknown = parse("" if is_yes else text)
            if is_yes:
                known, self._suggested = self._suggested, []
            if is_yes and not known:
                self._editing.ask_people(f"{text.strip()!r} answers no suggestion. Write the whole instruction.")
            for sentence in filter(asks_for_merge, unknown):
                self._merged.append(turn.merged)
                self._keep = side_to_keep(sentence) or self._keep
            unknown = [sentence for sentence in unknown if not asks_for_merge(sentence)]
            room = MAX_INSTRUCTIONS - len(self._begun) - len(self._waiting)
            self._waiting += known[:room]
            self._unknown += unknown
            if len(known) > room:
                self._editing.say(f"Only the first {MAX_INSTRUCTIONS} instructions were carried out.")

    def _carry_out(self, instruction: Instruction) -> Steps:
        yield from self._editing.ask(Step(f"{title_of(instruction)}. ", (("plan", self._plan()),)))
        match instruction:
            case Replace():
                yield from replace_text(self._editing, instruction)
            case Add():
                yield from add_text(self._editing, instruction)
            case Create():
                yield from create_page(self._editing, instruction)
            case Rename():
                yield from rename_page(self._editing, instruction)
            case Remove():
                yield from remove_page(self._editing, instruction)
            case SetTitle():
                yield from set_title(self._editing, instruction)
            case FixLinks(path=path):
                scope = (yield from self._editing.scope(path)) if path else ""
                if scope or not path:
                    yield from mend_links(self._editing, "Fixed broken links", folder=scope)
            case _:
                assert_never(instruction)

    def _plan(self) -> dict[str, object]:
        """All instructions: what became of those that are over, the one at hand, those that wait."""
        over = ["completed" if done else "cancelled" for done in self._done]
        statuses = [*over, *["in_progress"] * (len(self._begun) - len(over)), *["pending"] * len(self._waiting)]
        todos = zip([*self._begun, *self._waiting], statuses, strict=True)
        return {"todos": [{"content": title_of(which)[:400], "status": status} for which, status in todos]}

    def _question(self) -> str:
        """Return what people have to answer before anything can be done; empty where something was, or all is clear."""
        nearest = self._nearest_forms()
        if self._merged or self._editing.edits or not (nearest or self._editing.is_unclear or not self._begun):
            return ""
        lines = [*self._editing.report]
        if self._unknown:
            lines.append(f"Not understood: {self._ignored()}.")
        lines += [f"Do you mean: {form}" for form in nearest]
        if len(lines) != 1 or nearest:
            lines = [f"- {line}" for line in lines]
        said = "\n".join(["Nothing was changed.", *lines])[:1_000]
        return said if self._begun else f"{said}\n\n{_FORMS_IN_WORDS}"

    def _nearest_forms(self) -> list[str]:
        found = (nearest_form(sentence) for sentence in self._unknown[:MAX_SUGGESTED])
        return [form for form in dict.fromkeys(found) if form]

    def _ask_people(self, question: str, plan: Sequence[Call]) -> Steps:
        """Ask, and begin with their answer; ``yes`` is the suggestions: the nearest pages, and the
        forms that the words filled.
        """
        forms = [form for form in self._nearest_forms() if not _OPEN.search(form)]
        nearest = self._editing.nearest
        begun = [replace(one, path=nearest[one.path]) for one in self._begun[self._answered :] if one.path in nearest]
        self._suggested, self._answered = [*begun, *parse("\n".join(forms))[0]], len(self._begun)
        self._unknown.clear()
        self._editing.forget()
        yield from self._editing.ask(Step("I need to know more. ", (*plan, ("ask", {"question": question}))))

    def _ignored(self) -> str:
        return "; ".join(short(sentence, 80) for sentence in self._unknown[:MAX_NAMED])

    def _finish(self) -> dict[str, object]:
        if self._merged and not self._begun and not self._unknown:
            lines = self._merge_report()
            summary = lines[0] if len(lines) == 1 else "\n".join(f"- {line}" for line in lines)
            return {"title": MERGE_TITLE, "summary": summary[:7900]}
        title = title_of_all(self._changed or self._begun) if self._begun else "Nothing to change"
        lines = [*(self._merge_report() if self._merged else self._editing.report)]
        if self._unknown:
            lines.append(f"Not understood, and left undone: {self._ignored()}.")
            lines += [f"Do you mean: {form}" for form in self._nearest_forms()]
        return {"title": title[:200], "summary": "\n".join(f"- {line}" for line in lines)[:7900]}

    def _merge_report(self) -> list[str]:
        if self._conflicts_left:
            return self._editing.report
        if any(self._merged):
            return ["Merged the documentation's branch.", *self._editing.report]
        return ["There was no commit of the documentation's branch to merge, or it cannot be merged.",
                *self._editing.report]  # fmt: skip
