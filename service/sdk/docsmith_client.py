"""A client of Docsmith's API: one file for Python 3.10 and later, without dependencies.

Get it from a running service and keep it beside your program::

    curl -O https://docsmith.example.com/sdk/docsmith_client.py

    from docsmith_client import Docsmith

    with Docsmith("https://docsmith.example.com", key) as docsmith:
        job = docsmith.create_job(project_id, prompt="Document --retry")
        job = docsmith.wait_for_job(project_id, job.id)
        for text in docsmith.ask("guide", "How do I install it?"):
            print(text, end="")

``AsyncDocsmith`` has the same methods for ``await``, ``async with`` and ``async for``.

- Arguments and fields are the API's, in snake case. An argument that is None is left out of the request. Fields that
  this file does not know are ignored, so it works with a newer service.
- A request is sent again after a lost connection, or when the service is busy, where that cannot do something twice:
  requests that only read, and jobs and their messages, which get an ``Idempotency-Key``. ``Retry-After`` is respected.
- A stream goes on after a lost connection, with nothing lost and nothing repeated.
- Errors are ``ApiError`` with ``status`` and ``code``, a subclass for each kind, or ``ConnectionLost``.
- Proxies come from the environment: ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY``.

The standard library does all of it: the asynchronous client runs the same code in threads of its own, and a cancelled
call closes its connection. The API's description is the source of the types and methods between the marks "generated".

Licence: Apache-2.0
"""

from __future__ import annotations

import asyncio
import base64
import contextvars
import dataclasses
import functools
import http.client
import json
import platform
import random
import re
import selectors
import socket
import ssl
import threading
import time
import types
import typing
import urllib.parse
import urllib.request
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from http import HTTPStatus
from types import TracebackType
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, cast

T = TypeVar("T")
P = ParamSpec("P")

MAX_PAUSE_SECONDS = 60.0
"""A longer ``Retry-After`` is not waited for: the error is raised, with ``retry_after_seconds``."""
STREAM_SECONDS = 60.0
"""The service writes to each stream at least every 15 seconds."""
MAX_ANSWER_BYTES = 64 * 1024 * 1024
MAX_EVENT_BYTES = 8 * 1024 * 1024
"""The limit for one event of a stream."""


class DocsmithError(Exception):
    """The base of all errors of this client."""


class ConnectionLost(DocsmithError):
    """The service cannot be reached, or the connection broke. A request that changes something may have been done."""


class UnexpectedAnswer(DocsmithError):
    """The answer is not the API's: perhaps another server is at this address, or this file is too old."""


class AnswerFailed(DocsmithError):
    """The assistant's answer broke off. ``text`` of the answer has the part before."""


class JobStillActive(DocsmithError):
    """A job did not end within the time to wait."""


class ApiError(DocsmithError):
    """The service refused the request. ``code`` is stable; the page at ``type`` says what to do."""

    def __init__(self, status: int, problem: Mapping[str, Any], *, retry_after_seconds: float | None = None) -> None:
        self.status = status
        self.code = str(problem.get("code", f"http_{status}"))
        self.detail = str(problem.get("detail") or f"The service answered with status {status}.")
        self.type = str(problem.get("type", ""))
        self.request_id = str(problem.get("requestId", ""))
        listed = problem.get("errors")
        self.errors: list[tuple[str, str]] = [
            (str(one.get("path", "")), str(one.get("message", ""))) for one in listed or () if isinstance(one, dict)
        ]
        """Places in the body, and the problem at each."""
        self.retry_after_seconds = retry_after_seconds
        super().__init__(f"{self.detail} ({self.code}, status {status})")


class InvalidRequest(ApiError):
    """400, 413, 415 or 422: it cannot be read, does not fit, or cannot be done."""


class Unauthorized(ApiError):
    """401: the key is missing or not valid."""


class Forbidden(ApiError):
    """403: the key may not do this."""


class NotFound(ApiError):
    """404: not found, or not visible to this key."""


class Conflict(ApiError):
    """409: it does not fit the present state."""


class RateLimited(ApiError):
    """429: too many requests; ``retry_after_seconds`` says how long to wait."""


class Unavailable(ApiError):
    """502, 503 or 504: it cannot be done right now."""


_ERRORS: Mapping[int, type[ApiError]] = {
    400: InvalidRequest, 413: InvalidRequest, 415: InvalidRequest, 422: InvalidRequest, 401: Unauthorized,
    403: Forbidden, 404: NotFound, 409: Conflict, 429: RateLimited, 502: Unavailable, 503: Unavailable,
    504: Unavailable,
}  # fmt: skip

# generated: types
VERSION = "0.1.0"


@dataclass(frozen=True, kw_only=True)
class Analytics:
    """A period, in whole days of UTC.

    Attributes:
        date_from: The first day.
        date_to: The last day.
        totals: The whole period.
        days: Each day, those without questions too.
        callers: The most frequent first.
        first_text: How long readers waited.
        cited_from: The Monday from which citations are counted, by weeks.
        cited_pages: The most cited first.
        uncited_pages: Null without a project, and while its site has no index.
        spending: The most costly first.
    """

    date_from: date
    date_to: date
    totals: QuestionCounts
    days: list[Day]
    callers: list[CallerCount]
    first_text: FirstText
    cited_from: date
    cited_pages: list[CitedPage]
    uncited_pages: UncitedPages | None
    spending: list[Spending]


@dataclass(frozen=True, kw_only=True)
class AnswerChecks:
    """The sentences of an answer that claim something, by whether its passages support them.

    Attributes:
        supported: How many its cited passages support.
        partly: How many only other passages support, or hardly.
        unsupported: How many have something that is in no passage.
        sentences: The first of the unsupported ones.
    """

    supported: int
    partly: int
    unsupported: int
    sentences: list[CheckedSentenceView]


@dataclass(frozen=True, kw_only=True)
class CallerCount:
    """Questions from one kind of client.

    Attributes:
        caller: The kind; empty for questions from before it was recorded.
        questions: How many.
    """

    caller: Literal["", "api", "mcp", "terminal", "web"]
    questions: int


@dataclass(frozen=True, kw_only=True)
class ChangedFile:
    """A file that a job has changed.

    Attributes:
        path: Its path in the repository.
        old_path: Its path before; another where it was moved.
        kind: How it changed.
        added: Lines that were added; null where they were not counted.
        removed: Lines that were removed; null where they were not counted.
        hunks: The lines; empty for a binary file, null where the changes are too long to be shown.
        is_binary: Whether it is no text.
        is_cut: Whether the hunks are the beginning of more.
        is_too_large: Whether it is larger than what is read.
    """

    path: str
    old_path: str
    kind: Literal["added", "changed", "deleted", "moved"]
    added: int | None
    removed: int | None
    hunks: list[Hunk] | None
    is_binary: bool
    is_cut: bool
    is_too_large: bool


@dataclass(frozen=True, kw_only=True)
class ChangedLine:
    """A line that both sides have, or that was added or removed.

    Attributes:
        side: Where it is.
        text: The line without the newline that ends it, cut after 2,000 characters.
        is_cut: Whether the text is the beginning of a longer line.
        ends_file_without_newline: Whether the file ends here, without a newline.
    """

    side: Literal["added", "removed", "same"]
    text: str
    is_cut: bool
    ends_file_without_newline: bool


@dataclass(frozen=True, kw_only=True)
class Changes:
    """The files that a job has changed, against the documentation that it began from.

    Attributes:
        files: By path, at most 100.
        is_cut: Whether there are more than are shown.
        is_readable: False where the texts are gone, by an erasure for example.
    """

    files: list[ChangedFile]
    is_cut: bool
    is_readable: bool


@dataclass(frozen=True, kw_only=True)
class CheckedProject:
    """A project that was created or changed.

    Attributes:
        project: The project as it is now.
        warnings: What may soon be a problem, in sentences.
    """

    project: Project
    warnings: list[str]


@dataclass(frozen=True, kw_only=True)
class CheckedSentence:
    """The verdict on a sentence, list item, table row or line of code that makes a claim.

    Attributes:
        text: Its first 200 characters, without citations.
        start: Where it begins in the reply's text, in characters.
        status: `supported`; `partly`: what it says is in a passage, but not in one that it cites, or hardly;
            `unsupported`: something of it is in no passage.
        passage: The number of the passage that it stands on.
        start_line: Where in the page's file that is.
        end_line: Where it ends there.
        missing: The pieces of it that no passage has.
    """

    text: str
    start: int
    status: Literal["partly", "supported", "unsupported"]
    passage: int = 0
    start_line: int = 0
    end_line: int = 0
    missing: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class CheckedSentenceView:
    """A sentence of an answer with something that no passage has.

    Attributes:
        text: Its beginning.
        start: Where it begins in the answer, in characters.
        missing: Its numbers, names, flags or pieces of code that no passage has.
        passage: The number of the passage that comes nearest; null where none does.
        start_line: Where in the page's file that is.
        end_line: Where it ends there.
    """

    text: str
    start: int
    missing: list[str]
    passage: int | None
    start_line: int | None
    end_line: int | None


@dataclass(frozen=True, kw_only=True)
class Checks:
    """The verdicts on a reply so far.

    Attributes:
        type: Always `checks`.
        supported: The number of sentences that are supported.
        partly: The number that are supported in part.
        unsupported: The number that are not supported.
        sentences: Each verdict, in the order of the text; of a reply from the record the unsupported ones.
    """

    type: Literal["checks"]
    supported: int
    partly: int
    unsupported: int
    sentences: list[CheckedSentence]


@dataclass(frozen=True, kw_only=True)
class ChecksSummary:
    """How far the answers of a period stand on the documentation.

    Attributes:
        answers: How many answers with claims were checked.
        answers_with_unsupported: How many of them have an unsupported sentence.
        supported: Sentences that are supported.
        partly: Sentences that are supported in part.
        unsupported: Sentences that are not.
        supported_share: The share of sentences that are supported, 0 to 1; null without any.
        worst: Those with the most unsupported sentences first.
    """

    answers: int
    answers_with_unsupported: int
    supported: int
    partly: int
    unsupported: int
    supported_share: float | None
    worst: list[DoubtfulAnswer]


@dataclass(frozen=True, kw_only=True)
class CitedPage:
    """A page that answers cite.

    Attributes:
        project_id: Its project.
        path: Its file in the repository.
        title: Its title.
        url: Where it is on the site.
        answers: How many answers cite it.
    """

    project_id: str
    path: str
    title: str
    url: str
    answers: int


@dataclass(frozen=True, kw_only=True)
class Context:
    """A repository that a project's agent reads, and never writes.

    Attributes:
        name: Its name: to the agent its files are @name/….
        repository: The repository's URL, or a folder on the server.
        ref: The branch or tag; empty for the branch that it shows by default.
        token_env: The environment variable that holds its token; empty for none.
        public: Its text may be quoted in pull requests.
        internal: It may be on this machine, or in a private network.
        token_id: The vault's name for its token, which is never shown; empty for none.
    """

    name: str
    repository: str
    ref: str
    token_env: str
    public: bool
    internal: bool
    token_id: str


@dataclass(frozen=True, kw_only=True)
class ContextBody:
    """Something that the question is about.

    Attributes:
        type: What it is.
        value: The code, or the text.
        path: The page that it is from.
        element_id: The element of that page.
    """

    type: Literal["code", "textSelection"]
    value: str
    path: str | None = None
    element_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class ContextRepository:
    """A repository that the agent may read.

    Attributes:
        name: Its name: to the agent its files are @name/….
        repository: Its https:// URL; or, of one that is there already, its address.
        ref: A branch or tag; empty for the branch that it shows by default.
        public: Its text may be quoted in pull requests.
        token: A token for it; kept encrypted, and never shown again. Empty: of one that is there already, the
            token stays; another address needs its token again.
    """

    name: str
    repository: str
    ref: str = ""
    public: bool = False
    token: str = ""


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """A question and its outcome. `[erased]` replaces the words of a thread that was erased, `[damaged]` for
    words that cannot be read any more.

    Attributes:
        id: Of the question.
        thread_id: Of the thread that it is in.
        conversation_id: The same: older clients know it by this name.
        message_id: Of the newest reply, as its stream named it.
        timestamp: When it was asked.
        query: The question.
        response: The answer, as far as it was written.
        resolution_status: `unanswered` also where no whole answer was given, or an unsure one; see `outcome`.
        outcome: `unsure`: the nearest passages were shown, and may answer; `failed`: there is no whole answer.
            Null while the reply is under way.
        is_gap: Whether the documentation lacks the answer. False also where the reply failed, was filtered,
            empty, stopped or interrupted, is unsure, or is under way: `failure`, `outcome` and `state` say so.
        state: How far the answer came; null when it was never begun.
        failure: Why it failed, or was cut by a content filter.
        uncited: Whether the answer cites no passage.
        checks: Its sentences; null for an answer that was not checked.
        model: The model that wrote it.
        sources: The sources that the answer cites.
        page: The page that the reader had open.
        feedback: The last one of this answer.
        caller: The kind of client that asked; empty from before it was recorded.
        project_id: The project whose site was asked.
    """

    id: str
    thread_id: str
    conversation_id: str
    message_id: str
    timestamp: datetime
    query: str
    response: str
    resolution_status: Literal["answered", "unanswered"]
    outcome: Literal["answered", "failed", "unanswered", "unsure"] | None
    is_gap: bool
    state: Literal["active", "completed", "failed", "interrupted", "stopped"] | None
    failure: ReplyFailure | None
    uncited: bool
    checks: AnswerChecks | None
    model: str | None
    sources: list[Source]
    page: str | None
    feedback: Feedback | None
    caller: Literal["", "api", "mcp", "terminal", "web"]
    project_id: str


@dataclass(frozen=True, kw_only=True)
class Conversations:
    """Some of what was asked.

    Attributes:
        conversations: The newest first.
        next_cursor: Send it back as `cursor` for the next ones; null at the end.
        has_more: Whether there are more rows.
    """

    conversations: list[Conversation]
    next_cursor: str | None
    has_more: bool


@dataclass(frozen=True, kw_only=True)
class CreatedKey:
    """A new key, with its secret part.

    Attributes:
        id: The key's id.
        kind: Which of the two APIs it opens.
        organization_id: The organization that owns it.
        name: The key's purpose.
        last_four: Its last four characters.
        status: Whether it can be used.
        domains: The sites that an assistant key serves.
        allowed_addresses: From where it may be used; empty for anywhere.
        allowed_origins: The websites that may use it; empty for any.
        use: The callers of an assistant key: `open` for any, `server` for no web page, `browser` for pages of
            its origins; null for an admin key.
        reader_tokens: Whether each call from a page carries a reader token.
        created_at: When it was created.
        expires_at: When it ends; null for never.
        used_at: When it was last used, to the hour.
        revoked_at: When it was revoked.
        scope: What an admin key may do: `read`, `jobs` (read, and change jobs) or `all`. Null for an assistant
            key.
        token: The whole key. It is shown this once, and kept nowhere.
    """

    id: str
    kind: Literal["admin", "assistant"]
    organization_id: str
    name: str
    last_four: str
    status: Literal["expired", "in_force", "revoked"]
    domains: list[str]
    allowed_addresses: list[str]
    allowed_origins: list[str]
    use: Literal["browser", "open", "server"] | None
    reader_tokens: bool
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None
    revoked_at: datetime | None
    scope: Literal["all", "jobs", "read"] | None
    token: str


