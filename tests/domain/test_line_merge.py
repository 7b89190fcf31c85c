from hypothesis import given
from hypothesis import strategies as st

from service.domain.texts.comparison import Effort
from service.domain.texts.line_merge import conflict_lines, marked, marked_conflicts, merged, merged_additions, text_of

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\r\n", "\n"]), max_size=8).map("".join)
BASE = "# Retries\n\nTwice.\n\n## More\n\nEnd.\n"


def effort() -> Effort:
    return Effort(1_000_000)


def test_changes_apart_are_merged():
    ours, theirs = BASE.replace("Twice", "Three times"), BASE.replace("End.", "The end.")
    assert text_of(merged(BASE, ours, theirs, effort())) == ours.replace("End.", "The end.")


def test_changes_of_the_same_line_are_a_conflict():
    parts = merged(BASE, BASE.replace("Twice", "Thrice"), BASE.replace("Twice", "Four times"), effort())
    assert text_of(parts) is None
    (found,) = [part.conflict for part in parts if part.conflict]
    assert (found.base, found.ours, found.theirs) == (("Twice.\n",), ("Thrice.\n",), ("Four times.\n",))


def test_conflict_is_marked_with_both_sides_and_base():
    parts = merged("a\nb\nc", "a\nx\nc", "a\ny\nc", effort())
    text, starts = marked(parts, "docs/job", "main")
    assert text == "a\n<<<<<<< docs/job\nx\n||||||| before\nb\n=======\ny\n>>>>>>> main\nc"
    assert starts == (2,)
    assert conflict_lines(text) == [2, 4, 8]
    (found,) = marked_conflicts(text)
    assert (found.line, found.text) == (2, text[2:-1])
    assert (found.sides.ours, found.sides.base, found.sides.theirs) == (("x\n",), ("b\n",), ("y\n",))


def test_marks_use_the_line_ends_of_the_text():
    text, _ = marked(merged("a\r\nb", "a\r\nx", "a\r\ny", effort()), "one", "two")
    assert text.replace("\r\n", "").count("\n") == 0
    assert text == "a\r\n<<<<<<< one\r\nx\r\n||||||| before\r\nb\r\n=======\r\ny\r\n>>>>>>> two\r\n"


def test_underlined_title_is_no_conflict_marker():
    assert conflict_lines("Title\n=======\n\nText\n") == []
    assert conflict_lines("    <<<<<<< indented\n") == []


def test_two_new_texts_agree_on_what_both_have():
    parts = merged_additions("# Page\n\nOne.\n\nEnd.\n", "# Page\n\nTwo.\n\nEnd.\n", effort())
    assert [part.conflict is None for part in parts] == [True, False, True]


def test_text_without_effort_left_is_still_merged():
    ours = "".join(f"{n % 3}\n" for n in range(400))
    parts = merged(ours[:-2] + "base\n", ours[:-2] + "x\n", ours[:-2] + "y\n", Effort(10))
    assert next(part.conflict for part in parts if part.conflict).ours == ("x\n",)


@given(LINES, LINES)
def test_one_side_alone_is_taken_whole(base: str, side: str):
    assert text_of(merged(base, side, base, effort())) == side
    assert text_of(merged(base, base, side, effort())) == side
    assert text_of(merged(base, side, side, effort())) == side


@given(LINES, LINES, LINES)
def test_no_line_of_a_side_is_lost_or_invented(base: str, ours: str, theirs: str):
    parts = merged(base, ours, theirs, effort())
    mirrored = merged(base, theirs, ours, effort())
    assert text_of(parts) == text_of(mirrored)
    lines = {line for part in parts for line in part.agreed}
    assert lines <= {line for text in (base, ours, theirs) for line in text.splitlines(keepends=True)}
    text, starts = marked(parts, "ours", "theirs")
    assert len(starts) == sum(part.conflict is not None for part in parts)
    assert len(conflict_lines(text)) >= 2 * len(starts)
    assert [found.line for found in marked_conflicts(text)] == list(starts)
