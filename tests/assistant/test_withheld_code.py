"""Code that is left out of answers, since it names what no passage has."""

import msgspec
import pytest

from service.assistant.answer import answer
from service.assistant.notes import withheld_code_note, withheld_inline_code_note
from service.assistant.question import AnswerSettings, Question
from service.assistant.sentence_checks.withheld import CodeReader
from service.domain.threads.progress import progress_of
from service.domain.threads.replies import ReplyDone, TextDelta
from tests.assistant.scripted_model import ScriptedModel
from tests.assistant.test_going_on import Goes, recorded, text_of
from tests.fakes.search_index import FakeSearchIndex

PAGE = """\
# Deploy

To deploy, run `kite deploy` with `--region`:

```sh
kite deploy --region eu --wait
```
"""
SETTINGS = AnswerSettings(suggestions=False, withhold_unsupported_code=True)
ASKED = "How do I deploy it with --draft?"
BLOCK = withheld_code_note(ASKED)
SPAN = withheld_inline_code_note(ASKED)


@pytest.fixture
def index():
    index = FakeSearchIndex()
    index.put("docs", {"deploy.md": PAGE})
    return index


async def events_of(index, model, settings=SETTINGS, text=ASKED, **more):
    asked = Question("docs", "reply-1", text, **more)
    return [event async for event in answer(asked, index=index, model=model, settings=settings)]


async def shown(index, written, **more):
    events = await events_of(index, ScriptedModel([written]), **more)
    assert isinstance(events[-1], ReplyDone)
    assert text_of(events) == events[-1].text
    return events[-1].text.replace("](/docs/deploy)", "](/p)")


@pytest.mark.parametrize(
    "code",
    [
        "kite deploy --region us",
        "kite deploy --draft",  # the reader's own word
        "kite deploy --region=<region>  # --anything",
        "# only a comment\nkite deploy --wait",
    ],
)
async def test_block_with_known_names_stays(index, code):
    written = f"Run this [1]:\n\n```sh\n{code}\n```\n\nThen wait."
    assert f"```sh\n{code}\n```\n\nThen wait." in await shown(index, written)


async def test_block_with_unknown_flag_is_left_out(index):
    text = await shown(index, "Run this [1]:\n```sh\nkite deploy --force-all\n```\nThen wait.")
    assert "--force-all" not in text
    assert text.endswith(f":\n\n{BLOCK}\n\nThen wait.")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("- One [1]:\n  ```sh\n  kite fly\n  ```\n- Two", f"\n  {BLOCK}\n\n- Two"),
        ("> ~~~\n> kite fly\n> ~~~\n> Two", f"\n> {BLOCK}\n>\n> Two"),
        ("1. ```sh\n   kite fly\n   ```\n2. Two", f"1. {BLOCK}\n\n2. Two"),
        ("One:\n```sh\nkite fly", f"\n{BLOCK}\n\n"),
    ],
)
async def test_note_stands_where_the_block_stood(index, written, expected):
    assert (await shown(index, written)).endswith(expected)


async def test_unknown_inline_code_is_left_out(index):
    text = await shown(index, "Use `kite deploy` or `--sideways` [1]. See `https://kite.example/x`, not \\`--odd\\`.")
    assert text.startswith(f"Use `kite deploy` or {SPAN} [1](")
    assert text.endswith("See `https://kite.example/x`, not \\`--odd\\`.")


async def test_note_is_in_the_language_of_the_question(index):
    asked = "Wie kann ich die Anwendung veröffentlichen?"
    text = await shown(index, "So geht es [1]:\n\n```sh\nkite fly\n```\n", text=asked)
    assert withheld_code_note(asked) in text
    assert withheld_code_note(asked) != BLOCK


async def test_all_code_is_shown_without_the_setting(index):
    text = await shown(index, "```sh\nkite fly\n```\n", settings=AnswerSettings(suggestions=False))
    assert text == "```sh\nkite fly\n```\n"


async def test_only_the_block_waits(index):
    pieces = ["Run [1]: ", "\n\n```", "sh\n", "kite fly\n", "```\n", "Done", "."]
    events = await events_of(index, ScriptedModel(pieces))
    texts = [event.text for event in events if isinstance(event, TextDelta)]
    assert texts[0].startswith("Run [1](")
    assert texts[-2:] == ["Done", "."]
    assert "kite fly" not in "".join(texts)


RAW = """\
Run `kite deploy` [1], not `--sideways`:

```sh
kite fly --now
```

- Or this, as you need:
  ```sh
  kite deploy --wait
  ```
- Or ~~~ `that` <b>is</b> all.
"""


@pytest.mark.parametrize("limit", [None, 110], ids=["whole", "length"])
async def test_answer_is_the_same_wherever_it_was_cut(index, limit):
    whole = await events_of(index, Goes(RAW, limit=limit))
    assert "kite fly" not in whole[-1].text
    for cut in range(2, len(whole)):
        progress = progress_of(recorded(whole[:cut]), "reply-1")
        again = await events_of(index, Goes(RAW, limit=limit), progress=progress)
        assert text_of(whole[:cut]) + text_of(again) == again[-1].text == whole[-1].text, cut


async def test_block_that_readers_have_in_part_goes_on(index):
    without = AnswerSettings(suggestions=False)
    whole = await events_of(index, Goes(RAW), without)
    cut = next(at for at in range(len(whole)) if text_of(whole[:at]).endswith("kite fly"))
    progress = progress_of(recorded(whole[:cut]), "reply-1")
    again = await events_of(index, Goes(RAW), progress=progress)
    text = again[-1].text
    assert text_of(whole[:cut]) + text_of(again) == text
    assert text.count("kite fly --now\n```\n") == 1


@pytest.mark.parametrize("size", [1, 2, 3, 7, 4000])
def test_parts_do_not_depend_on_chunks(size):
    def parts(size):
        reader = CodeReader()
        found = [part for at in range(0, len(RAW), size) for part in reader.feed(RAW[at : at + size])]
        return [msgspec.to_builtins(part) for part in [*found, *reader.finish()] if not isinstance(part, str)]

    assert parts(size) == parts(len(RAW))
    assert [part["code"].strip() for part in parts(size)] == [
        "kite deploy", "--sideways", "kite fly --now", "kite deploy --wait", "that",
    ]  # fmt: skip