@dataclass(frozen=True, kw_only=True)
class CreatedWebhook:
    """A new webhook, with its secret.

    Attributes:
        id: The webhook's id.
        organization_id: The organization that owns it.
        project_id: The project whose jobs it reports; null for all of them.
        url: Where it is sent.
        events: The events that are sent to it.
        disabled: Why nothing is sent to it; null when it is enabled.
        created_at: When it was created.
        pending: Deliveries that have not arrived yet.
        secret: What its messages are signed with. It is shown this once.
    """

    id: str
    organization_id: str
    project_id: str | None
    url: str
    events: list[Literal["job.active", "job.completed", "job.failed"]]
    disabled: str | None
    created_at: datetime
    pending: int
    secret: str


@dataclass(frozen=True, kw_only=True)
class Day:
    """One day, in UTC.

    Attributes:
        day: Such as 2026-11-21.
        counts: The questions that were asked on it.
    """

    day: date
    counts: QuestionCounts


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """One report to one webhook.

    Attributes:
        id: The delivery's id: the `webhook-id` that is sent.
        webhook_id: The webhook that it is for.
        job_id: The job that it is about; null for a test.
        event: The event that it reports.
        state: How far it is.
        attempts: How often it was tried.
        status: The HTTP status of the last answer.
        error: Why there was no answer; empty when there was.
        occurred_at: When it happened.
        attempted_at: When it was last tried.
        next_attempt_at: When it is tried next.
    """

    id: str
    webhook_id: str
    job_id: str | None
    event: Literal["job.active", "job.completed", "job.failed", "webhook.test"]
    state: Literal["delivered", "failed", "pending"]
    attempts: int
    status: int | None
    error: str
    occurred_at: datetime
    attempted_at: datetime | None
    next_attempt_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class DeliveryList:
    """Some of a webhook's deliveries, the newest first.

    Attributes:
        deliveries: The deliveries.
        next_cursor: Send it back as `cursor` for the next ones; null at the end.
    """

    deliveries: list[Delivery]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class DoubtfulAnswer:
    """An answer with sentences that no passage supports.

    Attributes:
        id: Of the question.
        thread_id: Of the thread that it is in.
        message_id: Of the reply.
        timestamp: When the question was asked.
        query: The question.
        checks: Its sentences.
    """

    id: str
    thread_id: str
    message_id: str
    timestamp: datetime
    query: str
    checks: AnswerChecks


@dataclass(frozen=True, kw_only=True)
class ErasedThread:
    """A conversation whose text is erased.

    Attributes:
        thread_id: The thread's id.
        position: The position of the record of it in the log.
        again: Whether it was erased before.
    """

    thread_id: str
    position: int
    again: bool


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """How well a site's search finds what test questions want. Measures are averages from 0 to 1.

    Attributes:
        domain: The site.
        commit: The commit that is indexed.
        questions: Number of the questions.
        plain: How many of them name neither pages nor facts. Of the others are the measures; null without any.
        answered: How many of the plain ones the builtin assistant answers.
        recall_at5: The share of what a question wants that is among the first five.
        hit_at5: The share of questions with something right among the first five.
        mrr: How high the first right one stands: 1 divided by its place.
        ndcg_at10: The normalized discounted cumulative gain of the first ten.
        misses: Those with nothing right among the first five, or no answer.
    """

    domain: str
    commit: str
    questions: int
    plain: int
    answered: int
    recall_at5: float | None
    hit_at5: float | None
    mrr: float | None
    ndcg_at10: float | None
    misses: list[Missed]


@dataclass(frozen=True, kw_only=True)
class Example:
    """A question of a wording.

    Attributes:
        id: Of the question.
        thread_id: Of the thread that it is in.
        query: The question as it was put.
        timestamp: When it was asked.
    """

    id: str
    thread_id: str
    query: str
    timestamp: datetime


@dataclass(frozen=True, kw_only=True)
class ExplainedResult:
    """A section, with what gave it its place.

    Attributes:
        content: Its text as Markdown.
        path: The page's path on the site, without the leading slash.
        metadata: Where a section is from.
        explanation: What gave it its place.
    """

    content: str
    path: str
    metadata: ResultMetadata
    explanation: Explanation


