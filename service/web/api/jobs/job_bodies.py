"""Bodies of requests to create and to steer a job, and a job as the description shows it."""

from typing import Annotated, TypeVar

from msgspec import Meta, Struct, field

from service.commands.jobs.jobs import MAX_CONTEXT_CHARACTERS, NewJob
from service.domain.access.idempotency import MAX_KEY_CHARACTERS
from service.domain.errors import Invalid
from service.domain.jobs.decider import MAX_PROMPT_CHARACTERS, Message
from service.views.fields import described
from service.views.jobs.jobs import JobView
from service.web.api.description.operations import Answer, Parameter
from service.web.http.schemas import NOT_BLANK

Body = TypeVar("Body", bound="JobBody")


class JobBody(Struct):
    """An instruction for the agent."""

    prompt: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAX_PROMPT_CHARACTERS,
            description="The change to make to the documentation, in words.",
            extra_json_schema=NOT_BLANK,
        ),
    ]


class NewJobBody(JobBody):
    """A new job: its instruction, and where and how to carry it out."""

    context: Annotated[
        Annotated[str, Meta(max_length=MAX_CONTEXT_CHARACTERS)] | None,
        described("Text that the agent reads beside the instruction, such as release notes or a diff."),
    ] = None
    branch: Annotated[
        Annotated[str, Meta(max_length=1000)] | None,
        described(
            "The branch to work on, created if it does not exist; characters that git refuses in its name are replaced."
        ),
    ] = None
    as_draft: Annotated[bool | None, described("Whether the pull request is a draft; it is not when left out.")] = (
        field(default=None, name="asDraft")
    )
    model: Annotated[
        Annotated[str, Meta(max_length=100)] | None,
        described("An alias of the settings. Left out: the agent's own model."),
    ] = None

    def job(self) -> NewJob:
        return NewJob(
            (Message("user", self.prompt),),
            api_version=2,
            model_alias=self.model or "",
            branch=(self.branch or "").strip(),
            as_draft=bool(self.as_draft),
            context=self.context or "",
        )


def not_blank(body: Body) -> Body:
    """Return the body of a request. Raise Invalid when its instruction is blank."""
    if not body.prompt.strip():
        raise Invalid("$.prompt: is blank", problems=(("$.prompt", "is blank"),))
    return body


JOB_EXAMPLE: dict[str, object] = {
    "id": "019a8e6c-4b7a-7d33-9c1e-5b0f1d8f3a52",
    "status": "completed",
    "source": {"repository": "https://git.example.com/acme/guide", "ref": "main"},
    "model": "builtin/editor",
    "prLink": "https://docsmith.example.com/hosted/5d0c8b1e/pulls/1-kq3vN0tq",
    "createdAt": "2026-11-21T09:30:00.000Z",
    "archivedAt": None,
    "title": "Fix broken links",
    "branch": "docs/fix-broken-links-1d8f3a52",
    "failure": None,
    "usage": {"inputTokens": 0, "outputTokens": 0, "costUsd": 0.0},
    "outcome": "pull_request",
    "message": "Fixed 2 broken links in install.md.",
    "problems": [],
    "queuePosition": None,
    "waiting": None,
    "endedAt": "2026-11-21T09:31:12.000Z",
    "pullRequestState": "open",
}
IDEMPOTENCY_KEY = Parameter(
    "Idempotency-Key",
    "Makes a request that is sent again do nothing again: for the same key and the same body the answer is the same"
    f" job. Of this project's requests only; it does not expire. 1 to {MAX_KEY_CHARACTERS} printable ASCII characters,"
    " in quotes or not.",
    Annotated[str, Meta(pattern=f"^[!#-~]([ -~]{{0,{MAX_KEY_CHARACTERS - 2}}}[!#-~])?$")],
    "header",
    example="8e03978e-40d5-43dd-bc93-6894a57f9324",
)
JOB_ANSWER = {200: Answer("The job.", JobView, headers=("ETag",), example=JOB_EXAMPLE)}
BEGUN_EXAMPLE = JOB_EXAMPLE | {
    "status": "active",
    "prLink": None,
    "outcome": None,
    "message": None,
    "endedAt": None,
    "pullRequestState": None,
}
