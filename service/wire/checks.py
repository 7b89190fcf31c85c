"""The verdicts on a reply's sentences, as chat clients get them."""

from typing import Annotated

from msgspec import Meta, Struct

from service.domain.threads.checks import CheckStatus, ReplyChecks, SentenceCheck

FEATURE = "checks"
"""A client that sends it among its ``features`` gets the verdicts."""


class CheckedSentence(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The verdict on a sentence, list item, table row or line of code that makes a claim."""

    text: Annotated[str, Meta(description="Its first 200 characters, without citations.")]
    start: Annotated[int, Meta(description="Where it begins in the reply's text, in characters.")]
    status: Annotated[
        CheckStatus,
        Meta(
            description="`supported`; `partly`: what it says is in a passage, but not in one that it cites, or hardly;"
            " `unsupported`: something of it is in no passage."
        ),
    ]
    passage: Annotated[int, Meta(description="The number of the passage that it stands on.")] = 0
    start_line: Annotated[int, Meta(description="Where in the page's file that is.")] = 0
    end_line: Annotated[int, Meta(description="Where it ends there.")] = 0
    missing: Annotated[tuple[str, ...], Meta(description="The pieces of it that no passage has.")] = ()


class Checks(Struct, frozen=True, rename="camel", tag_field="type", tag="checks"):
    """The verdicts on a reply so far."""

    supported: Annotated[int, Meta(description="The number of sentences that are supported.")]
    partly: Annotated[int, Meta(description="The number that are supported in part.")]
    unsupported: Annotated[int, Meta(description="The number that are not supported.")]
    sentences: Annotated[
        tuple[CheckedSentence, ...],
        Meta(description="Each verdict, in the order of the text; of a reply from the record the unsupported ones."),
    ]


def checks_of(checks: ReplyChecks) -> Checks:
    counts = checks.counts
    return Checks(counts.supported, counts.partly, counts.unsupported, tuple(map(_sentence, checks.sentences)))


def _sentence(check: SentenceCheck) -> CheckedSentence:
    return CheckedSentence(
        check.text, check.start, check.status, check.passage, check.start_line, check.end_line, check.missing
    )