@dataclass(frozen=True, kw_only=True)
class ExplainedResults:
    """The result of a search, with its reasons.

    Attributes:
        commit: The commit that is indexed.
        results: Sections, best first.
    """

    commit: str
    results: list[ExplainedResult]


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Where a section's place in a result comes from: points, which `place` multiplies.

    Attributes:
        points: All of the following together, multiplied by `place`.
        title: Points of the page's title.
        links: Points of the names that other pages have for it.
        text: Points of the whole page as one text.
        heading: Points of the section's heading.
        body: Points of the section's text.
        further_sections: Points of the page's further sections.
        pairs: Points of neighbours of the question that stand side by side.
        place: Over 1 for a page that others link to; under 1 for older versions, change logs, and other
            languages than the reader's.
        word_rank: The page's place by its words, from 1.
        meaning_rank: By its meaning; 0 when meanings are not compared, or it was not among the first.
        language: The language of its text.
        site_language: The language that the site says its page is in; may be empty.
        reader_language: The language that pages were ranked for; may be empty.
        copies: Translations and other versions of its page, which the page stands for.
        words: The words as they were looked up.
        corrected: Words that were typed and are not on the site, with the words that were looked up instead.
    """

    points: float
    title: float
    links: float
    text: float
    heading: float
    body: float
    further_sections: float
    pairs: float
    place: float
    word_rank: int
    meaning_rank: int
    language: str
    site_language: str
    reader_language: str
    copies: int
    words: list[str]
    corrected: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Feedback:
    """A reader's rating of a reply.

    Attributes:
        rating: Whether it was of use.
        comment: In the reader's words.
        created_at: When it was said.
    """

    rating: Literal["down", "up"]
    comment: str | None
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class FeedbackList:
    """Some of what readers thought.

    Attributes:
        feedback: The newest first.
        next_cursor: Send it back as `cursor` for the next ones; null at the end.
        has_more: Whether there are more rows.
    """

    feedback: list[Rated]
    next_cursor: str | None
    has_more: bool


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Which pages count. A page that says nothing of a thing matches any value of it.

    Attributes:
        version: Only pages of this version.
        language: Only pages in this language; one that is not translated is found in the site's own.
        tag: Only pages with this tag.
        groups: The reader's groups: pages for others are left out.
    """

    version: str | None = None
    language: str | None = None
    tag: str | None = None
    groups: list[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One finding of a site's report.

    Attributes:
        path: The file.
        detail: The finding in words.
        line: Its line, from 1; 0 for a finding of the whole file.
    """

    path: str
    detail: str
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The findings of one kind.

    Attributes:
        number: Number of all.
        first: The first thousand of them.
    """

    number: int
    first: list[Finding]


@dataclass(frozen=True, kw_only=True)
class FirstText:
    """Times from a question to the first text of its answer, to the end of the interval that they were counted
    in.

    Attributes:
        replies: How many were measured.
        median_ms: Half of them took at most this, in milliseconds.
        p95_ms: 95 of 100 took at most this, in milliseconds.
    """

    replies: int
    median_ms: int | None
    p95_ms: int | None


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Unanswered questions that ask for the same thing.

    Attributes:
        id: A name for the group: the same as long as its oldest question is.
        project_id: The project whose documentation lacks the answer.
        question: The newest question in the group's commonest wording.
        count: How often it was asked in the period.
        wordings: In how many wordings.
        last_asked_at: When it was asked last.
        examples: The newest questions.
        pages: Files that the searches for it found, the most frequent first.
        prompt: An instruction for a job that closes the gap.
        job_id: The job that was made of it since it was asked last.
        dismissed_by: Who dismissed it: a key's id; `person:` and the id of a person; `cli:` and the name of a
            user at the terminal.
        dismissed_at: When it was dismissed; null while it is open.
    """

    id: str
    project_id: str
    question: str
    count: int
    wordings: int
    last_asked_at: datetime
    examples: list[Example]
    pages: list[str]
    prompt: str
    job_id: str | None
    dismissed_by: str | None = None
    dismissed_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Gaps:
    """Some of the gaps of a period.

    Attributes:
        gaps: The most frequent first.
        next_cursor: Send it back as `cursor` for the next ones; null at the end.
        has_more: Whether there are more rows.
    """

    gaps: list[Gap]
    next_cursor: str | None
    has_more: bool


@dataclass(frozen=True, kw_only=True)
class GoldenQuestion:
    """A question, and the pages or the facts that it wants; a plain one wants an answer of the builtin
    assistant.

    Attributes:
        query: Words, or a question.
        relevant: Pages by their path in the repository or on the site.
        facts: Texts that the passages found must contain, in any case and spacing.
    """

    query: str
    relevant: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Health:
    """The process lives.

    Attributes:
        status: Always this.
    """

    status: Literal["ok"] = "ok"


@dataclass(frozen=True, kw_only=True)
class Highlight:
    """A word that was found, as JavaScript's `slice` takes it: characters are counted in UTF-16 units.

    Attributes:
        start: Its first character, from 0.
        end: The character after its last.
    """

    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Highlights:
    """Where the words that were looked up stand.

    Attributes:
        title: In `metadata.title`.
        heading: In `metadata.heading`.
        content: In `content`.
    """

    title: list[Highlight]
    heading: list[Highlight]
    content: list[Highlight]


@dataclass(frozen=True, kw_only=True)
class Hunk:
    """Changed lines with some around them.

    Attributes:
        first_old: The first line before the change, from 1.
        first_new: The first line after the change, from 1.
        lines: The lines.
    """

    first_old: int
    first_new: int
    lines: list[ChangedLine]


@dataclass(frozen=True, kw_only=True)
class IndexFailure:
    """Why a site could not be indexed the last time.

    Attributes:
        code: Stable; `/docs/errors/CODE` says what to do about it.
        message: The same as a plain sentence.
        at: When that was.
        times: How often in a row.
    """

    code: str
    message: str
    at: datetime
    times: int


@dataclass(frozen=True, kw_only=True)
class Indexing:
    """The indexing of a site that is under way, or waits.

    Attributes:
        stage: What is being done, in words.
        since: Since when the site is behind.
        done: Files that were read.
        total: Files to read; 0 while it is not known.
    """

    stage: str
    since: datetime
    done: int
    total: int


@dataclass(frozen=True, kw_only=True)
class Invited:
    """A person, with a link that signs them in.

    Attributes:
        id: The person's id.
        organization_id: The organization.
        email: The person's email.
        name: The person's name.
        role: A viewer reads; an editor also gives jobs; an owner also manages keys and people.
        given_at: When the person got this role.
        signed_in_at: When the person last signed in; null for never.
        sign_in_link: Signs the person in, once, within 7 days. It is shown this once.
    """

    id: str
    organization_id: str
    email: str
    name: str
    role: Literal["editor", "owner", "viewer"]
    given_at: datetime
    signed_in_at: datetime | None
    sign_in_link: str


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job as version 2 of the API shows it.

    Attributes:
        id: The job's id; jobs sort by it as they were created.
        status: `active` until it ends, and again after a message.
        source: The repository and branch that the job works on.
        model: The model that does the work, by its full name.
        pr_link: The pull request; null while active, and when nothing was to change.
        created_at: When it was asked for.
        archived_at: When it was archived; null when it was not.
        title: Its pull request's title; before there is one, the instruction in a few words.
        branch: The branch that the work is on.
        failure: Why it failed; null when it did not.
        usage: Tokens and cost of the model's calls, of all rounds together.
        outcome: How the job's last round ended; null while it is active. `needs_input`: it asks something; send
            a message to answer.
        message: The agent's closing words, plain text of at most 2,000 characters: what was done, why nothing
            was, or what it needs to know; why the job failed, if it did. Null while it is active.
        problems: What the checks found last and still see; errors first.
        queue_position: From 1 while the job waits for others to end, else null.
        waiting: What an active job waits for, without a place among the running jobs. Null while it runs, and
            when it has ended.
        ended_at: When its last round ended; null while it is active.
        pull_request_state: As far as the service knows, whether the pull request is open; null without one.
    """

    id: str
    status: Literal["active", "completed", "failed"]
    source: JobSource
    model: str
    pr_link: str | None
    created_at: datetime
    archived_at: datetime | None
    title: str
    branch: str
    failure: JobFailure | None
    usage: JobUsage
    outcome: Literal["failed", "needs_input", "nothing_changed", "pull_request"] | None
    message: str | None
    problems: list[Problem]
    queue_position: int | None = None
    waiting: JobWait | None = None
    ended_at: datetime | None = None
    pull_request_state: Literal["closed", "merged", "open"] | None = None


@dataclass(frozen=True, kw_only=True)
class JobFailure:
    """Why a job failed.

    Attributes:
        code: Stable; `/docs/errors/CODE` says what to do about it.
        message: The same as a plain sentence.
    """

    code: str
    message: str


@dataclass(frozen=True, kw_only=True)
class JobList:
    """Some of a project's jobs.

    Attributes:
        jobs: The newest first.
        next_cursor: Send it back as `cursor` for the next ones; null at the end.
    """

    jobs: list[Job]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """A request to a job's model, rebuilt from the job's events.

    Attributes:
        number: Its number, from 1; 0 where the job has made none.
        count: How many requests the job has made that had a reply.
        at: When its reply was complete; null where there is no request.
        model: The model that replied; empty where the reply was lost.
        lost: The code for which its reply could not be used; empty for one that could.
        prompts: The hash of the prompts and tools; empty from before it was recorded.
        is_rebuilt: Whether tools and messages are those that were sent; false where they are not on record.
        max_output_tokens: The limit for the reply; 0 where it was not recorded.
        lines_left_out: Lines of context repositories that are not public, which are left out of the messages.
        tools: The tools that the model was offered.
        messages: All messages in order, the system prompt first.
    """

    number: int
    count: int
    at: datetime | None
    model: str
    lost: str
    prompts: str
    is_rebuilt: bool
    max_output_tokens: int
    lines_left_out: int
    tools: list[SentTool]
    messages: list[SentMessage]


@dataclass(frozen=True, kw_only=True)
class JobSource:
    """The repository and branch that the job works on.

    Attributes:
        repository: The repository's URL; for a folder on the server `hosted/PROJECT.git`, where the service
            serves it to git, below its own address.
        ref: The branch that the work started from.
    """

    repository: str
    ref: str


@dataclass(frozen=True, kw_only=True)
class JobStep:
    """A step of a job: what people said, or what the agent did.

    Attributes:
        position: The position of its event in the log: `followJob` goes on after it.
        at: When it took place; of a wait, when it is tried again.
        name: The step, or the name of the tool that returned.
        detail: A short addition, such as a path or a commit; may be empty.
        words: What was said, called, returned or found, cut after 2,000 characters; empty for other steps.
        is_tool: Whether a tool returned.
        is_error: Whether it failed.
        is_said: Whether people said it.
    """

    position: int
    at: datetime
    name: str
    detail: str
    words: str
    is_tool: bool
    is_error: bool
    is_said: bool


@dataclass(frozen=True, kw_only=True)
class JobSteps:
    """Some of a job's steps, and its plan as it is now.

    Attributes:
        steps: The oldest first.
        plan: The agent's plan as it is now.
        next_cursor: Send it back as `cursor` for the steps before these; null when there are none.
    """

    steps: list[JobStep]
    plan: list[Todo]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class JobUsage:
    """Tokens and cost of the model's calls, of all rounds together.

    Attributes:
        input_tokens: Tokens that the model read.
        output_tokens: Tokens that it wrote.
        cost_usd: In US dollars; null when the price is not known.
    """

    input_tokens: int
    output_tokens: int
    cost_usd: float | None


@dataclass(frozen=True, kw_only=True)
class JobWait:
    """Why a job does not go on just now. It goes on by itself.

    Attributes:
        for_: `turn`: a place among the running jobs. Else what is away, or full: it is tried again.
        since: When it began to wait.
        next_try_at: When it is tried again; null for a turn.
        reason: The same as a plain sentence.
    """

    for_: Literal["code_host", "disk", "git", "model", "turn"]
    since: datetime
    next_try_at: datetime | None
    reason: str


@dataclass(frozen=True, kw_only=True)
class Key:
    """An API key.

    Attributes:
        id: The key's id.
        kind: Which of the two APIs it opens.
        organization_id: The organization that owns it.
        name: The key's purpose.
        last_four: Its last four characters.
        status: Whether it can be used.
        domains: The sites that an assistant key serves.
        allowed_addresses: From where it may be used; empty for anywhere.
        allowed_origins: The websites that may use it; empty for any.
        use: The callers of an assistant key: `open` for any, `server` for no web page, `browser` for pages of
            its origins; null for an admin key.
        reader_tokens: Whether each call from a page carries a reader token.
        created_at: When it was created.
        expires_at: When it ends; null for never.
        used_at: When it was last used, to the hour.
        revoked_at: When it was revoked.
        scope: What an admin key may do: `read`, `jobs` (read, and change jobs) or `all`. Null for an assistant
            key.
    """

    id: str
    kind: Literal["admin", "assistant"]
    organization_id: str
    name: str
    last_four: str
    status: Literal["expired", "in_force", "revoked"]
    domains: list[str]
    allowed_addresses: list[str]
    allowed_origins: list[str]
    use: Literal["browser", "open", "server"] | None
    reader_tokens: bool
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None
    revoked_at: datetime | None
    scope: Literal["all", "jobs", "read"] | None


@dataclass(frozen=True, kw_only=True)
class KeyList:
    """Some of an organization's keys, the newest first.

    Attributes:
        keys: The keys.
        next_cursor: Send it back as `cursor` for the next ones; null at the end.
    """

    keys: list[Key]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A limit on requests in a sliding window, and how much of it is used.

    Attributes:
        scope: What the limit is for, as `RateLimit-Policy` names it.
        id: The id of that organization, project or key.
        name: Its name.
        limit: Requests that the window takes.
        window_seconds: The length of the window, in seconds.
        used: Requests in the window now.
        resets_at: When the oldest request leaves the window; null when unused.
    """

    scope: Literal["assistant-key", "organization", "project", "public-site"]
    id: str
    name: str
    limit: int
    window_seconds: int
    used: int
    resets_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class ListedJob:
    """A job among those of an organization.

    Attributes:
        id: The job's id; jobs sort by it as they were created.
        status: `active` until it ends, and again after a message.
        source: The repository and branch that the job works on.
        model: The model that does the work, by its full name.
        pr_link: The pull request; null while active, and when nothing was to change.
        created_at: When it was asked for.
        archived_at: When it was archived; null when it was not.
        title: Its pull request's title; before there is one, the instruction in a few words.
        branch: The branch that the work is on.
        failure: Why it failed; null when it did not.
        usage: Tokens and cost of the model's calls, of all rounds together.
        outcome: How the job's last round ended; null while it is active. `needs_input`: it asks something; send
            a message to answer.
        message: The agent's closing words, plain text of at most 2,000 characters: what was done, why nothing
            was, or what it needs to know; why the job failed, if it did. Null while it is active.
        problems: What the checks found last and still see; errors first.
        queue_position: From 1 while the job waits for others to end, else null.
        waiting: What an active job waits for, without a place among the running jobs. Null while it runs, and
            when it has ended.
        ended_at: When its last round ended; null while it is active.
        pull_request_state: As far as the service knows, whether the pull request is open; null without one.
        project_id: The project that it belongs to.
        state: Its status in more detail. `review`: its pull request is open, as far as the service knows.
        began_at: When its last round began.
        requested_by: A key's id; `person:` and the id of a person; `cli:` and the name of a user at the
            terminal.
    """

    id: str
    status: Literal["active", "completed", "failed"]
    source: JobSource
    model: str
    pr_link: str | None
    created_at: datetime
    archived_at: datetime | None
    title: str
    branch: str
    failure: JobFailure | None
    usage: JobUsage
    outcome: Literal["failed", "needs_input", "nothing_changed", "pull_request"] | None
    message: str | None
    problems: list[Problem]
    queue_position: int | None = None
    waiting: JobWait | None = None
    ended_at: datetime | None = None
    pull_request_state: Literal["closed", "merged", "open"] | None = None
    project_id: str
    state: Literal[
        "cancelled",
        "closed",
        "failed",
        "merged",
        "needs_input",
        "nothing_changed",
        "queued",
        "review",
        "running",
        "waiting",
    ]
    began_at: datetime
    requested_by: str


@dataclass(frozen=True, kw_only=True)
class Member:
    """A person who has a role in an organization.

    Attributes:
        id: The person's id.
        organization_id: The organization.
        email: The person's email.
        name: The person's name.
        role: A viewer reads; an editor also gives jobs; an owner also manages keys and people.
        given_at: When the person got this role.
        signed_in_at: When the person last signed in; null for never.
    """

    id: str
    organization_id: str
    email: str
    name: str
    role: Literal["editor", "owner", "viewer"]
    given_at: datetime
    signed_in_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class MemberList:
    """Some of an organization's people, by email.

    Attributes:
        people: The people.
        next_cursor: Send it back as `cursor` for the next ones; null at the end.
    """

    people: list[Member]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class Missed:
    """A question with nothing right among the first five, or a plain one without an answer.

    Attributes:
        query: The question.
        wanted: The pages or facts that it wants; none of a plain question, which is not answered.
        found: The first pages instead.
    """

    query: str
    wanted: list[str]
    found: list[str]


@dataclass(frozen=True, kw_only=True)
class Models:
    """The models of the agent, as the operator's settings name them.

    Attributes:
        agent: The model of jobs that name none.
        aliases: The names that a job may give as its `model`.
        refused: The parts of requests that a model's server refuses, as set or learned within a day, by alias.
    """

    agent: str
    aliases: list[str]
    refused: dict[str, list[str]]


@dataclass(frozen=True, kw_only=True)
class Organization:
    """The owner of projects and keys.

    Attributes:
        id: The organization's id.
        name: Its name for people.
        created_at: When it was created.
    """

    id: str
    name: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class OrganizationJobList:
    """Some of an organization's jobs.

    Attributes:
        jobs: The newest first.
        next_cursor: Send it back as `cursor` for the next ones; null at the end.
    """

    jobs: list[ListedJob]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class Overview:
    """Numbers of what waits for an organization's people.

    Attributes:
        jobs: Its jobs.
        unanswered: Questions of the last 7 days that are in gaps.
        sites: Its sites.
        failing_sites: Sites that could not be indexed the last time.
        oldest_indexed_at: When the oldest index of its sites was made; null before the first.
    """

    jobs: WaitingJobs
    unanswered: int
    sites: int
    failing_sites: int
    oldest_indexed_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page.

    Attributes:
        path: As it was asked for.
        content: Its text as Markdown.
        metadata: Where a page is from.
    """

    path: str
    content: str
    metadata: PageMetadata


@dataclass(frozen=True, kw_only=True)
class PageMetadata:
    """Where a page is from.

    Attributes:
        title: The page's title.
        url: Where it is on the site.
        path: Its path on the site, without the leading slash.
        file: Its path in the repository.
    """

    title: str
    url: str
    path: str
    file: str


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A source of an answer, as it was at the commit that the answer was made from.

    Attributes:
        source: The source.
        lines: The cited lines and some around them, at most 400; none when the file does not have them.
    """

    source: Source
    lines: list[PassageLine]


@dataclass(frozen=True, kw_only=True)
class PassageLine:
    """A line of a cited file.

    Attributes:
        number: Its number in the file, from 1.
        text: The line, cut after 2,000 characters.
        is_cited: Whether the answer cites it; the others are around the passage.
    """

    number: int
    text: str
    is_cited: bool


@dataclass(frozen=True, kw_only=True)
class Payment:
    """The payment for questions that a site is asked without a key.

    Attributes:
        model: The model that answers.
        cost_bound_usd_day: The most that it may cost in a day of UTC; 0 where it is free.
        problem: Why the builtin model answers instead; empty when it need not.
    """

    model: str
    cost_bound_usd_day: float
    problem: str


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A problem that the checks found in the changes and that remains.

    Attributes:
        severity: An `error` makes the pull request a draft; a `warning` does not.
        file: The file's path; null for a problem of the change as a whole.
        line: The line, from 1; null when it has none.
        code: The rule's name; stable.
        message: A plain sentence.
    """

    severity: Literal["error", "warning"]
    file: str | None
    line: int | None
    code: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Project:
    """A documentation repository, its code host and its site.

    Attributes:
        id: The project's id.
        organization_id: The organization that owns it.
        name: Its name for people.
        repository: The repository's URL, or a folder on the server.
        ref: The branch that the site shows and jobs start from.
        docs_folder: The folder of it that holds the documentation; empty for all of it.
        domain: The identifier of its site.
        code_host: Where its pull requests are opened.
        api_url: Where the code host's API is; empty when where it usually is.
        git_token_env: The environment variable that holds the code host's token.
        github_app_id: The GitHub App that is used instead of a token.
        github_app_key_env: The environment variable that holds the App's private key.
        labels: For each pull request.
        reviewers: The reviewers of each pull request.
        contexts: Its context repositories.
        guarded: A browser or the API named it: its servers must have public addresses, its folder must be
            allowed.
        token_id: The vault's name for its token, which is never shown; empty for none.
        site_url: The address at which its pages are published; empty where it is not known.
        max_cost_usd_day: The most that replies of its site may cost in a day of UTC; 0: no bound of its own.
        follows: The names that the repository's default branch has had, the last one now; empty: one was
            chosen.
        created_at: When it was created.
    """

    id: str
    organization_id: str
    name: str
    repository: str
    ref: str
    docs_folder: str
    domain: str
    code_host: Literal["gitea", "github", "gitlab", "local", "website"]
    api_url: str
    git_token_env: str
    github_app_id: str
    github_app_key_env: str
    labels: list[str]
    reviewers: list[str]
    contexts: list[Context]
    guarded: bool
    token_id: str
    site_url: str
    max_cost_usd_day: float
    follows: list[str]
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class ProjectList:
    """Projects of an organization.

    Attributes:
        projects: By domain.
        next_cursor: Send it back as `cursor` for the next ones; null at the end.
    """

    projects: list[Project]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class QuestionCounts:
    """Questions by their outcome, and ratings.

    Attributes:
        questions: How many were asked.
        answered: How many the documentation answers.
        unsure: How many got the nearest passages, which may answer them.
        unanswered: How many it does not.
        failed: How many have no whole answer: failed, stopped, interrupted or filtered.
        up: Replies rated up.
        down: Replies rated down.
    """

    questions: int = 0
    answered: int = 0
    unsure: int = 0
    unanswered: int = 0
    failed: int = 0
    up: int = 0
    down: int = 0


@dataclass(frozen=True, kw_only=True)
class Rated:
    """A reply that a reader rated; the last rating of it counts.

    Attributes:
        id: Of the reply.
        thread_id: Of the thread that it is in.
        message_id: The same as `id`: the name that its stream gave it.
        rating: Whether it was of use.
        helpful: Whether the rating is `up`.
        comment: In the reader's words.
        created_at: When it was said.
        query: The question.
        response: The reply.
        path: The page that the reader had open.
    """

    id: str
    thread_id: str
    message_id: str
    rating: Literal["down", "up"]
    helpful: bool
    comment: str | None
    created_at: datetime
    query: str
    response: str
    path: str | None


@dataclass(frozen=True, kw_only=True)
class Readiness:
    """Whether the service can do its work.

    Attributes:
        status: `ready` when all is well.
        reasons: The parts that are not ready, and why; empty when all are.
        behind: Sites whose search index is older than their documentation, and why. The service is ready all
            the same.
        degraded: Parts that do less than they should, and why. `assistant`: its model fails, so readers get
            passages in place of answers, until a reply of it works again. `drill`: this is a drill on a
            restored copy. The service is ready all the same.
        models: The model that each kind of work uses.
    """

    status: Literal["not ready", "ready"]
    reasons: dict[str, str]
    behind: dict[str, str]
    degraded: dict[str, str]
    models: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class ReplyFailure:
    """Why a reply has no whole answer.

    Attributes:
        code: A stable name, such as `assistant_unavailable` or `content_filter`.
        message: The sentence that its reader saw, or the reason.
    """

    code: str
    message: str


@dataclass(frozen=True, kw_only=True)
class RequestReadiness:
    """Whether a proxy should send requests here.

    Attributes:
        status: `ready` when it should.
        reasons: Why it should not; empty when it should.
    """

    status: Literal["not ready", "ready"]
    reasons: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class ResultMetadata:
    """Where a section is from.

    Attributes:
        title: The page's title.
        url: Where the section is on the site, anchor included.
        score: 0 to 1, the best result being 1; to be compared within one answer only.
        heading: The section's heading; empty above a page's first one.
        heading_path: The headings above it, the outermost first.
        start_line: Where it begins in the file, from 1.
        end_line: Where it ends in the file.
        file: The path of its file in the repository: the page's, or one that the page shows.
        commit: The commit of the repository that it was read from.
        language: The language of the text, such as `de`.
        highlights: When the search asked for them: the words that were found, as ranges.
    """

    title: str
    url: str
    score: float
    heading: str
    heading_path: list[str]
    start_line: int
    end_line: int
    file: str
    commit: str
    language: str = ""
    highlights: Highlights | None = None


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """A section of a page.

    Attributes:
        content: Its text as Markdown.
        path: The page's path on the site, without the leading slash.
        metadata: Where a section is from.
    """

    content: str
    path: str
    metadata: ResultMetadata


@dataclass(frozen=True, kw_only=True)
class SentCall:
    """A call that the model made in an earlier reply.

    Attributes:
        id: The id that its result names.
        name: The tool.
        arguments: The arguments: JSON, as the model wrote it.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class SentMessage:
    """A message of a request.

    Attributes:
        role: Who says it.
        text: Its words; may be empty where it makes calls.
        calls: The calls that it makes; of the assistant's alone.
        call_id: The call that it is the result of; null where it is none.
        is_error: Whether that call failed.
        memory_bytes: Bytes that the provider had added to the reply and got back with it; no one else reads
            them.
    """

    role: Literal["assistant", "system", "tool", "user"]
    text: str
    calls: list[SentCall]
    call_id: str | None
    is_error: bool
    memory_bytes: int


@dataclass(frozen=True, kw_only=True)
class SentTool:
    """A tool as the model was offered it.

    Attributes:
        name: Its name.
        description: What it is for.
        parameters: The JSON Schema of its arguments.
    """

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ShownSite:
    """A site, with what is being done for it.

    Attributes:
        site: The site.
        indexing: How far its indexing is; null when none is under way.
        payment: Who would pay, or pays, for questions without a key.
    """

    site: Site
    indexing: Indexing | None
    payment: Payment


@dataclass(frozen=True, kw_only=True)
class Site:
    """A site, and the index that its search uses.

    Attributes:
        domain: The site's identifier.
        project_id: The project that it shows.
        organization_id: The organization that owns it.
        index_wanted: Whether a newer index is wanted, and not there yet.
        wanted_at: When that index was asked for.
        commit: The commit that is indexed; null before the first.
        indexed_at: When it was indexed.
        pages: Pages in the index.
        sections: Sections in the index.
        skipped_count: Files that were left out.
        failure: Why the last attempt failed; null when it did not.
        public: Whether it may be asked without a key.
        origins: The websites whose pages may ask it without a key.
        widget: How its widget presents itself.
    """

    domain: str
    project_id: str
    organization_id: str
    index_wanted: bool
    wanted_at: datetime | None
    commit: str | None
    indexed_at: datetime | None
    pages: int
    sections: int
    skipped_count: int
    failure: IndexFailure | None
    public: bool
    origins: list[str]
    widget: Widget


@dataclass(frozen=True, kw_only=True)
class SiteCost:
    """The cost of a site's replies today, in UTC, and the bounds on it.

    Attributes:
        project_id: The id of its project.
        domain: The site.
        spent_today_usd: The cost of the replies that have ended, where it is known.
        own_bound_usd_day: The bound that an owner has set; 0: none.
        bound_usd_day: The bound of the installation; 0: none. The lower one counts.
    """

    project_id: str
    domain: str
    spent_today_usd: float
    own_bound_usd_day: float
    bound_usd_day: float


@dataclass(frozen=True, kw_only=True)
class SiteList:
    """Sites of an organization.

    Attributes:
        sites: By domain.
        next_cursor: Send it back as `cursor` for the next ones; null at the end.
    """

    sites: list[Site]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class SiteReport:
    """How well a site was read, by its index.

    Attributes:
        generator: The site generator that the repository is for.
        commit: The commit that is indexed.
        pages: Pages in the index.
        sections: Sections in the index.
        navigation_entries: Pages that the navigation names; 0 where there is none.
        findings: By kind: `same_address`, `missing_entry`, `broken_link`, `missing_include`, `leftover` are
            mistakes; `not_in_navigation` and `skipped` may be intended.
    """

    generator: str
    commit: str
    pages: int
    sections: int
    navigation_entries: int
    findings: dict[str, Findings]


@dataclass(frozen=True, kw_only=True)
class Source:
    """A passage that an answer cites, as of a commit.

    Attributes:
        number: Its number in the answer's citations.
        title: The page's title.
        url: Where it is on the site.
        path: The path of its file in the repository: the page's, or one that the page shows.
        start_line: Where it begins in the file, from 1.
        end_line: Where it ends in the file.
        commit: The commit that it was read from.
    """

    number: int
    title: str
    url: str
    path: str
    start_line: int
    end_line: int
    commit: str


@dataclass(frozen=True, kw_only=True)
class Spending:
    """Tokens and cost of the replies to one key with one model.

    Attributes:
        key_id: The key; `keyless`, `cli:…` or `person:…` for questions without one.
        model: The model.
        replies: How many replies.
        input_tokens: Tokens that the model read.
        output_tokens: Tokens that it wrote.
        cost_usd: US dollars; null where no price is known.
    """

    key_id: str
    model: str
    replies: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


@dataclass(frozen=True, kw_only=True)
class Todo:
    """One step of the agent's plan.

    Attributes:
        id: Of this step, within the plan.
        content: The instruction.
        status: How far it is.
        priority: How much it matters.
    """

    id: str
    content: str
    status: Literal["cancelled", "completed", "in_progress", "pending"]
    priority: Literal["high", "low", "medium"]


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """A thread as it is now, without turns that were edited away.

    Attributes:
        thread_id: The thread's id.
        created_at: When it began.
        messages: In their order.
    """

    thread_id: str
    created_at: datetime
    messages: list[TranscriptMessage]


@dataclass(frozen=True, kw_only=True)
class TranscriptMessage:
    """A question, or a reply to one.

    Attributes:
        id: Of the question, or of the reply.
        role: The message's author.
        content: The words.
        created_at: When it was asked, or begun.
        resolution_status: Of a reply.
        state: Of a reply: how far it came.
        sources: The sources that a reply cites.
        feedback: Of a reply: the last one.
        failure: Of a reply: why it has no whole answer.
        uncited: Of a reply: whether it cites no passage.
        checks: Of a reply: its sentences.
        outcome: Of a reply: how it ended; null while it is under way.
    """

    id: str
    role: Literal["assistant", "user"]
    content: str
    created_at: datetime
    resolution_status: Literal["answered", "unanswered"] | None = None
    state: Literal["active", "completed", "failed", "interrupted", "stopped"] | None = None
    sources: list[Source] = field(default_factory=list)
    feedback: Feedback | None = None
    failure: ReplyFailure | None = None
    uncited: bool = False
    checks: AnswerChecks | None = None
    outcome: Literal["answered", "failed", "unanswered", "unsure"] | None = None


@dataclass(frozen=True, kw_only=True)
class Unanswered:
    """Questions that were worded alike, and that the documentation does not answer.

    Attributes:
        wording: The form that the questions share.
        count: How often it was asked.
        last_asked_at: When it was asked last.
        examples: The newest ones.
    """

    wording: str
    count: int
    last_asked_at: datetime
    examples: list[Example]


@dataclass(frozen=True, kw_only=True)
class UnansweredList:
    """Some of what the documentation does not say.

    Attributes:
        questions: The most frequent wording first.
        next_cursor: Send it back as `cursor` for the next ones; null at the end.
        has_more: Whether there are more rows.
    """

    questions: list[Unanswered]
    next_cursor: str | None
    has_more: bool


@dataclass(frozen=True, kw_only=True)
class UncitedPage:
    """A page that no answer cites.

    Attributes:
        path: Its file in the repository.
        title: Its title.
        url: Where it is on the site.
    """

    path: str
    title: str
    url: str


@dataclass(frozen=True, kw_only=True)
class UncitedPages:
    """Pages of the site, as it is indexed now, that no answer of the period cites.

    Attributes:
        count: How many.
        pages: The first of them.
    """

    count: int
    pages: list[UncitedPage]


@dataclass(frozen=True, kw_only=True)
class Usage:
    """The use of an organization, and its limits.

    Attributes:
        limits: The limits of the organization, and of the keys and projects that are listed, as they stand now.
        days: The requests of each day, oldest first.
        keys: The keys with most requests in these days, at most 50.
        projects: The projects with most requests in these days, at most 50.
        costs: The sites, by domain, at most 50.
    """

    limits: list[Limit]
    days: list[UsageDay]
    keys: list[UsageOf]
    projects: list[UsageOf]
    costs: list[SiteCost]


@dataclass(frozen=True, kw_only=True)
class UsageDay:
    """The accepted requests of a day.

    Attributes:
        day: The day, in UTC.
        assistant: Questions to the assistant.
        agent: New jobs, and messages to jobs.
    """

    day: date
    assistant: int
    agent: int


@dataclass(frozen=True, kw_only=True)
class UsageOf:
    """The accepted requests of one key or project.

    Attributes:
        id: Its id; empty for requests without a key.
        name: Its name.
        assistant: Questions to the assistant.
        agent: New jobs, and messages to jobs.
    """

    id: str
    name: str
    assistant: int
    agent: int


@dataclass(frozen=True, kw_only=True)
class WaitingJobs:
    """Jobs that are not archived, each kind counted up to 1,000.

    Attributes:
        review: Jobs whose pull request is open.
        needs_input: Jobs that ask something; send a message to answer.
        active: Jobs that are under way.
        failed: Jobs that failed.
    """

    review: int
    needs_input: int
    active: int
    failed: int


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """A webhook, without its secret.

    Attributes:
        id: The webhook's id.
        organization_id: The organization that owns it.
        project_id: The project whose jobs it reports; null for all of them.
        url: Where it is sent.
        events: The events that are sent to it.
        disabled: Why nothing is sent to it; null when it is enabled.
        created_at: When it was created.
        pending: Deliveries that have not arrived yet.
    """

    id: str
    organization_id: str
    project_id: str | None
    url: str
    events: list[Literal["job.active", "job.completed", "job.failed"]]
    disabled: str | None
    created_at: datetime
    pending: int


@dataclass(frozen=True, kw_only=True)
class WebhookList:
    """An organization's webhooks, oldest first.

    Attributes:
        webhooks: The webhooks.
    """

    webhooks: list[Webhook]


@dataclass(frozen=True, kw_only=True)
class Widget:
    """How a site's widget presents itself. Empty text: the widget's own, in the reader's language.

    Attributes:
        title: The heading of its panel.
        greeting: Its first words to the reader.
        suggestions: Questions to begin with.
        hand_off: Where readers get more help: a link, or an address that begins with `mailto:`. `{threadId}` in
            it stands for the id of the conversation; where it is missing, the id is added to a link as the
            parameter `threadId`, and to a mail as its subject.
        form: How the panel opens where the page's tag does not choose.
        accent: The colour of buttons and links, such as `#0b6e4f`.
    """

    title: str
    greeting: str
    suggestions: list[str]
    hand_off: str
    form: Literal["inline", "modal", "popover", "side"]
    accent: str


@dataclass(frozen=True, kw_only=True)
class WidgetSettings:
    """How a site's widget presents itself, and the site that it asks.

    Attributes:
        title: The heading of its panel.
        greeting: Its first words to the reader.
        suggestions: Questions to begin with.
        hand_off: Where readers get more help: a link, or an address that begins with `mailto:`. `{threadId}` in
            it stands for the id of the conversation; where it is missing, the id is added to a link as the
            parameter `threadId`, and to a mail as its subject.
        form: How the panel opens where the page's tag does not choose.
        accent: The colour of buttons and links, such as `#0b6e4f`.
        site: The site's domain.
        name: The name of its project.
        base: The address that relative links begin at; empty where it is not known.
        answered_by: `model` where a language model writes the answers, `quotes` where they are passages,
            quoted.
        reader_tokens: Whether calls with this key need a reader token.
    """

    title: str
    greeting: str
    suggestions: list[str]
    hand_off: str
    form: Literal["inline", "modal", "popover", "side"]
    accent: str
    site: str
    name: str
    base: str
    answered_by: Literal["model", "quotes"]
    reader_tokens: bool


# end of types


@dataclass(frozen=True)
class JobEvent:
    """An event of a job."""

    type: str
    """Such as `job-started`; more may come: ignore those that you do not know."""
    data: dict[str, Any]
    """Its fields, as the API's description lists them."""
    id: int | None
    """Its position, for ``after``; None for one that is only of the moment."""


@dataclass(frozen=True)
class AnswerSource:
    """A passage that an answer may cite by its number."""

    number: int
    title: str
    heading: str
    url: str
    path: str
    content: str


# Values in JSON

_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""Raised where JSON is not what it is read as."""


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; fields that are None are left out."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            _json_name(one.name): _plain(found)
            for one in dataclasses.fields(value)
            if (found := getattr(value, one.name)) is not None
        }
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return value.isoformat() if isinstance(value, date) else value


@functools.cache
def _json_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


@functools.cache
def _kinds(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _read(kind: Any, value: Any) -> Any:
    """Return a value of JSON as its type has it."""
    if value is None or kind is Any:
        return value
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _read(next(one for one in arguments if one is not type(None)), value)
    if origin is list:
        return [_read(arguments[0], one) for one in value]
    if origin is dict:
        return {name: _read(arguments[1], one) for name, one in value.items()}
    if kind is datetime:
        return datetime.fromisoformat(value.replace("Z", "+00:00"))  # Python 3.10 does not read the Z
    if kind is date:
        return date.fromisoformat(value)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        given = {
            one.name: _read(_kinds(kind)[one.name], value[_json_name(one.name)])
            for one in dataclasses.fields(kind)
            if _json_name(one.name) in value
        }
        return kind(**given)
    return value


# Requests


@dataclass(frozen=True)
class _Request:
    """A request, as it is sent each time."""

    method: str
    target: str
    """The path and the query."""
    headers: dict[str, str]
    body: bytes | None
    may_repeat: bool
    """Sending it twice does nothing twice."""
    seconds: float
    """The time without a byte after which the connection counts as lost."""


class _Lost(Exception):
    """A connection broke, with its cause."""

    def __init__(self, error: Exception, *, was_sent: bool) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.was_sent = was_sent


class _Aborted(Exception):
    """The caller does not wait any longer."""


class _Abort:
    """Ends what one thread does, from another one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fired = threading.Event()
        self._socket: socket.socket | None = None

    def fire(self) -> None:
        self._fired.set()
        with self._lock:
            if self._socket is not None:
                with suppress(OSError):  # the base class, since TLS would forget its state while the thread reads
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    @contextmanager
    def watching(self, connection: http.client.HTTPConnection) -> Iterator[None]:
        """Close the connection's socket when it fires within."""
        with self._lock:
            self._socket = connection.sock
        try:
            if self._fired.is_set():
                raise _Aborted
            yield
        finally:
            with self._lock:
                self._socket = None

    def pause(self, seconds: float) -> None:
        if self._fired.wait(seconds):
            raise _Aborted


_ABORT: contextvars.ContextVar[_Abort] = contextvars.ContextVar("abort")


def _abort() -> _Abort:
    return _ABORT.get(None) or _Abort()


class _Connections:
    """Connections to one server: each is used for one request at a time, and kept for the next."""

    def __init__(self, url: str, tls: ssl.SSLContext | None) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"Not the address of a service: {url!r}. It is like https://docsmith.example.com.")
        self._scheme, self._host = parts.scheme, parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._prefix = parts.path.rstrip("/")
        self._tls = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
        proxy = urllib.request.getproxies().get(parts.scheme, "")
        bypassed = not proxy or urllib.request.proxy_bypass(parts.hostname)
        self._proxy = None if bypassed else urllib.parse.urlsplit(proxy if "//" in proxy else f"//{proxy}")
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def send(self, request: _Request) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Send a request, and return the answer once its head is there. Raises _Lost."""
        connection = self._kept() or self._new()
        was_sent = False
        try:
            connection.timeout = request.seconds
            if connection.sock is None:
                connection.connect()
            connection.sock.settimeout(request.seconds)
            with _abort().watching(connection):
                was_sent = True
                connection.request(request.method, *self._addressed(request))
                return connection, connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise _Lost(error, was_sent=was_sent) from error
        except BaseException:
            connection.close()
            raise

    def keep(self, connection: http.client.HTTPConnection) -> None:
        """Keep a connection whose answer has been read for the next request."""
        with self._lock:
            self._idle.append(connection)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _kept(self) -> http.client.HTTPConnection | None:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None or (connection.sock is not None and not _is_readable(connection.sock)):
                return connection
            connection.close()  # the server has closed it

    def _new(self) -> http.client.HTTPConnection:
        host, port = self._host, self._port
        if self._proxy is not None:
            host, port = self._proxy.hostname or "", self._proxy.port or 80
        if self._tls is None:
            return http.client.HTTPConnection(host, port)
        connection = http.client.HTTPSConnection(host, port, context=self._tls)
        if self._proxy is not None:
            connection.set_tunnel(self._host, self._port, self._proxy_headers())
        return connection

    def _addressed(self, request: _Request) -> tuple[str, bytes | None, dict[str, str]]:
        target = self._prefix + request.target
        if self._proxy is None or self._tls is not None:
            return target, request.body, request.headers
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}{target}", request.body, {**request.headers, **self._proxy_headers()}

    def _proxy_headers(self) -> dict[str, str]:
        if self._proxy is None or self._proxy.username is None:
            return {}
        name, password = urllib.parse.unquote(self._proxy.username), urllib.parse.unquote(self._proxy.password or "")
        return {"Proxy-Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def _is_readable(connected: socket.socket) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(connected, selectors.EVENT_READ)
        return bool(selector.select(0))


def _error_of(response: http.client.HTTPResponse) -> ApiError:
    try:
        problem = json.loads(response.read(1_000_000))
    except (ValueError, RecursionError):
        problem = None
    after = response.headers.get("Retry-After", "")
    kind = _ERRORS.get(response.status, ApiError)
    seconds = float(after) if after.isascii() and after.isdigit() else None
    return kind(response.status, problem if isinstance(problem, dict) else {}, retry_after_seconds=seconds)


def _whole(response: http.client.HTTPResponse) -> bytes:
    """Return the body of an answer. Raises UnexpectedAnswer for one that is too long."""
    if response.length is None:
        body = bytearray()
        while len(body) <= MAX_ANSWER_BYTES:
            part = response.read(65_536)
            if not part:
                return bytes(body)
            body += part
    elif response.length <= MAX_ANSWER_BYTES:
        return response.read()
    raise UnexpectedAnswer(f"The answer has more than {MAX_ANSWER_BYTES} bytes.")


class _Stream:
    """The server-sent events of one answer."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._connection, self._response = connection, response
        self.headers = response.headers

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Yield the id and data of each event, to the end of the answer. Raises _Lost."""
        event_id, data, size = "", list[str](), 0
        for line in self._lines():
            size += len(line) + 1
            if size > MAX_EVENT_BYTES:
                raise _long_event()
            if not line:
                if data:
                    yield event_id, "\n".join(data)
                event_id, data, size = "", [], 0
            elif line.startswith("data:"):
                data.append(line[5:].removeprefix(" "))
            elif line.startswith("id:"):
                event_id = line[3:].strip()

    def _lines(self) -> Iterator[str]:
        """Yield lines, which end with CR, LF or both."""
        rest = b""
        while True:
            try:
                with _abort().watching(self._connection):
                    found = self._response.read1(65_536)
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise _Lost(error, was_sent=True) from error
            if not found and not self._response.isclosed():
                raise _Lost(http.client.IncompleteRead(b""), was_sent=True)
            is_within_line = found and not rest.endswith(b"\r") and b"\n" not in found and b"\r" not in found
            *lines, rest = [rest + found] if is_within_line else re.split(rb"\r\n|\n|\r(?!\Z)", rest + found)
            for line in lines:
                yield line.decode("utf-8", "replace")
            if len(rest) > MAX_EVENT_BYTES:
                raise _long_event()
            if not found:
                return

    def close(self) -> None:
        self._response.close()
        self._connection.close()


def _long_event() -> UnexpectedAnswer:
    return UnexpectedAnswer(f"An event of the answer has more than {MAX_EVENT_BYTES} bytes.")


class Docsmith:
    """A service, for one key. It may be used by several threads at once.

    ``key`` is an admin or an assistant key; a public site needs none. ``timeout_seconds`` is the time without a byte
    after which a connection counts as lost. ``retries`` is the number of times that a request is sent again.
    """

    def __init__(
        self,
        url: str,
        key: str = "",
        *,
        timeout_seconds: float = 30.0,
        retries: int = 4,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._connections = _Connections(url, tls)
        self._url, self._timeout, self._retries = url, timeout_seconds, retries
        self._headers = {"User-Agent": f"python-docsmith/{VERSION} Python/{platform.python_version()}"}
        if key := key.strip():  # a file that holds it ends with a newline
            if not re.fullmatch(r"[!-~]+", key):
                raise ValueError("The key has characters that no key has. Pass it as it was shown when it was made.")
            self._headers["Authorization"] = f"Bearer {key}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r})"

    def __enter__(self) -> Docsmith:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that are kept for further requests."""
        self._connections.close()

    def wait_for_job(self, project_id: str, job_id: str, *, timeout_seconds: float = 3600.0) -> Job:
        """Wait until a job has ended, and return it.

        Raises:
            JobStillActive: it did not end in time. It goes on.
        """
        deadline = _now() + timeout_seconds
        while True:
            left = max(0.0, deadline - _now())
            job = self.get_job(project_id, job_id, wait=min(30.0, left))
            if job.status != "active":
                return job
            if _now() >= deadline:
                raise JobStillActive(f"Job {job_id} did not end within {timeout_seconds:g} s. It goes on.")

    def follow_job(self, project_id: str, job_id: str, *, after: int = 0) -> Iterator[JobEvent]:
        """Yield the events of a job, past ones first, until it ends. ``after``: the id of the last one known."""
        path = f"/v2/agent/{_quoted(project_id)}/job/{_quoted(job_id)}/events"
        failures = 0
        while True:
            stream = self._stream("GET", path, headers={"Last-Event-ID": str(after)})
            try:
                for event_id, data in stream:
                    failures = 0
                    try:
                        fields = cast("dict[str, Any]", json.loads(data))
                        position = int(event_id) if event_id else None
                        event = JobEvent(str(fields.pop("type", "")), fields, position)
                    except _UNREADABLE as error:
                        raise UnexpectedAnswer(f"An event of job {job_id} cannot be read: {error}.") from error
                    after = position or after
                    yield event
                if self.get_job(project_id, job_id).status != "active":
                    return
                _abort().pause(_delay(1))  # the service restarts
            except _Lost as lost:
                failures = self._after_loss(lost, failures)
            finally:
                stream.close()

    def ask(
        self,
        domain: str,
        question: str,
        *,
        reader: str = "anonymous",
        thread_id: str | None = None,
        thread_key: str | None = None,
        filter: Filter | None = None,
        context: list[ContextBody] | None = None,
        current_path: str | None = None,
        retrieval_page_size: int | None = None,
    ) -> Answer:
        """Ask a question about a site. Iterate over the answer for its text as it is written, or ``read`` it.

        Args:
            domain: The site.
            question: The question.
            reader: The user: a name of your own choice. Send the same to go on with a thread.
            thread_id: The thread to go on with; left out: a new one.
            thread_key: The thread's key, from its first answer.
            filter: Only pages that match all of it.
            context: Further context of the question.
            current_path: The page that the reader has open.
            retrieval_page_size: How many passages the answer is made from.
        """
        body = {
            "fp": reader, "id": uuid.uuid4().hex, "features": ["checks", "resume"], "threadId": thread_id,
            "threadKey": thread_key, "filter": filter, "context": context, "currentPath": current_path,
            "retrievalPageSize": retrieval_page_size,
            "messages": [{"id": uuid.uuid4().hex, "role": "user", "parts": [{"type": "text", "text": question}]}],
        }  # fmt: skip
        return Answer(self, f"/discovery/v2/assistant/{_quoted(domain)}/message", body)

    # generated: methods
    def create_job(
        self,
        project_id: str,
        *,
        prompt: str,
        idempotency_key: str | None = None,
        context: str | None = None,
        branch: str | None = None,
        as_draft: bool | None = None,
        model: str | None = None,
    ) -> Job:
        """Create a job.

        Args:
            project_id: The project's id, as `docsmith project list` shows it.
            idempotency_key: Makes a request that is sent again do nothing again: for the same key and the same body
                the answer is the same job. Of this project's requests only; it does not expire. 1 to 255 printable
                ASCII characters, in quotes or not.
            prompt: The change to make to the documentation, in words.
            context: Text that the agent reads beside the instruction, such as release notes or a diff.
            branch: The branch to work on, created if it does not exist; characters that git refuses in its name are
                replaced.
            as_draft: Whether the pull request is a draft; it is not when left out.
            model: An alias of the settings. Left out: the agent's own model.
        """
        return cast(
            "Job",
            self._json(
                Job,
                "POST",
                f"/v2/agent/{_quoted(project_id)}/job",
                headers={"Idempotency-Key": idempotency_key or str(uuid.uuid4())},
                body={"prompt": prompt, "context": context, "branch": branch, "asDraft": as_draft, "model": model},
            ),
        )

    def get_job(self, project_id: str, job_id: str, *, wait: float | None = None) -> Job:
        """Get a job.

        Args:
            project_id: The project's id, as `docsmith project list` shows it.
            job_id: The job's id.
            wait: Hold the answer until the job ends, for at most this number of seconds (up to 60).
        """
        return cast(
            "Job",
            self._json(
                Job,
                "GET",
                f"/v2/agent/{_quoted(project_id)}/job/{_quoted(job_id)}",
                query={"wait": wait},
                waits=wait or 0.0,
            ),
        )

    def list_jobs(
        self,
        project_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        status: Literal["active", "completed", "failed"] | None = None,
        include_archived: bool | None = None,
    ) -> JobList:
        """List jobs.

        Args:
            project_id: The project's id, as `docsmith project list` shows it.
            limit: How many at most, 1 to 100; 20 when not given.
            cursor: The `nextCursor` of an earlier answer.
            status: Only those that are `active`, `completed` or `failed`.
            include_archived: With the archived ones.
        """
        return cast(
            "JobList",
            self._json(
                JobList,
                "GET",
                f"/v2/agent/{_quoted(project_id)}/jobs",
                query={"limit": limit, "cursor": cursor, "status": status, "includeArchived": include_archived},
            ),
        )

    def message_job(self, project_id: str, job_id: str, *, prompt: str, idempotency_key: str | None = None) -> Job:
        """Send a message to a job.

        Args:
            project_id: The project's id, as `docsmith project list` shows it.
            job_id: The job's id.
            idempotency_key: Makes a request that is sent again do nothing again: for the same key and the same body
                the answer is the same job. Of this project's requests only; it does not expire. 1 to 255 printable
                ASCII characters, in quotes or not.
            prompt: The change to make to the documentation, in words.
        """
        return cast(
            "Job",
            self._json(
                Job,
                "POST",
                f"/v2/agent/{_quoted(project_id)}/job/{_quoted(job_id)}/message",
                headers={"Idempotency-Key": idempotency_key or str(uuid.uuid4())},
                body={"prompt": prompt},
            ),
        )

    def cancel_job(self, project_id: str, job_id: str) -> Job:
        """Cancel a job.

        Args:
            project_id: The project's id, as `docsmith project list` shows it.
            job_id: The job's id.
        """
        return cast("Job", self._json(Job, "POST", f"/v2/agent/{_quoted(project_id)}/job/{_quoted(job_id)}/cancel"))

    def retry_job(self, project_id: str, job_id: str) -> Job:
        """Retry a job.

        Args:
            project_id: The project's id, as `docsmith project list` shows it.
            job_id: The job's id.
        """
        return cast("Job", self._json(Job, "POST", f"/v2/agent/{_quoted(project_id)}/job/{_quoted(job_id)}/retry"))

    def archive_job(self, project_id: str, job_id: str) -> Job:
        """Archive a job.

        Args:
            project_id: The project's id, as `docsmith project list` shows it.
            job_id: The job's id.
        """
        return cast("Job", self._json(Job, "POST", f"/v2/agent/{_quoted(project_id)}/job/{_quoted(job_id)}/archive"))

    def unarchive_job(self, project_id: str, job_id: str) -> Job:
        """Unarchive a job.

        Args:
            project_id: The project's id, as `docsmith project list` shows it.
            job_id: The job's id.
        """
        return cast("Job", self._json(Job, "POST", f"/v2/agent/{_quoted(project_id)}/job/{_quoted(job_id)}/unarchive"))

    def list_job_steps(self, project_id: str, job_id: str, *, cursor: str | None = None) -> JobSteps:
        """List a job's steps.

        Args:
            project_id: The project's id, as `docsmith project list` shows it.
            job_id: The job's id.
            cursor: The `nextCursor` of an earlier answer.
        """
        return cast(
            "JobSteps",
            self._json(
                JobSteps,
                "GET",
                f"/v2/agent/{_quoted(project_id)}/job/{_quoted(job_id)}/steps",
                query={"cursor": cursor},
            ),
        )

    def get_job_changes(self, project_id: str, job_id: str) -> Changes:
        """Get a job's changes.

        Args:
            project_id: The project's id, as `docsmith project list` shows it.
            job_id: The job's id.
        """
        return cast(
            "Changes", self._json(Changes, "GET", f"/v2/agent/{_quoted(project_id)}/job/{_quoted(job_id)}/changes")
        )

    def get_job_request(self, project_id: str, job_id: str, *, number: int | None = None) -> JobRequest:
        """Get a request to a job's model.

        Args:
            project_id: The project's id, as `docsmith project list` shows it.
            job_id: The job's id.
            number: The number of the request, 1 to the `count` of an answer; the last one when not given.
        """
        return cast(
            "JobRequest",
            self._json(
                JobRequest,
                "GET",
                f"/v2/agent/{_quoted(project_id)}/job/{_quoted(job_id)}/request",
                query={"number": number},
            ),
        )

    def merge_job(self, project_id: str, job_id: str) -> Job:
        """Merge a job's pull request.

        Args:
            project_id: The project's id, as `docsmith project list` shows it.
            job_id: The job's id.
        """
        return cast("Job", self._json(Job, "POST", f"/v2/agent/{_quoted(project_id)}/job/{_quoted(job_id)}/merge"))

    def close_job(self, project_id: str, job_id: str) -> Job:
        """Close a job's pull request.

        Args:
            project_id: The project's id, as `docsmith project list` shows it.
            job_id: The job's id.
        """
        return cast("Job", self._json(Job, "POST", f"/v2/agent/{_quoted(project_id)}/job/{_quoted(job_id)}/close"))

    def stop_reply(self, domain: str, chat_id: str, *, thread_key: str | None = None, fp: str | None = None) -> None:
        """Stop a reply.

        Args:
            domain: The site's name, such as `guide` or `docs.example.com`.
            chat_id: The `id` that the chat's requests carry in their body.
            thread_key: The thread's key.
            fp: The thread's own `fp`, where it is not `anonymous`.
        """
        self._json(
            None,
            "POST",
            f"/discovery/v2/assistant/{_quoted(domain)}/message/{_quoted(chat_id)}/stop",
            query={"fp": fp},
            headers={"X-Thread-Key": thread_key},
        )

    def search(
        self,
        domain: str,
        *,
        query: str,
        page_size: int | None = None,
        score_threshold: float | None = None,
        filter: Filter | None = None,
        prefix: bool | None = None,
        highlights: bool | None = None,
    ) -> list[SearchResult]:
        """Search a site.

        Args:
            domain: The site's name, such as `guide` or `docs.example.com`.
            query: Words, or a question.
            page_size: How many sections at most; 10 when left out.
            score_threshold: Leaves out sections with a lower `metadata.score`.
            filter: Only pages that match all of it.
            prefix: For a search as you type: the last word may be the beginning of one, unless a space follows.
                Meanings are not compared.
            highlights: Adds `metadata.highlights`: where the words that were found stand.
        """
        return cast(
            "list[SearchResult]",
            self._json(
                list[SearchResult],
                "POST",
                f"/discovery/v1/search/{_quoted(domain)}",
                body={
                    "query": query,
                    "pageSize": page_size,
                    "scoreThreshold": score_threshold,
                    "filter": filter,
                    "prefix": prefix,
                    "highlights": highlights,
                },
                only_reads=True,
            ),
        )

    def read_page(self, domain: str, *, path: str, groups: list[str] | None = None) -> Page:
        """Read a page of a site.

        Args:
            domain: The site's name, such as `guide` or `docs.example.com`.
            path: Its path on the site, as search returns it, or in the repository.
            groups: The reader's groups: a page for others is not found.
        """
        return cast(
            "Page",
            self._json(
                Page,
                "POST",
                f"/discovery/v1/page/{_quoted(domain)}",
                body={"path": path, "groups": groups},
                only_reads=True,
            ),
        )

    def get_widget_settings(self, domain: str) -> WidgetSettings:
        """Get the settings of a site's widget.

        Args:
            domain: The site's name, such as `guide` or `docs.example.com`.
        """
        return cast("WidgetSettings", self._json(WidgetSettings, "GET", f"/discovery/v1/widget/{_quoted(domain)}"))

    def rate_reply(
        self, domain: str, *, thread_id: str, message_id: str, rating: Literal["down", "up"], comment: str | None = None
    ) -> None:
        """Rate a reply.

        Args:
            domain: The site's name, such as `guide` or `docs.example.com`.
            thread_id: The thread's id.
            message_id: The reply's id, as its stream names it at the start.
            rating: Whether it was of use.
            comment: In the reader's own words; erased with the thread.
        """
        self._json(
            None,
            "POST",
            f"/discovery/v1/feedback/{_quoted(domain)}",
            body={"threadId": thread_id, "messageId": message_id, "rating": rating, "comment": comment},
        )

    def get_organization(self) -> Organization:
        """Get the organization."""
        return cast("Organization", self._json(Organization, "GET", "/v2/organization"))

    def list_projects(self, *, limit: int | None = None, cursor: str | None = None) -> ProjectList:
        """List projects.

        Args:
            limit: How many at most, 1 to 100; 20 when not given.
            cursor: The `nextCursor` of an earlier answer.
        """
        return cast(
            "ProjectList", self._json(ProjectList, "GET", "/v2/projects", query={"limit": limit, "cursor": cursor})
        )

    def create_project(
        self,
        *,
        name: str,
        repository: str,
        code_host: Literal["gitea", "github", "gitlab", "local", "website"] | None = None,
        ref: str | None = None,
        docs_folder: str | None = None,
        domain: str | None = None,
        api_url: str | None = None,
        token: str | None = None,
        labels: list[str] | None = None,
        reviewers: list[str] | None = None,
        contexts: list[ContextRepository] | None = None,
        site_url: str | None = None,
    ) -> CheckedProject:
        """Create a project.

        Args:
            name: Its name for people.
            repository: The https:// URL of a git repository or a website, or a folder of the server below its
                `[network] local_folders`.
            code_host: Where its pull requests are opened; `local`: here.
            ref: The branch that the site shows; empty: the repository's default.
            docs_folder: The folder that holds the documentation; empty: all of it.
            domain: The identifier of its site; empty: from the name.
            api_url: Where the code host's API is, when it is not where it usually is.
            token: A token for the repository; kept encrypted, and never shown again.
            labels: For each pull request.
            reviewers: Who is asked to review each pull request.
            contexts: Repositories that the agent reads.
            site_url: The address at which its pages are published, so that sources lead there.
        """
        return cast(
            "CheckedProject",
            self._json(
                CheckedProject,
                "POST",
                "/v2/projects",
                body={
                    "name": name,
                    "repository": repository,
                    "codeHost": code_host,
                    "ref": ref,
                    "docsFolder": docs_folder,
                    "domain": domain,
                    "apiUrl": api_url,
                    "token": token,
                    "labels": labels,
                    "reviewers": reviewers,
                    "contexts": contexts,
                    "siteUrl": site_url,
                },
            ),
        )

    def upload_project(
        self, data: bytes, *, name: str, docs_folder: str | None = None, domain: str | None = None
    ) -> CheckedProject:
        """Create a project from a zip archive.

        Args:
            name: The project's name for people.
            docs_folder: The folder that holds the documentation; all of it when left out.
            domain: The name of its site, a part of addresses; from the project's name when left out.
            data: The file's content.
        """
        return cast(
            "CheckedProject",
            self._json(
                CheckedProject,
                "POST",
                "/v2/uploads",
                query={"name": name, "docsFolder": docs_folder, "domain": domain},
                body=data,
            ),
        )

    def upload_version(self, project_id: str, data: bytes) -> CheckedProject:
        """Upload a new version of a project's files.

        Args:
            project_id: The project's id, as `docsmith project list` shows it.
            data: The file's content.
        """
        return cast(
            "CheckedProject",
            self._json(CheckedProject, "POST", f"/v2/projects/{_quoted(project_id)}/upload", body=data),
        )

    def get_project(self, project_id: str) -> Project:
        """Get a project.

        Args:
            project_id: The project's id, as `docsmith project list` shows it.
        """
        return cast("Project", self._json(Project, "GET", f"/v2/projects/{_quoted(project_id)}"))

    def update_project(
        self,
        project_id: str,
        *,
        name: str | None = None,
        repository: str | None = None,
        ref: str | None = None,
        docs_folder: str | None = None,
        api_url: str | None = None,
        token: str | None = None,
        labels: list[str] | None = None,
        reviewers: list[str] | None = None,
        contexts: list[ContextRepository] | None = None,
        site_url: str | None = None,
        max_cost_usd_day: float | None = None,
    ) -> CheckedProject:
        """Change a project.

        Args:
            project_id: The project's id, as `docsmith project list` shows it.
            name: Its name for people.
            repository: Its new https:// URL. It needs the token again.
            ref: The branch that the site shows.
            docs_folder: The folder that holds the documentation; empty: all of it.
            api_url: Where the code host's API is. Another needs the token again.
            token: A new token instead of the old one; kept encrypted, and never shown again.
            labels: For each pull request; instead of those so far.
            reviewers: Who is asked to review; instead of those so far.
            contexts: Repositories that the agent reads; all from now on.
            site_url: The address at which its pages are published; empty: not known.
            max_cost_usd_day: The most that replies of its site may cost in a day of UTC; 0: no bound of its own.
        """
        return cast(
            "CheckedProject",
            self._json(
                CheckedProject,
                "POST",
                f"/v2/projects/{_quoted(project_id)}",
                body={
                    "name": name,
                    "repository": repository,
                    "ref": ref,
                    "docsFolder": docs_folder,
                    "apiUrl": api_url,
                    "token": token,
                    "labels": labels,
                    "reviewers": reviewers,
                    "contexts": contexts,
                    "siteUrl": site_url,
                    "maxCostUsdDay": max_cost_usd_day,
                },
            ),
        )

    def list_sites(self, *, limit: int | None = None, cursor: str | None = None) -> SiteList:
        """List sites.

        Args:
            limit: How many at most, 1 to 100; 20 when not given.
            cursor: The `nextCursor` of an earlier answer.
        """
        return cast("SiteList", self._json(SiteList, "GET", "/v2/sites", query={"limit": limit, "cursor": cursor}))

    def get_site(self, domain: str) -> ShownSite:
        """Get a site.

        Args:
            domain: The site's name, such as `guide` or `docs.example.com`.
        """
        return cast("ShownSite", self._json(ShownSite, "GET", f"/v2/sites/{_quoted(domain)}"))

    def get_site_report(self, domain: str) -> SiteReport:
        """Get the report of a site.

        Args:
            domain: The site's name, such as `guide` or `docs.example.com`.
        """
        return cast("SiteReport", self._json(SiteReport, "GET", f"/v2/sites/{_quoted(domain)}/report"))

    def index_site(self, domain: str) -> ShownSite:
        """Index a site again.

        Args:
            domain: The site's name, such as `guide` or `docs.example.com`.
        """
        return cast("ShownSite", self._json(ShownSite, "POST", f"/v2/sites/{_quoted(domain)}/index"))

    def change_site_access(
        self, domain: str, *, public: bool | None = None, origins: list[str] | None = None
    ) -> ShownSite:
        """Open a site to everyone, or close it.

        Args:
            domain: The site's name, such as `guide` or `docs.example.com`.
            public: Whether anyone may ask it, without a key.
            origins: The websites whose pages may ask it; instead of those so far.
        """
        return cast(
            "ShownSite",
            self._json(
                ShownSite, "POST", f"/v2/sites/{_quoted(domain)}/access", body={"public": public, "origins": origins}
            ),
        )

    def change_site_widget(
        self,
        domain: str,
        *,
        title: str | None = None,
        greeting: str | None = None,
        suggestions: list[str] | None = None,
        hand_off: str | None = None,
        form: Literal["inline", "modal", "popover", "side"] | None = None,
        accent: str | None = None,
    ) -> ShownSite:
        """Change the settings of a site's widget.

        Args:
            domain: The site's name, such as `guide` or `docs.example.com`.
            title: The heading of its panel.
            greeting: Its first words to the reader.
            suggestions: Questions to begin with; instead of those so far.
            hand_off: A link or a mail address where readers get more help; `{threadId}` in a link is the
                conversation.
            form: How the panel opens where the page's tag does not choose.
            accent: A colour, such as `#0b6e4f`.
        """
        return cast(
            "ShownSite",
            self._json(
                ShownSite,
                "POST",
                f"/v2/sites/{_quoted(domain)}/widget",
                body={
                    "title": title,
                    "greeting": greeting,
                    "suggestions": suggestions,
                    "handOff": hand_off,
                    "form": form,
                    "accent": accent,
                },
            ),
        )

    def explain_search(self, domain: str, *, query: str, language: str | None = None) -> ExplainedResults:
        """Explain a search.

        Args:
            domain: The site's name, such as `guide` or `docs.example.com`.
            query: Words, or a question.
            language: The reader's language, such as `de`: pages that the site has for other languages are left out.
        """
        return cast(
            "ExplainedResults",
            self._json(
                ExplainedResults,
                "GET",
                f"/v2/sites/{_quoted(domain)}/search",
                query={"query": query, "language": language},
            ),
        )

    def evaluate_search(self, domain: str, *, questions: list[GoldenQuestion]) -> Evaluation:
        """Measure a site's search by test questions.

        Args:
            domain: The site's name, such as `guide` or `docs.example.com`.
            questions: The questions, at most 200.
        """
        return cast(
            "Evaluation",
            self._json(
                Evaluation,
                "POST",
                f"/v2/sites/{_quoted(domain)}/golden",
                body={"questions": questions},
                only_reads=True,
            ),
        )

    def list_conversations(
        self,
        project_id: str,
        *,
        date_from: date | None = None,
        date_to: date | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        resolution_status: Literal["answered", "unanswered"] | None = None,
    ) -> Conversations:
        """List questions.

        Args:
            project_id: The project's id, as `docsmith project list` shows it.
            date_from: The first date, or time, in UTC unless it says otherwise; inclusive.
            date_to: The end of the period, as `dateFrom`; exclusive.
            limit: How many rows at most, 1 to 1000; 100 when not given.
            cursor: The `nextCursor` of the answer before.
            resolution_status: Only questions that were answered, or only those that the documentation does not
                answer. Questions whose reply failed, was filtered, stopped or interrupted are in neither; unsure
                ones are in the latter.
        """
        return cast(
            "Conversations",
            self._json(
                Conversations,
                "GET",
                f"/v1/analytics/{_quoted(project_id)}/assistant",
                query={
                    "dateFrom": date_from,
                    "dateTo": date_to,
                    "limit": limit,
                    "cursor": cursor,
                    "resolutionStatus": resolution_status,
                },
            ),
        )

    def list_unanswered(
        self,
        project_id: str,
        *,
        date_from: date | None = None,
        date_to: date | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> UnansweredList:
        """List unanswered questions.

        Args:
            project_id: The project's id, as `docsmith project list` shows it.
            date_from: The first date, or time, in UTC unless it says otherwise; inclusive.
            date_to: The end of the period, as `dateFrom`; exclusive.
            limit: How many rows at most, 1 to 1000; 100 when not given.
            cursor: The `nextCursor` of the answer before.
        """
        return cast(
            "UnansweredList",
            self._json(
                UnansweredList,
                "GET",
                f"/v1/analytics/{_quoted(project_id)}/assistant/unanswered",
                query={"dateFrom": date_from, "dateTo": date_to, "limit": limit, "cursor": cursor},
            ),
        )

    def summarize_checks(
        self, project_id: str, *, date_from: date | None = None, date_to: date | None = None, limit: int | None = None
    ) -> ChecksSummary:
        """Check answers against their sources.

        Args:
            project_id: The project's id, as `docsmith project list` shows it.
            date_from: The first date, or time, in UTC unless it says otherwise; inclusive.
            date_to: The end of the period, as `dateFrom`; exclusive.
            limit: How many rows at most, 1 to 1000; 100 when not given.
        """
        return cast(
            "ChecksSummary",
            self._json(
                ChecksSummary,
                "GET",
                f"/v1/analytics/{_quoted(project_id)}/assistant/checks",
                query={"dateFrom": date_from, "dateTo": date_to, "limit": limit},
            ),
        )

    def get_thread(self, project_id: str, thread_id: str) -> Transcript:
        """Read a thread.

        Args:
            project_id: The project's id, as `docsmith project list` shows it.
            thread_id: The thread's id, or that of a question in it.
        """
        return cast(
            "Transcript",
            self._json(
                Transcript, "GET", f"/v1/analytics/{_quoted(project_id)}/assistant/threads/{_quoted(thread_id)}"
            ),
        )

    def list_feedback(
        self,
        project_id: str,
        *,
        date_from: date | None = None,
        date_to: date | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        rating: Literal["down", "up"] | None = None,
    ) -> FeedbackList:
        """List feedback.

        Args:
            project_id: The project's id, as `docsmith project list` shows it.
            date_from: The first date, or time, in UTC unless it says otherwise; inclusive.
            date_to: The end of the period, as `dateFrom`; exclusive.
            limit: How many rows at most, 1 to 1000; 100 when not given.
            cursor: The `nextCursor` of the answer before.
            rating: Only this one.
        """
        return cast(
            "FeedbackList",
            self._json(
                FeedbackList,
                "GET",
                f"/v1/analytics/{_quoted(project_id)}/feedback",
                query={"dateFrom": date_from, "dateTo": date_to, "limit": limit, "cursor": cursor, "rating": rating},
            ),
        )

    def get_source(self, thread_id: str, message_id: str, number: str) -> Passage:
        """Read a source of an answer.

        Args:
            thread_id: The thread's id, or that of a question in it.
            message_id: The reply's id.
            number: The number of a citation in the answer.
        """
        return cast(
            "Passage",
            self._json(
                Passage, "GET", f"/v2/threads/{_quoted(thread_id)}/sources/{_quoted(message_id)}/{_quoted(number)}"
            ),
        )

    def list_questions(
        self,
        *,
        date_from: date | None = None,
        date_to: date | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        project_id: str | None = None,
        outcome: Literal["answered", "failed", "unanswered", "unsure"] | None = None,
        rating: Literal["down", "up"] | None = None,
        caller: Literal["api", "mcp", "terminal", "web"] | None = None,
        text: str | None = None,
    ) -> Conversations:
        """List an organization's questions.

        Args:
            date_from: The first date, or time, in UTC unless it says otherwise; inclusive.
            date_to: The end of the period, as `dateFrom`; exclusive.
            limit: How many at most, 1 to 100; 50 when not given.
            cursor: The `nextCursor` of the answer before.
            project_id: Only those of this project.
            outcome: Only questions with this outcome; `failed`: without a whole answer, since it failed, was
                stopped, interrupted or filtered.
            rating: Only questions whose answer was rated so.
            caller: Only questions from this kind of client.
            text: Only questions with all of these words, at most 10, wherever they stand. A page may have fewer
                questions than `limit`, or none, and still a next one.
        """
        return cast(
            "Conversations",
            self._json(
                Conversations,
                "GET",
                "/v2/questions",
                query={
                    "dateFrom": date_from,
                    "dateTo": date_to,
                    "limit": limit,
                    "cursor": cursor,
                    "projectId": project_id,
                    "outcome": outcome,
                    "rating": rating,
                    "caller": caller,
                    "text": text,
                },
            ),
        )

    def get_conversation(self, thread_id: str) -> Transcript:
        """Read a conversation.

        Args:
            thread_id: The thread's id, or that of a question in it.
        """
        return cast("Transcript", self._json(Transcript, "GET", f"/v2/threads/{_quoted(thread_id)}"))

    def erase_conversation(self, thread_id: str) -> ErasedThread:
        """Erase a conversation.

        Args:
            thread_id: The thread's id, or that of a question in it.
        """
        return cast("ErasedThread", self._json(ErasedThread, "POST", f"/v2/threads/{_quoted(thread_id)}/erase"))

    def list_gaps(
        self,
        *,
        date_from: date | None = None,
        date_to: date | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        project_id: str | None = None,
        state: Literal["dismissed", "open"] | None = None,
    ) -> Gaps:
        """List an organization's gaps.

        Args:
            date_from: The first date, or time, in UTC unless it says otherwise; inclusive.
            date_to: The end of the period, as `dateFrom`; exclusive.
            limit: How many at most, 1 to 50; 20 when not given.
            cursor: The `nextCursor` of the answer before.
            project_id: Only those of this project.
            state: `open`, which is meant when it is not given, or `dismissed`: the latest first, of all time.
        """
        return cast(
            "Gaps",
            self._json(
                Gaps,
                "GET",
                "/v2/gaps",
                query={
                    "dateFrom": date_from,
                    "dateTo": date_to,
                    "limit": limit,
                    "cursor": cursor,
                    "projectId": project_id,
                    "state": state,
                },
            ),
        )

    def dismiss_gap(
        self, gap_id: str, *, date_from: date | None = None, date_to: date | None = None, project_id: str | None = None
    ) -> None:
        """Dismiss a gap.

        Args:
            gap_id: The gap's id, as the list of gaps shows it.
            date_from: The first date, or time, in UTC unless it says otherwise; inclusive.
            date_to: The end of the period, as `dateFrom`; exclusive.
            project_id: Only those of this project.
        """
        self._json(
            None,
            "POST",
            f"/v2/gaps/{_quoted(gap_id)}/dismiss",
            query={"dateFrom": date_from, "dateTo": date_to, "projectId": project_id},
        )

    def restore_gap(self, gap_id: str) -> None:
        """Restore a gap.

        Args:
            gap_id: The gap's id, as the list of gaps shows it.
        """
        self._json(None, "POST", f"/v2/gaps/{_quoted(gap_id)}/restore")

    def get_analytics(self, *, days: int | None = None, project_id: str | None = None) -> Analytics:
        """Get an organization's analytics.

        Args:
            days: How many days, today in UTC included, 1 to 366; 30 when not given.
            project_id: Only those of this project.
        """
        return cast(
            "Analytics", self._json(Analytics, "GET", "/v2/analytics", query={"days": days, "projectId": project_id})
        )

    def get_overview(self) -> Overview:
        """Get what needs a person."""
        return cast("Overview", self._json(Overview, "GET", "/v2/overview"))

    def list_organization_jobs(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        only: Literal["active", "archived", "completed", "failed", "needs_input", "review"] | None = None,
        project_id: str | None = None,
    ) -> OrganizationJobList:
        """List an organization's jobs.

        Args:
            limit: How many at most, 1 to 100; 20 when not given.
            cursor: The `nextCursor` of an earlier answer.
            only: Only jobs that are `active`, `completed` or `failed`, whose pull request waits for a `review`,
                that ask something (`needs_input`), or that are `archived`.
            project_id: Only those of this project.
        """
        return cast(
            "OrganizationJobList",
            self._json(
                OrganizationJobList,
                "GET",
                "/v2/jobs",
                query={"limit": limit, "cursor": cursor, "only": only, "projectId": project_id},
            ),
        )

    def list_models(self) -> Models:
        """List the models of jobs."""
        return cast("Models", self._json(Models, "GET", "/v2/models"))

    def list_people(self, *, limit: int | None = None, cursor: str | None = None) -> MemberList:
        """List people.

        Args:
            limit: How many at most, 1 to 100; 50 when not given.
            cursor: The `nextCursor` of an earlier answer.
        """
        return cast("MemberList", self._json(MemberList, "GET", "/v2/people", query={"limit": limit, "cursor": cursor}))

    def add_person(self, *, email: str, role: Literal["editor", "owner", "viewer"], name: str | None = None) -> Invited:
        """Add a person.

        Args:
            email: The person's email.
            role: What the person may do.
            name: How others see the person; by the email when empty.
        """
        return cast(
            "Invited", self._json(Invited, "POST", "/v2/people", body={"email": email, "role": role, "name": name})
        )

    def get_person(self, person_id: str) -> Member:
        """Get a person.

        Args:
            person_id: The person's id.
        """
        return cast("Member", self._json(Member, "GET", f"/v2/people/{_quoted(person_id)}"))

    def change_role(self, person_id: str, *, role: Literal["editor", "owner", "viewer"]) -> Member:
        """Change a person's role.

        Args:
            person_id: The person's id.
            role: What the person may do from now on.
        """
        return cast("Member", self._json(Member, "POST", f"/v2/people/{_quoted(person_id)}/role", body={"role": role}))

    def make_sign_in_link(self, person_id: str) -> Invited:
        """Make a sign-in link.

        Args:
            person_id: The person's id.
        """
        return cast("Invited", self._json(Invited, "POST", f"/v2/people/{_quoted(person_id)}/link"))

    def remove_person(self, person_id: str) -> None:
        """Remove a person.

        Args:
            person_id: The person's id.
        """
        self._json(None, "POST", f"/v2/people/{_quoted(person_id)}/remove")

    def list_keys(self, *, limit: int | None = None, cursor: str | None = None) -> KeyList:
        """List keys.

        Args:
            limit: How many at most, 1 to 100; 50 when not given.
            cursor: The `nextCursor` of an earlier answer.
        """
        return cast("KeyList", self._json(KeyList, "GET", "/v2/keys", query={"limit": limit, "cursor": cursor}))

    def create_key(
        self,
        *,
        kind: Literal["admin", "assistant"],
        name: str,
        scope: Literal["all", "jobs", "read"] | None = None,
        domains: list[str] | None = None,
        expires_days: Literal[7, 30, 60, 90] | None = None,
        allowed_addresses: list[str] | None = None,
        allowed_origins: list[str] | None = None,
        server: bool | None = None,
        reader_tokens: bool | None = None,
    ) -> CreatedKey:
        """Create a key.

        Args:
            kind: Which of the two APIs it opens.
            name: The key's purpose, for the list.
            scope: What an admin key may do; `all` when not given.
            domains: The sites that an assistant key serves, at least one.
            expires_days: In how many days it expires; never when not given.
            allowed_addresses: Addresses and networks, such as `192.0.2.0/24`, that may use it; empty for any.
            allowed_origins: Websites, such as `https://*.example.com`, whose pages may use an assistant key; empty
                for any.
            server: No web page may use the assistant key.
            reader_tokens: Whether each call from a page carries a reader token; when not given, with origins only.
        """
        return cast(
            "CreatedKey",
            self._json(
                CreatedKey,
                "POST",
                "/v2/keys",
                body={
                    "kind": kind,
                    "name": name,
                    "scope": scope,
                    "domains": domains,
                    "expiresDays": expires_days,
                    "allowedAddresses": allowed_addresses,
                    "allowedOrigins": allowed_origins,
                    "server": server,
                    "readerTokens": reader_tokens,
                },
            ),
        )

    def get_key(self, key_id: str) -> Key:
        """Get a key.

        Args:
            key_id: The key's id.
        """
        return cast("Key", self._json(Key, "GET", f"/v2/keys/{_quoted(key_id)}"))

    def change_key(
        self,
        key_id: str,
        *,
        name: str | None = None,
        allowed_addresses: list[str] | None = None,
        allowed_origins: list[str] | None = None,
        reader_tokens: bool | None = None,
    ) -> Key:
        """Change a key.

        Args:
            key_id: The key's id.
            name: The key's purpose, for the list.
            allowed_addresses: Addresses and networks, such as `192.0.2.0/24`, that may use it; empty for any.
            allowed_origins: Websites, such as `https://*.example.com`, whose pages may use an assistant key; empty
                for any.
            reader_tokens: Whether each call from a page carries a reader token.
        """
        return cast(
            "Key",
            self._json(
                Key,
                "POST",
                f"/v2/keys/{_quoted(key_id)}",
                body={
                    "name": name,
                    "allowedAddresses": allowed_addresses,
                    "allowedOrigins": allowed_origins,
                    "readerTokens": reader_tokens,
                },
            ),
        )

    def revoke_key(self, key_id: str) -> Key:
        """Revoke a key.

        Args:
            key_id: The key's id.
        """
        return cast("Key", self._json(Key, "POST", f"/v2/keys/{_quoted(key_id)}/revoke"))

    def list_webhooks(self) -> WebhookList:
        """List webhooks."""
        return cast("WebhookList", self._json(WebhookList, "GET", "/v2/webhooks"))

    def create_webhook(
        self,
        *,
        url: str,
        events: list[Literal["job.active", "job.completed", "job.failed"]] | None = None,
        project_id: str | None = None,
    ) -> CreatedWebhook:
        """Create a webhook.

        Args:
            url: Where to send to: https, on the public internet, without credentials and fragment.
            events: The events to send; all when not given.
            project_id: Only of this project's jobs; of all when not given.
        """
        return cast(
            "CreatedWebhook",
            self._json(
                CreatedWebhook, "POST", "/v2/webhooks", body={"url": url, "events": events, "projectId": project_id}
            ),
        )

    def get_webhook(self, webhook_id: str) -> Webhook:
        """Get a webhook.

        Args:
            webhook_id: The webhook's id.
        """
        return cast("Webhook", self._json(Webhook, "GET", f"/v2/webhooks/{_quoted(webhook_id)}"))

    def enable_webhook(self, webhook_id: str) -> Webhook:
        """Enable a webhook.

        Args:
            webhook_id: The webhook's id.
        """
        return cast("Webhook", self._json(Webhook, "POST", f"/v2/webhooks/{_quoted(webhook_id)}/enable"))

    def test_webhook(self, webhook_id: str) -> Delivery:
        """Send a test to a webhook.

        Args:
            webhook_id: The webhook's id.
        """
        return cast("Delivery", self._json(Delivery, "POST", f"/v2/webhooks/{_quoted(webhook_id)}/test"))

    def list_deliveries(
        self,
        webhook_id: str,
        *,
        state: Literal["delivered", "failed", "pending"] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> DeliveryList:
        """List deliveries.

        Args:
            webhook_id: The webhook's id.
            state: Only those that are `pending`, `delivered` or `failed`.
            limit: How many at most, 1 to 100; 50 when not given.
            cursor: The `nextCursor` of an earlier answer.
        """
        return cast(
            "DeliveryList",
            self._json(
                DeliveryList,
                "GET",
                f"/v2/webhooks/{_quoted(webhook_id)}/deliveries",
                query={"state": state, "limit": limit, "cursor": cursor},
            ),
        )

    def redeliver(self, delivery_id: str) -> Delivery:
        """Repeat a delivery.

        Args:
            delivery_id: The delivery's id: the `webhook-id` that was sent.
        """
        return cast("Delivery", self._json(Delivery, "POST", f"/v2/deliveries/{_quoted(delivery_id)}/redeliver"))

    def delete_webhook(self, webhook_id: str) -> None:
        """Delete a webhook.

        Args:
            webhook_id: The webhook's id.
        """
        self._json(None, "POST", f"/v2/webhooks/{_quoted(webhook_id)}/delete")

    def get_usage(self, *, days: int | None = None) -> Usage:
        """Get usage and limits.

        Args:
            days: How many days, today included, 1 to 90; 30 when not given.
        """
        return cast("Usage", self._json(Usage, "GET", "/v2/usage", query={"days": days}))

    def health(self) -> Health:
        """Check that the process is alive."""
        return cast("Health", self._json(Health, "GET", "/healthz"))

    def readiness(self) -> Readiness:
        """Check that the service is ready."""
        return cast("Readiness", self._json(Readiness, "GET", "/readyz"))

    def request_readiness(self) -> RequestReadiness:
        """Check that this instance takes requests."""
        return cast("RequestReadiness", self._json(RequestReadiness, "GET", "/readyz/requests"))

    # end of methods

    def _json(
        self,
        kind: Any,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | bytes | None = None,
        headers: Mapping[str, str | None] | None = None,
        only_reads: bool = False,
        waits: float = 0.0,
    ) -> Any:
        """Send a request, and return its answer as a value of ``kind``; None for no value."""
        request = self._request(method, path, query, body, headers, only_reads=only_reads, waits=waits)
        text = self._sent(request)
        if kind is None:
            return None
        try:
            return _read(kind, json.loads(text))
        except _UNREADABLE as error:
            raise UnexpectedAnswer(f"The answer to {method} {path} cannot be read: {error}.") from error

    def _stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> _Stream:
        request = self._request(method, path, query, body, headers, only_reads=True, waits=0.0)
        return _Stream(*self._opened(dataclasses.replace(request, seconds=max(self._timeout, STREAM_SECONDS))))

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        body: Mapping[str, Any] | bytes | None,
        headers: Mapping[str, str | None] | None,
        *,
        only_reads: bool,
        waits: float,
    ) -> _Request:
        sent = dict(self._headers) | {name: value for name, value in (headers or {}).items() if value is not None}
        content: bytes | None = None
        if isinstance(body, bytes):
            content, sent["Content-Type"] = body, "application/octet-stream"
        elif body is not None:
            given = {name: _plain(value) for name, value in body.items() if value is not None}
            content, sent["Content-Type"] = json.dumps(given).encode(), "application/json"
        elif method != "GET":
            content = b""
        asked = {name: _query_value(value) for name, value in (query or {}).items() if value is not None}
        target = path + (f"?{urllib.parse.urlencode(asked)}" if asked else "")
        may_repeat = only_reads or method == "GET" or "Idempotency-Key" in sent
        return _Request(method, target, sent, content, may_repeat, self._timeout + waits)

    def _sent(self, request: _Request) -> bytes:
        """Return the body of a request's answer."""
        failures = 0
        while True:
            connection, response = self._opened(request)
            try:
                with _abort().watching(connection):
                    text = _whole(response)
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                lost = _Lost(error, was_sent=True)
                if not request.may_repeat:
                    raise self._connection_lost(lost) from error
                failures = self._after_loss(lost, failures)
                continue
            except BaseException:
                connection.close()
                raise
            if response.will_close:
                connection.close()
            else:
                self._connections.keep(connection)
            return text

    def _opened(self, request: _Request) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Return the answer to a request once it is a good one."""
        failures = 0
        while True:
            try:
                connection, response = self._connections.send(request)
            except _Lost as lost:
                if lost.was_sent and not request.may_repeat:
                    raise self._connection_lost(lost) from lost
                failures = self._after_loss(lost, failures)
                continue
            if response.status < HTTPStatus.MULTIPLE_CHOICES:
                return connection, response
            try:
                error = _error_of(response)
            except (OSError, http.client.HTTPException):
                error = _ERRORS.get(response.status, ApiError)(response.status, {})
            finally:
                connection.close()
            failures += 1
            pause = error.retry_after_seconds or _delay(failures)
            was_refused = error.status == HTTPStatus.TOO_MANY_REQUESTS or error.code == "too_many_connections"
            may_repeat = was_refused or (request.may_repeat and isinstance(error, Unavailable))
            if not may_repeat or failures > self._retries or pause > MAX_PAUSE_SECONDS:
                raise error
            _abort().pause(pause)

    def _after_loss(self, lost: _Lost, failures: int) -> int:
        """Wait before the next try, and return the number of failures. Raises ConnectionLost after the last one."""
        failures += 1
        if failures > self._retries:
            raise self._connection_lost(lost) from lost
        _abort().pause(_delay(failures))
        return failures

    def _connection_lost(self, lost: _Lost) -> ConnectionLost:
        return ConnectionLost(f"The connection to {self._url} was lost: {lost}.")


class Answer:
    """The assistant's answer, as it is written. Iterate over its text once; what came is kept in ``text``."""

    def __init__(self, client: Docsmith, path: str, body: dict[str, Any]) -> None:
        self._client, self._path, self._body = client, path, body
        self._stream: _Stream | None = None
        self.id = ""
        """The answer's id, for ``rate_reply``."""
        self.thread_id = str(body["threadId"] or "")
        self.thread_key = str(body["threadKey"] or "")
        """Only from the first answer of a thread: keep it to go on with the thread."""
        self.text = ""
        """The Markdown so far. ``[1]`` in it cites the source with that number."""
        self.sources: list[AnswerSource] = []
        self.checks: Checks | None = None
        """The verdicts on its sentences."""
        self.finish_reason = ""
        """`length` or `content-filter` where the text is not whole."""
        self.is_done = False
        self._begin(client._stream("POST", path, body=body))

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __iter__(self) -> Iterator[str]:
        failures = 0
        while not self.is_done:
            had = len(self.text)
            try:
                yield from self._texts()
                if self.is_done:
                    return
                lost = _Lost(http.client.IncompleteRead(b""), was_sent=True)
            except _Lost as error:
                lost = error
            except DocsmithError:
                self._disconnect()
                self.is_done = True
                raise
            self._disconnect()
            failures = self._client._after_loss(lost, 0 if len(self.text) > had else failures)
            self._reconnect()

    def read(self) -> str:
        """Return the whole text, once it is written."""
        for _ in self:
            pass
        return self.text

    def close(self) -> None:
        """Stop the answer where it is still being written. The text so far stays on its thread."""
        if self._stream is None:
            return
        self._disconnect()
        if not self.is_done:
            self.is_done = True
            with suppress(DocsmithError):  # without a reader it ends by itself, later
                self._client._json(None, "POST", f"{self._path}/{self._body['id']}/stop", **self._chat())

    def _begin(self, stream: _Stream) -> None:
        self._stream = stream
        self.id = stream.headers.get("X-Message-Id", self.id)
        self.thread_id = stream.headers.get("X-Thread-Id", self.thread_id)
        self.thread_key = stream.headers.get("X-Thread-Key", self.thread_key)

    def _disconnect(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _chat(self) -> dict[str, Any]:
        return {"query": {"fp": self._body["fp"]}, "headers": {"X-Thread-Key": self.thread_key or None}}

    def _reconnect(self) -> None:
        """Open the answer under way, from its start; else the recorded one, by the same question."""
        stream = self._client._stream("GET", f"{self._path}/{self._body['id']}/stream", **self._chat())
        if "X-Message-Id" not in stream.headers:
            stream.close()
            asked = self._body["messages"][0]["id"]
            named = {"threadId": self.thread_id or None, "threadKey": self.thread_key or None, "messageId": asked}
            stream = self._client._stream("POST", self._path, body={**self._body, **named})
        self._begin(stream)

    def _texts(self) -> Iterator[str]:
        """Yield the text of one connection that is new: each begins with the answer's start."""
        place = 0
        for _, data in self._stream or ():
            if data == "[DONE]":
                self._disconnect()
                self.is_done = True
                return
            try:
                chunk = cast("dict[str, Any]", json.loads(data))
                delta = str(chunk.get("delta", "")) if chunk.get("type") == "text-delta" else self._take(chunk)
            except _UNREADABLE as error:
                raise UnexpectedAnswer(f"A part of the answer cannot be read: {error}.") from error
            if chunk.get("type") == "text-start" and place:
                delta = "\n\n"
            known = self.text[place : place + len(delta)]
            if not delta.startswith(known):
                raise AnswerFailed("After a lost connection, the answer begins with other words. Ask again.")
            place += len(delta)
            if new := delta[len(known) :]:
                self.text += new
                yield new

    def _take(self, chunk: dict[str, Any]) -> Literal[""]:
        """Keep what a chunk without text says. Raises AnswerFailed."""
        kind, metadata = chunk.get("type"), chunk.get("messageMetadata") or {}
        self.thread_id = str(metadata.get("threadId", self.thread_id))
        if kind == "start":
            self.id = str(chunk.get("messageId", self.id))
        elif kind == "tool-output-available":
            found = (chunk.get("output") or {}).get("results", ())
            new = {int(one["number"]): cast("AnswerSource", _read(AnswerSource, one)) for one in found}
            self.sources = [*(one for one in self.sources if one.number not in new), *new.values()]
        elif kind == "data-docsmith-check":
            self.checks = cast("Checks", _read(Checks, chunk["data"]))
        elif kind == "finish":
            self.finish_reason = str(metadata.get("finishReason", ""))
        elif kind == "error":
            raise AnswerFailed(str(chunk.get("errorText") or "The answer broke off."))
        return ""


_END = object()


def _next(found: Iterator[Any]) -> object:
    return next(found, _END)


def _close(found: Iterator[Any]) -> None:
    if isinstance(found, types.GeneratorType):
        found.close()


class AsyncAnswer:
    """``Answer`` for ``async for``; its fields are those of ``answer``."""

    def __init__(self, client: AsyncDocsmith, answer: Answer) -> None:
        self._client, self.answer = client, answer

    async def __aenter__(self) -> AsyncAnswer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    def __aiter__(self) -> AsyncIterator[str]:
        return self._client._each(iter(self.answer))

    async def read(self) -> str:
        """Return the whole text, once it is written."""
        return await self._client._run(self.answer.read)

    async def close(self) -> None:
        """Stop the answer where it is still being written. The text so far stays on its thread."""
        await self._client._run(self.answer.close)


def _in_thread(
    method: Callable[Concatenate[Docsmith, P], T],
) -> Callable[Concatenate[AsyncDocsmith, P], Coroutine[Any, Any, T]]:
    """Return an asynchronous method that runs the given one in a thread."""

    @functools.wraps(method)
    async def run(self: AsyncDocsmith, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(method, self._client, *args, **kwargs)

    return cast("Callable[Concatenate[AsyncDocsmith, P], Coroutine[Any, Any, T]]", run)


class AsyncDocsmith:
    """``Docsmith`` for ``asyncio``. ``connections`` is the number of requests and streams at the same time."""

    def __init__(
        self,
        url: str,
        key: str = "",
        *,
        timeout_seconds: float = 30.0,
        retries: int = 4,
        tls: ssl.SSLContext | None = None,
        connections: int = 100,
    ) -> None:
        self._client = Docsmith(url, key, timeout_seconds=timeout_seconds, retries=retries, tls=tls)
        self._threads = ThreadPoolExecutor(connections, thread_name_prefix="docsmith")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._client._url!r})"

    async def __aenter__(self) -> AsyncDocsmith:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections that are kept for further requests."""
        self._client.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def follow_job(self, project_id: str, job_id: str, *, after: int = 0) -> AsyncIterator[JobEvent]:
        """Yield the events of a job, past ones first, until it ends. ``after``: the id of the last one known."""
        return self._each(self._client.follow_job(project_id, job_id, after=after))

    async def ask(
        self,
        domain: str,
        question: str,
        *,
        reader: str = "anonymous",
        thread_id: str | None = None,
        thread_key: str | None = None,
        filter: Filter | None = None,
        context: list[ContextBody] | None = None,
        current_path: str | None = None,
        retrieval_page_size: int | None = None,
    ) -> AsyncAnswer:
        """Ask a question about a site, as ``Docsmith.ask`` does."""
        answer = await self._run(
            self._client.ask, domain, question, reader=reader, thread_id=thread_id, thread_key=thread_key,
            filter=filter, context=context, current_path=current_path, retrieval_page_size=retrieval_page_size,
        )  # fmt: skip
        return AsyncAnswer(self, answer)

    wait_for_job = _in_thread(Docsmith.wait_for_job)
    # generated: asynchronous methods
    create_job = _in_thread(Docsmith.create_job)
    get_job = _in_thread(Docsmith.get_job)
    list_jobs = _in_thread(Docsmith.list_jobs)
    message_job = _in_thread(Docsmith.message_job)
    cancel_job = _in_thread(Docsmith.cancel_job)
    retry_job = _in_thread(Docsmith.retry_job)
    archive_job = _in_thread(Docsmith.archive_job)
    unarchive_job = _in_thread(Docsmith.unarchive_job)
    list_job_steps = _in_thread(Docsmith.list_job_steps)
    get_job_changes = _in_thread(Docsmith.get_job_changes)
    get_job_request = _in_thread(Docsmith.get_job_request)
    merge_job = _in_thread(Docsmith.merge_job)
    close_job = _in_thread(Docsmith.close_job)
    stop_reply = _in_thread(Docsmith.stop_reply)
    search = _in_thread(Docsmith.search)
    read_page = _in_thread(Docsmith.read_page)
    get_widget_settings = _in_thread(Docsmith.get_widget_settings)
    rate_reply = _in_thread(Docsmith.rate_reply)
    get_organization = _in_thread(Docsmith.get_organization)
    list_projects = _in_thread(Docsmith.list_projects)
    create_project = _in_thread(Docsmith.create_project)
    upload_project = _in_thread(Docsmith.upload_project)
    upload_version = _in_thread(Docsmith.upload_version)
    get_project = _in_thread(Docsmith.get_project)
    update_project = _in_thread(Docsmith.update_project)
    list_sites = _in_thread(Docsmith.list_sites)
    get_site = _in_thread(Docsmith.get_site)
    get_site_report = _in_thread(Docsmith.get_site_report)
    index_site = _in_thread(Docsmith.index_site)
    change_site_access = _in_thread(Docsmith.change_site_access)
    change_site_widget = _in_thread(Docsmith.change_site_widget)
    explain_search = _in_thread(Docsmith.explain_search)
    evaluate_search = _in_thread(Docsmith.evaluate_search)
    list_conversations = _in_thread(Docsmith.list_conversations)
    list_unanswered = _in_thread(Docsmith.list_unanswered)
    summarize_checks = _in_thread(Docsmith.summarize_checks)
    get_thread = _in_thread(Docsmith.get_thread)
    list_feedback = _in_thread(Docsmith.list_feedback)
    get_source = _in_thread(Docsmith.get_source)
    list_questions = _in_thread(Docsmith.list_questions)
    get_conversation = _in_thread(Docsmith.get_conversation)
    erase_conversation = _in_thread(Docsmith.erase_conversation)
    list_gaps = _in_thread(Docsmith.list_gaps)
    dismiss_gap = _in_thread(Docsmith.dismiss_gap)
    restore_gap = _in_thread(Docsmith.restore_gap)
    get_analytics = _in_thread(Docsmith.get_analytics)
    get_overview = _in_thread(Docsmith.get_overview)
    list_organization_jobs = _in_thread(Docsmith.list_organization_jobs)
    list_models = _in_thread(Docsmith.list_models)
    list_people = _in_thread(Docsmith.list_people)
    add_person = _in_thread(Docsmith.add_person)
    get_person = _in_thread(Docsmith.get_person)
    change_role = _in_thread(Docsmith.change_role)
    make_sign_in_link = _in_thread(Docsmith.make_sign_in_link)
    remove_person = _in_thread(Docsmith.remove_person)
    list_keys = _in_thread(Docsmith.list_keys)
    create_key = _in_thread(Docsmith.create_key)
    get_key = _in_thread(Docsmith.get_key)
    change_key = _in_thread(Docsmith.change_key)
    revoke_key = _in_thread(Docsmith.revoke_key)
    list_webhooks = _in_thread(Docsmith.list_webhooks)
    create_webhook = _in_thread(Docsmith.create_webhook)
    get_webhook = _in_thread(Docsmith.get_webhook)
    enable_webhook = _in_thread(Docsmith.enable_webhook)
    test_webhook = _in_thread(Docsmith.test_webhook)
    list_deliveries = _in_thread(Docsmith.list_deliveries)
    redeliver = _in_thread(Docsmith.redeliver)
    delete_webhook = _in_thread(Docsmith.delete_webhook)
    get_usage = _in_thread(Docsmith.get_usage)
    health = _in_thread(Docsmith.health)
    readiness = _in_thread(Docsmith.readiness)
    request_readiness = _in_thread(Docsmith.request_readiness)
    # end of asynchronous methods

    async def _run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call in a thread. When this is cancelled, the call's connection is closed."""
        abort, context = _Abort(), contextvars.copy_context()
        context.run(_ABORT.set, abort)
        work = functools.partial(call, *args, **kwargs)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, context.run, work)
        except asyncio.CancelledError:
            abort.fire()
            raise

    async def _each(self, found: Iterator[T]) -> AsyncIterator[T]:
        try:
            while (one := await self._run(_next, found)) is not _END:
                yield cast("T", one)
        finally:
            with suppress(ValueError):  # a cancelled call is about to end in its thread
                await self._run(_close, found)


