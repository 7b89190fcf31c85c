"""``docsmith ask``."""

import asyncio
import re
from collections.abc import Sequence
from contextlib import aclosing

import click

from eventstore import Metadata
from service.assistant.failures import STANDS_IN
from service.assistant.question import AnswerSettings
from service.cli.output import DONE, FAILED, Output
from service.cli.parsing import Options, command
from service.cli.runtime import Runtime
from service.cli.sites import open_site
from service.commands.threads import PostedMessage, plain_question, post_message, start_thread
from service.domain.search import Source
from service.domain.threads.replies import ReplyBroken, ReplyDone, ReplyEvent, ReplyWaiting, SearchFinished, TextDelta
from service.markup.suggestions import parted
from service.queries.projects import project_of_domain
from service.runtime.system import cli_actor
from service.views.jobs.jobs import JobUsage
from service.views.readers.questions import SourceView, checks_view
from service.wire.waiting import waiting
from service.workers.replies.broadcast import Broadcast
from service.workers.replies.replier import Replier
from service.workers.replies.reply_context import ReplyContext

_CITATION = re.compile(r"\[(\d{1,3})\]\([^()\s]*\)")


@command(
    "ask",
    takes_words=True,
    more="It answers in the terminal as the answer is written, from the site's index; no service has to run.",
    examples=[
        'ask guide "How do I install it?"',
        'ask guide "And on Windows?" --thread THREAD',
        'ask guide "How do I install it?" --json',
    ],
)
@click.argument("domain", metavar="SITE", help="name of the site, as docsmith project list shows it")
@click.argument("question", metavar="QUESTION", help="in quotes")
@click.option("--thread", metavar="THREAD", help="continue this thread, whose id its last answer ended with")
async def ask(runtime: Runtime, options: Options, output: Output) -> int:
    """Answered by this process, recorded in the log like any other thread."""
    await open_site(runtime, options.domain)
    project = await project_of_domain(runtime.views, options.domain)
    assert project is not None  # it has a site
    broadcast: Broadcast[ReplyEvent] = Broadcast()
    settings = runtime.settings.assistant
    reasons: list[str] = []
    async with runtime.join() as instances:
        context = ReplyContext(
            runtime.models,
            runtime.index,
            AnswerSettings(
                suggestions=settings.suggestions,
                max_searches=settings.max_searches,
                max_context_tokens=settings.max_context_tokens,
                max_minutes=settings.max_minutes,
                withhold_unsupported_code=settings.withhold_unsupported_code,
            ),
            concurrent_replies=1,
            takes_over=False,
            on_model_failure=lambda failure: reasons.append(failure.reason),
        )
        replier = Replier(
            runtime.store,
            runtime.views,
            broadcast,
            context,
            instance=instances.name,
            is_alive=instances.is_alive,
            crashed=lambda: instances.crashed,
        )
        ready = asyncio.Event()
        replying = asyncio.create_task(replier.run(ready=ready))
        try:
            await ready.wait()
            message = plain_question(
                options.question, domain=project.domain, instance=instances.name, caller="terminal"
            )
            topic = broadcast.open(message.reply_id)
            metadata = Metadata(actor=cli_actor())
            if options.thread:
                posted = await post_message(runtime.store, options.thread, message, metadata)
            else:
                posted = await start_thread(runtime.store, project, message, metadata)
            async with aclosing(topic.listen()) as events:
                sources: dict[int, Source] = {}
                async for event in events:
                    match event:
                        case TextDelta(text=text):
                            output.word(_readable(parted(text)[0], sources))
                        case SearchFinished(sources=found):
                            sources.update((source.number, source) for source in found)
                        case ReplyWaiting(seconds=seconds):
                            output.line(waiting(seconds).message)
                        case ReplyDone() as done:
                            return _done(done, sources, posted, options.domain, output, reasons)
                        case ReplyBroken(message=sentence):
                            output.line("")
                            output.failed(" ".join([sentence, *reasons]), "reply_broken")
                            return FAILED
                        case _:
                            pass
            return FAILED
        finally:
            replying.cancel()
            await asyncio.wait([replying])


def _readable(text: str, sources: dict[int, Source]) -> str:
    """Citations without their links, which stand below; a delta has them whole."""
    return _CITATION.sub(lambda match: f"[{match[1]}]" if int(match[1]) in sources else match[0], text)


def _done(
    done: ReplyDone,
    sources: dict[int, Source],
    posted: PostedMessage,
    domain: str,
    output: Output,
    reasons: Sequence[str],
) -> int:
    """``reasons``: why the model failed."""
    output.line("")
    text, suggestions = parted(done.text)
    cited = [sources[number] for number in done.cited if number in sources]
    if cited:
        output.line("\nSources:")
        for source in cited:
            heading = f" / {source.heading}" if source.heading and source.heading != source.title else ""
            output.line(
                f"  [{source.number}] {source.title}{heading}  {source.url}  ({source.path}:{source.start_line})"
            )
    for check in done.checks.sentences if done.checks is not None else ():
        output.line(f"\nNot in the documentation: {', '.join(check.missing)}  in: {check.text}")
    if suggestions:
        output.line("\nRelated pages:")
        for suggestion in suggestions:
            output.line(f"  {suggestion.label}  {suggestion.path}")
    output.line(f'\nTo go on: docsmith ask {domain} "…" --thread {posted.thread_id}')
    value = {
        "threadId": posted.thread_id,
        "messageId": posted.reply_id,
        "text": text,
        "resolution": done.resolution,
        "outcome": done.outcome,
        "finishReason": done.finish_reason.replace("_", "-"),
        "uncited": done.uncited,
        "failure": done.failure,
        "model": done.model,
        "usage": JobUsage(done.usage.input_tokens, done.usage.output_tokens, done.usage.cost_usd),
        "checks": None if done.checks is None else checks_view(done.checks),
        "sources": [
            SourceView(one.number, one.title, one.url, one.path, one.start_line, one.end_line, one.commit)
            for one in cited
        ],
        "suggestions": [{"label": one.label, "path": one.path} for one in suggestions],
    }
    output.result(value, "")
    if not done.failure:
        return DONE
    sentence = next(one.message for one in STANDS_IN if one.code == done.failure)
    output.failed(" ".join([sentence, *reasons]), done.failure)
    return FAILED
