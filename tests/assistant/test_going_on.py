"""Answers that go on: behind the end of another process, and behind the limit for one call's length."""

import re

import pytest

from service.adapters.builtin.answer import BuiltinAnswer
from service.assistant.answer import answer
from service.assistant.notes import cut_off_note
from service.assistant.question import AnswerSettings, Question
from service.domain.errors import Unavailable
from service.domain.model import ToolCall, Usage
from service.domain.threads.progress import progress_of
from service.domain.threads.recorded_reply import ReplyWritten, SourcesFound
from service.domain.threads.replies import (
    CallEnded,
    ModelFailure,
    ReplyBroken,
    ReplyDone,
    SearchFinished,
    TextDelta,
    Thought,
)
from service.ports.model import ModelEnd, ModelText, ToolMessage
from tests.fakes.search_index import FakeSearchIndex

SEARCH = ToolCall("c", "search", '{"query": "members of a workspace"}')
PAGES = {
    "deploy.md": "# Deploy\n\nHow to publish.\n\n## Vercel\n\nTo deploy to Vercel, connect the repository.\n",
    "theme.md": "# Theme\n\nChange colours in the theme file before you deploy.\n",
    "limits.md": "# Limits\n\nA workspace has at most ten members.\n",
}
PLAIN = AnswerSettings(suggestions=False)
RAW = """\
To deploy, connect the repository [1], as `[1]` is in code. It goes <b>fast</b>, see ![it](https://evil.example/x.png).

```bash
vercel deploy --prod  # [1] <script>
```

| Key | Use [2] |
| --- | --- |
| accent | buttons |

<think>Is that all? [3]</think>Change colours in the theme file [2][3]. See [evil](https://evil.example/?q=1).

```suggestions
(Theme)[/theme]
```
"""


def seen(text):
    """The words of a model that are its answer's."""
    return re.sub(r"<think>.*?</think>", "", text)


class Goes:
    """A model whose texts are fixed: it writes what follows what it is given, and searches behind all but the last."""

    name = "goes/on"

    def __init__(self, *texts, limit=None, fails=False):
        self.texts, self.requests, self.limit, self.fails = texts, [], limit, fails

    async def window_tokens(self):
        return None

    async def reply(self, request):
        self.requests.append(request)
        begun = "" if request.continuation is None else request.continuation.text
        left = list(self.texts[sum(isinstance(message, ToolMessage) for message in request.messages) :])
        while len(left) > 1 and len(begun) > len(left[0]):
            begun = begun[len(left.pop(0)) + len("\n\n") :]
        if begun and self.fails:
            raise Unavailable("gone")
        text = seen(left[0]) if begun else left[0]
        assert text.startswith(begun)
        rest = text[len(begun) :]
        for piece in re.findall(r"\s*\S+|\s+", rest[: self.limit]):
            yield ModelText(piece)
        is_cut = self.limit is not None and len(rest) > self.limit
        calls = (SEARCH,) if len(left) > 1 else ()
        yield ModelEnd("tool_calls" if calls else "length" if is_cut else "stop", calls, Usage(10, 5, 0.5), self.name)


@pytest.fixture
def index():
    index = FakeSearchIndex()
    index.put("docs", PAGES)
    return index


async def events_of(index, model, settings=PLAIN, **more):
    asked = Question("docs", "reply-1", "How do I deploy to Vercel?", **more)
    return [event async for event in answer(asked, index=index, model=model, settings=settings)]


def recorded(events):
    """The record of what was given, each event a segment of its own."""
    for event in events:
        match event:
            case SearchFinished(query=query, sources=sources):
                yield SourcesFound("reply-1", query, sources)
            case TextDelta(text=text, raw=raw):
                yield ReplyWritten("reply-1", text, "", raw)
            case Thought(text=text):
                yield ReplyWritten("reply-1", "", text)
            case CallEnded(raw=raw, end=end):
                yield ReplyWritten("reply-1", "", "", raw, end)
            case _:
                pass


def text_of(events):
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@pytest.mark.parametrize(
    ("make", "settings"),
    [
        (lambda: Goes(RAW), PLAIN),
        (lambda: Goes(RAW), AnswerSettings()),
        (lambda: Goes("Let me look.", RAW), PLAIN),
        (lambda: Goes(RAW, limit=300), AnswerSettings()),
        (BuiltinAnswer, AnswerSettings()),
    ],
    ids=["text", "suggestions", "tools", "length", "builtin"],
)
async def test_answer_is_the_same_wherever_it_was_cut(index, make, settings):
    whole = await events_of(index, make(), settings)
    assert isinstance(whole[-1], ReplyDone)
    for cut in range(2, len(whole)):
        progress = progress_of(recorded(whole[:cut]), "reply-1")
        again = await events_of(index, make(), settings, progress=progress)
        assert text_of(whole[:cut]) + text_of(again) == whole[-1].text, cut
        assert again[-1].text == whole[-1].text, cut
        assert (again[-1].cited, again[-1].resolution) == (whole[-1].cited, whole[-1].resolution)


async def test_usage_of_ended_calls_is_added_up(index):
    whole = await events_of(index, Goes("Let me look.", RAW))
    cut = next(at for at, event in enumerate(whole) if isinstance(event, CallEnded)) + 1
    progress = progress_of(recorded(whole[: cut + 4]), "reply-1")
    again = await events_of(index, Goes("Let me look.", RAW), progress=progress)
    assert again[-1].usage == Usage(20, 10, 1.0)
    assert not any(isinstance(event, SearchFinished) for event in again)


async def test_passage_that_is_gone_keeps_its_address(index):
    whole = await events_of(index, Goes(RAW))
    progress = progress_of(recorded(whole[:6]), "reply-1")
    index.put("docs", {"theme.md": PAGES["theme.md"]})
    again = await events_of(index, Goes(RAW), progress=progress)
    assert again[-1].text == whole[-1].text


async def test_reply_that_cannot_go_on_is_interrupted(index):
    whole = await events_of(index, Goes(RAW))
    progress = progress_of(recorded(whole[:6]), "reply-1")
    failure, broken = await events_of(index, Goes(RAW, fails=True), progress=progress)
    assert isinstance(failure, ModelFailure)
    assert isinstance(broken, ReplyBroken)
    assert broken.code == "interrupted"


async def test_answer_that_meets_the_limit_goes_on_once(index):
    model = Goes(RAW, limit=300)
    events = await events_of(index, model)
    assert events[-1].text == (await events_of(index, Goes(RAW)))[-1].text
    assert (events[-1].finish_reason, len(model.requests)) == ("stop", 2)
    assert model.requests[1].continuation.text == seen(RAW[:300])


@pytest.mark.parametrize("fails", [False, True])
async def test_reader_learns_that_an_answer_is_cut_off(index, fails):
    model = Goes(RAW, limit=120, fails=fails)
    events = await events_of(index, model)
    assert events[-1].finish_reason == "length"
    assert events[-1].text.endswith(cut_off_note("How do I deploy to Vercel?"))
    assert len(model.requests) == 2
