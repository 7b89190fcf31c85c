"""Replies as the assistant gives them, to encode."""

from service.domain.model import Usage
from service.domain.search import Source
from service.domain.threads.checks import CheckCounts, ReplyChecks, SentenceCheck
from service.domain.threads.replies import (
    ReplyBroken,
    ReplyDone,
    ReplyEvent,
    ReplyOpened,
    ReplyWaiting,
    SearchFinished,
    SearchHit,
    SearchStarted,
    SentencesChecked,
    TextDelta,
)

OPENED = ReplyOpened(thread_id="T", reply_id="msg_1")
STARTED = SearchStarted("c1", "deploy")
HIT = SearchHit(1, "deploy.md", "/deploy#vercel", "Deploy", "Vercel", "Connect the repository.", 1.0)


def source(number: int, url: str, title: str) -> Source:
    return Source(number, "deploy.md", url, title, "", 1, 9, "c0ffee")


FOUND = SearchFinished(
    "c1",
    "deploy",
    (HIT,),
    (source(1, "/deploy#vercel", "Deploy"), source(2, "/deploy#netlify", "Deploy"), source(3, "/theme", "")),
)
SUGGESTIONS = "\n\n```suggestions\n(Theme)[/theme]\n```\n"
DELTAS = ["To deploy, ", "connect [1](/deploy#vercel).\n", "Grüße 👋", SUGGESTIONS]
TEXT = "".join(DELTAS)
DONE = ReplyDone(TEXT, (1,), "answered", "builtin/extractive", Usage(12, 34))

ANSWERED: list[ReplyEvent] = [OPENED, STARTED, FOUND, *map(TextDelta, DELTAS), DONE]

SECOND_FOUND = SearchFinished("c2", "vercel", (), (source(4, "/deploy#limits", "Deploy"), source(5, "/faq", "FAQ")))
SEARCHED_AGAIN: list[ReplyEvent] = [
    OPENED, STARTED, FOUND, TextDelta("Let me look."), SearchStarted("c2", "vercel"), SECOND_FOUND,
    TextDelta("\n\nFound it [5](/faq)."),
    ReplyDone("Let me look.\n\nFound it [5](/faq).", (5,), "answered", "m", Usage()),
]  # fmt: skip

WAITED: list[ReplyEvent] = [
    OPENED, STARTED, FOUND, ReplyWaiting(7.25), ReplyWaiting(1.0), TextDelta("No more."),
    ReplyDone("No more.", (), "unanswered", "m", Usage(), "content_filter", uncited=True),
]  # fmt: skip
"""A reply whose provider was busy, and then ended it."""

RIGHT = SentenceCheck("Wait 5 s.", 0, "supported", 1, 2, 3)
WRONG = SentenceCheck("Wait 9 s.", 10, "unsupported", missing=("9 s",))
CHECKED: list[ReplyEvent] = [
    OPENED, STARTED, FOUND, TextDelta("Wait 5 s."),
    SentencesChecked(ReplyChecks(CheckCounts(1), (RIGHT,))), TextDelta(" Wait 9 s."),
    SentencesChecked(ReplyChecks(CheckCounts(1, 0, 1), (RIGHT, WRONG))),
    ReplyDone("Wait 5 s. Wait 9 s.", (), "answered", "m", Usage()),
]  # fmt: skip
"""A reply whose sentences are held against its passages."""

BROKEN: list[ReplyEvent] = [
    OPENED, STARTED, FOUND, TextDelta("To deploy, "), ReplyBroken("unavailable", "The model is unavailable."),
]  # fmt: skip

BROKEN_IN_SEARCH: list[ReplyEvent] = [OPENED, STARTED, ReplyBroken("not_indexed", "This site has no index yet.")]

JOINED_LATE: list[ReplyEvent] = [OPENED, FOUND, TextDelta(TEXT), DONE]
"""A reader that came when the search was over and a part of the text was there."""
