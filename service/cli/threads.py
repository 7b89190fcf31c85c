"""``docsmith ask``."""

import argparse
import asyncio
from contextlib import aclosing
from typing import Any

from eventstore import Metadata
from service.assistant.answer import AnswerSettings
from service.cli.output import DONE, FAILED, Output, failure
from service.cli.parsing import add_command
from service.cli.runtime import Runtime
from service.cli.sites import open_site
from service.domain.replies import ReplyBroken, ReplyDone, ReplyEvent, SearchFinished, TextDelta
from service.domain.threads import ANONYMOUS, DEFAULT_PAGE_SIZE, PostMessage, SearchFilter, Source
from service.operations import start_thread
from service.projections.projects import project_of_domain
from service.system import cli_actor, new_id, now
from service.workers.broadcast import Broadcast
from service.workers.instances import Instance
from service.workers.replier import Replier


def add_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    one = add_command(
        commands,
        "ask",
        "ask the assistant about a site",
        more="It answers in the terminal, from the site's index; no service has to run.",
        examples=['ask guide "How do I install it?"'],
        parents=[common],
    )
    one.add_argument("domain", metavar="DOMAIN", help="of the site, as docsmith project list shows it")
    one.add_argument("question", metavar="QUESTION", help="in quotes")
    one.set_defaults(command=ask)


async def ask(runtime: Runtime, options: argparse.Namespace, output: Output) -> int:
    """Answered by this process, recorded in the log like any other thread."""
    await open_site(runtime, options.domain)
    project = await project_of_domain(runtime.views, options.domain)
    assert project is not None  # it has a site
    broadcast: Broadcast[ReplyEvent] = Broadcast()
    settings = runtime.settings.assistant
    with Instance(runtime.data) as instance:
        replier = Replier(
            runtime.store,
            runtime.views,
            broadcast,
            models=runtime.models,
            index=runtime.index,
            instance=instance.name,
            is_alive=instance.is_alive,
            settings=AnswerSettings(suggestions=False, max_searches=settings.max_searches),
            concurrent_replies=1,
        )
        ready = asyncio.Event()
        replying = asyncio.create_task(replier.run(ready=ready))
        try:
            await ready.wait()
            message = PostMessage(
                message_id=new_id(),
                client_message_id="",
                text=options.question,
                context=(),
                current_path="",
                filter=SearchFilter(),
                page_size=DEFAULT_PAGE_SIZE,
                api_version=2,
                reply_id=f"msg_{new_id()}",
                instance=instance.name,
                domain=project.domain,
                fp=ANONYMOUS,
                now=now(),
            )
            topic = broadcast.open(message.reply_id)
            posted = await start_thread(runtime.store, project, message, Metadata(actor=cli_actor()))
            async with aclosing(topic.listen()) as events:
                sources: dict[int, Source] = {}
                async for event in events:
                    match event:
                        case TextDelta(text=text):
                            output.word(text)
                        case SearchFinished(sources=found):
                            sources.update((source.number, source) for source in found)
                        case ReplyDone() as done:
                            return _done(done, sources, posted.thread_id, output)
                        case ReplyBroken(message=sentence):
                            output.line("")
                            failure(sentence)
                            return FAILED
                        case _:
                            pass
            return FAILED
        finally:
            replying.cancel()
            await asyncio.wait([replying])


def _done(done: ReplyDone, sources: dict[int, Source], thread_id: str, output: Output) -> int:
    output.line("")
    cited = [sources[number] for number in done.cited if number in sources]
    if cited:
        output.line("\nSources:")
        for source in cited:
            heading = f" / {source.heading}" if source.heading and source.heading != source.title else ""
            output.line(
                f"  [{source.number}] {source.title}{heading}  {source.url}  ({source.path}:{source.start_line})"
            )
    value = {"threadId": thread_id, "text": done.text, "resolution": done.resolution, "model": done.model}
    output.result({**value, "sources": cited}, "")
    return DONE