def pages(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
    """Yield each page of a list: ``for page in pages(docsmith.list_jobs, project_id, limit=100)``."""
    cursor: Any = None
    while True:
        page = call(*args, **{**kwargs, **({} if cursor is None else {"cursor": cursor})})
        yield page
        cursor = getattr(page, "next_cursor", None)
        if cursor is None:
            return


async def async_pages(call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
    """Yield each page of a list: ``async for page in async_pages(docsmith.list_jobs, project_id)``."""
    cursor: Any = None
    while True:
        page = await call(*args, **{**kwargs, **({} if cursor is None else {"cursor": cursor})})
        yield page
        cursor = getattr(page, "next_cursor", None)
        if cursor is None:
            return


def _now() -> float:
    return time.monotonic()


def _delay(failures: int) -> float:
    """Return the seconds before the next try: up to 0.5, 1, 2, 4 … at most 8, so that clients do not come at once."""
    return random.uniform(0.5, 1.0) * min(8.0, 2.0 ** (failures - 2))  # noqa: S311 - no secret


def _quoted(part: str) -> str:
    """Return a value as one part of a path."""
    if part in ("", ".", ".."):
        raise ValueError(f"Not an id: {part!r}.")
    return urllib.parse.quote(part, safe="")


def _query_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, date) else str(value)
