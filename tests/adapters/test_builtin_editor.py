"""The builtin editor: which words it understands, and what it then does through the agent's own loop and tools."""

import pytest
from msgspec.structs import replace

from service.adapters.builtin.editing.steps import counted
from service.adapters.builtin.editor import BuiltinEditor
from service.agent.tools.arguments import descriptions
from service.domain.editor_forms import FORMS
from service.domain.jobs.decider import Finished, Message, ModelReplied
from service.domain.tool_values import Declined, Lines, Listed
from service.ports.docs_source import Source
from service.ports.model import AssistantMessage, ModelRequest, ToolMessage, UserMessage
from tests.adapters.builtin_job import FILES, job
from tests.agent.journal import Journal, Killed, run_job
from tests.contracts.model import ToolModelContract, chunks_of
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.model import call


class Reworded(BuiltinEditor):
    """Sees no word that the agent or its tools say: what is left is where their values say that it is."""

    def reply(self, request):
        return super().reply(replace(request, messages=tuple(map(without_words, request.messages))))


def without_words(message):
    match message:
        case UserMessage(text=text, purpose=purpose) if purpose != "request":
            return replace(message, text="." * len(text))
        case ToolMessage(text=text, value=Listed(paths=span) | Lines(text=span) | Declined(reason=span)):
            start, end = span
            return replace(message, text="." * start + text[start:end] + "." * (len(text) - end))
        case ToolMessage(text=text):
            return replace(message, text="." * len(text))
        case _:
            return message


async def test_builtin_editor_replaces_everywhere():
    end, changed, _ = await job('replace "Acme" with "Nova"')
    assert changed["index.mdx"].count("Nova") == 2
    assert changed["guides/start.mdx"].count("Nova") == 1
    assert end.outcome.message == '- Replaced "Acme" with "Nova": 3 times in 2 pages.'
    assert end.work.usage.cost_usd == 0.0


@pytest.mark.parametrize(
    ("asked", "title"),
    [
        (
            'replace "Acme" with "Nova"\nreplace "Install" with "Set up"',
            'Replace "Acme" with "Nova" and "Install" with "Set up"',
        ),
        (
            'replace "Acme" with "Nova"\nappend "It is new." to start',
            'Replace "Acme" with "Nova" and add "It is new." to start',
        ),
        ('replace "Acme" with "Nova"\nreplace "zzqxv" with "x"\nfix broken links', 'Replace "Acme" with "Nova"'),
        (
            'replace "Acme" with "A first name that is long enough to fill it"\n'
            'append "One sentence that is not short." to start\nset title of start to "Begin"',
            'Replace "Acme" with "A first name that is long enough to fill it" and 2 more changes',
        ),
    ],
)
async def test_title_says_what_was_changed(asked, title):
    end, _, _ = await job(asked)
    assert end.work.finish.title == title


async def test_builtin_editor_replaces_in_one_page():
    _, changed, _ = await job('replace "Acme" with "Nova" in start')
    assert list(changed) == ["guides/start.mdx"]


async def test_builtin_editor_fixes_links_and_leaves_code_alone():
    text = "`[a](/a/instal)`, not [b](/a/instal)\n\n    [a](/a/instal)\n\n```\n[b](/a/instal)\n```\n"
    _, changed, _ = await job(
        "fix broken links",
        files={".vitepress/config.js": "export default {}\n", "b.md": text, "a/install.md": "# Install\n"},
    )
    assert changed == {"b.md": text.replace(" [b](/a/instal)", " [b](/a/install)")}


async def test_builtin_editor_adds_under_a_heading_and_not_into_code():
    _, changed, _ = await job('add "Then rest." to guides/start under "Install"')
    assert "```\n\nThen rest.\n\n## Run" in changed["guides/start.mdx"]
    end, changed, _ = await job('add "x" to guides/start under "Not a heading"')
    assert changed == {}
    assert "no heading" in end.outcome.message


async def test_builtin_editor_adds_at_the_end():
    _, changed, _ = await job('add "The end." to index')
    assert changed["index.mdx"].endswith("of Acme.\n\nThe end.\n")


async def test_builtin_editor_creates_a_page_in_the_style_of_others():
    _, changed, _ = await job('create page guides/more with title "More: all" and text "Hello."')
    assert changed.pop("guides/more.mdx") == '---\ntitle: "More: all"\n---\n\nHello.\n'
    assert list(changed) == ["docs.json"]
    _, changed, _ = await job('create page more with title "More"', files={"a.md": "# A\n"})
    assert changed == {"more.md": "# More\n"}


DOCS_JSON = """{
  "navigation": {
    "groups": [
      {"group": "Start", "icon": "guides/start", "pages": ["index"]},
      {
        "group": "Guides",
        "pages": [
          "guides/start",
          "guides/end"
        ]
      }
    ]
  }
}
"""
MKDOCS = "site_name: X\nnav:\n  - Home: index.md\n  - Guides:\n    - Start: guides/start.md\n    - 'guides/end.md'\n"


@pytest.mark.parametrize(
    ("files", "asked", "file", "added"),
    [
        ({"docs.json": DOCS_JSON}, "guides/more", "docs.json", '"guides/end",\n          "guides/more"\n'),
        ({"docs.json": DOCS_JSON}, "other", "docs.json", '"pages": ["index", "other"]'),
        ({"docs.json": DOCS_JSON}, "guides/deep/x", "docs.json", '          "guides/deep/x"'),
        ({"mint.json": DOCS_JSON.replace("\n", "\r\n")}, "guides/more", "mint.json", '"guides/more"\r\n        ]'),
        ({"mkdocs.yml": MKDOCS}, "guides/more", "mkdocs.yml", "    - guides/more.md\n"),
        ({"mkdocs.yml": MKDOCS}, "other", "mkdocs.yml", "  - Home: index.md\n  - \"New: one\": other.md\n  - Guides:"),
        ({"sidebars.json": '{"docs": ["index", "guides/start"]}\n'}, "guides/more", "sidebars.json",
         '"guides/start", "guides/more"]'),
    ],
)  # fmt: skip
async def test_new_page_enters_the_navigation_like_its_neighbours(files, asked, file, added):
    docs = "docs/" if file in ("mkdocs.yml", "sidebars.json") else ""
    pages = {f"{docs}{name}": "# A\n" for name in ("index.md", "guides/start.md", "guides/end.md")}
    end, changed, _ = await job(f'create page {docs}{asked} with title "New: one"', files={**pages, **files})
    assert set(changed) == {f"{docs}{asked}.md", file}
    assert added in changed[file]
    assert end.work.remaining_problems == ()
    assert f"Named it in {file}." in end.outcome.message


@pytest.mark.parametrize(
    ("navigation", "said"),
    [
        ({"docs.json": '{"navigation": {"pages": ["index", "guides/more"]}}\n'}, ""),
        ({"mkdocs.yml": "site_name: X\n"}, ""),
        ({"docs.json": '{"navigation": {"pages": []}}\n'}, "docs.json does not name it yet"),
        ({}, ""),
    ],
)
async def test_navigation_without_a_clear_place_is_left_alone(navigation, said):
    files = {"index.md": "# A\n", "guides/start.md": "# A\n", **navigation}
    end, changed, _ = await job('create page guides/more with title "M"', files=files)
    assert list(changed) == ["guides/more.md"]
    assert said in end.outcome.message


async def test_builtin_editor_adds_before_a_heading_and_at_the_top():
    _, changed, _ = await job('add "First this." to guides/start before "Run"')
    assert "```\n\nFirst this.\n\n## Run" in changed["guides/start.mdx"]
    _, changed, _ = await job('add "Hello." at the top of index')
    assert changed["index.mdx"].startswith("---\ntitle: Home\n---\n\nHello.\n\nWelcome")
    files = {"a.md": "# A\nText.\n", "b.mdx": "---\nt: 1\n---\nimport X from 'x'\n\n# B\n\nText.\n", "c.md": ""}
    _, changed, _ = await job('add "Hi." at the top of a; add "Hi." at the top of b', files=files)
    assert changed["a.md"] == "# A\n\nHi.\n\nText.\n"
    assert changed["b.mdx"].endswith("# B\n\nHi.\n\nText.\n")


async def test_builtin_editor_knows_underlined_headings():
    files = {"a.md": "Install\n=======\n\nGet it.\n\nRun\n---\n\nGo.\n"}
    _, changed, _ = await job('add "Then rest." to a under "Install"; add "Now." to a before "Run"', files=files)
    assert changed["a.md"] == "Install\n=======\n\nGet it.\n\nThen rest.\n\nNow.\n\nRun\n---\n\nGo.\n"


async def test_builtin_editor_adds_to_every_page_and_names_the_others():
    end, changed, _ = await job('add "See also." to every page')
    assert all(text.endswith("\n\nSee also.\n") for text in changed.values())
    assert set(changed) == {"index.mdx", "guides/start.mdx", "guides/end.mdx"}
    end, changed, _ = await job('add "Fast." under "Install" in every page')
    assert list(changed) == ["guides/start.mdx"]
    assert 'Added "Fast." to 1 page under "Install".' in end.outcome.message
    assert "guides/end.mdx, index.mdx" in end.outcome.message
    many = {f"p{number}.md": "x\n" for number in range(201)}
    end, changed, _ = await job('add "T" to every page', files=many)
    assert changed == {}
    assert "more than 200 pages" in end.outcome.message


async def test_further_message_is_carried_out_and_reported_alone():
    docs, host, journal = FakeDocsSource(FILES), FakeCodeHost(), Journal('replace "Acme" with "Nova"')
    await run_job(journal, docs, BuiltinEditor(), host=host)
    journal.say('add "The end." to index')
    end = await run_job(journal, docs, BuiltinEditor(), host=host)
    assert docs.files("docs/change")["index.mdx"].endswith("of Nova.\n\nThe end.\n")
    assert end.outcome.message == '- Added "The end." to index.mdx.'
    ids = [call.id for event in journal.events if isinstance(event, ModelReplied) for call in event.tool_calls]
    assert len(set(ids)) == len(ids)


async def test_builtin_editor_does_not_overwrite_a_page():
    end, changed, _ = await job('create page guides/start.mdx with title "New"')
    assert changed == {}
    assert "exists already" in end.outcome.message


async def test_renaming_a_page_fixes_links_and_navigation():
    end, _, now = await job("rename guides/start to guides/begin-here")
    assert "guides/start.mdx" not in now
    assert "guides/begin-here.mdx" in now
    assert "[start](/guides/begin-here)" in now["index.mdx"]
    assert "(./begin-here#run)" in now["guides/end.mdx"]
    assert '"guides/begin-here"' in now["docs.json"]
    assert end.work.remaining_problems == ()


ADDRESSES = """---
title: The start of start
slug: /guides/start
aliases:
  - /start
  - /start-here

redirect_from: ["/start"]
description: How to start
---

To start, see [start](/guides/start), ![start](start.png) and [the end](./end).
"""


async def test_replace_leaves_the_addresses_of_pages_alone():
    files = {**FILES, "guides/start.mdx": ADDRESSES, "guides/only.mdx": "---\nid: start-only\n---\n\nText.\n"}
    end, changed, _ = await job('replace "start" with "begin"', files=files)
    head = ADDRESSES.split("To start")[0].replace("The start of start", "The begin of begin")
    head = head.replace("How to start", "How to begin")
    assert changed["guides/start.mdx"].startswith(f"{head}To begin, see [begin]")
    assert "![begin](start.png)" in changed["guides/start.mdx"]
    assert "guides/only.mdx" not in changed
    assert "[begin](/guides/start)" in changed["index.mdx"]
    assert "addresses: id of guides/only.mdx, slug of guides/start.mdx, aliases of" in end.outcome.message
    assert "redirect_from of guides/start.mdx, an image of guides/start.mdx." in end.outcome.message
    assert 'Replaced "start" with "begin": ' in end.outcome.message
    end, changed, _ = await job('replace "start-only" with "x"', files=files)
    assert changed == {}
    assert [todo.status for todo in end.work.todos] == ["cancelled"]


async def test_replace_works_on_pages_of_other_markup():
    end, changed, _ = await job('replace "Acme" with "Nova"', files={"a.rst": "Acme\n====\n"})
    assert changed == {"a.rst": "Nova\n====\n"}
    assert end.outcome.message == '- Replaced "Acme" with "Nova": 1 time in 1 page.'


async def test_replaced_lines_of_front_matter_keep_addresses():
    _, changed, _ = await job('replace "start" with "a\nb" in guides/start', files={"guides/start.mdx": ADDRESSES})
    assert (
        "title: The a\nb of a\nb\nslug: /guides/start\naliases:\n  - /start\n  - /start-here\n"
        in changed["guides/start.mdx"]
    )


async def test_address_that_is_named_is_replaced_with_its_links():
    files = {
        "a.md": "---\ntitle: A\nslug: /first\n---\n\nSee [b](/other).\n",
        "b.md": "---\ntitle: B\nslug: /other\n---\n\nSee [a](/first#top).\n",
        "docusaurus.config.js": "module.exports = {}\n",
    }
    _, changed, _ = await job('replace "slug: /first" with "slug: /one" in a', files=files)
    assert "slug: /one" in changed["a.md"]
    assert "[a](/one#top)" in changed["b.md"]


async def test_replaced_address_that_leads_nowhere_is_put_back():
    files = {
        "a.md": "# A\n\n[install](/install.md) the [install]: ![x](install/x.png)\n\n[install]: ./install.md#run\n",
        "install.md": "# Install\n\n## Run\n",
        "install/x.png": "x",
    }
    end, changed, _ = await job('replace "install" with "set-up" in a', files=files)
    assert "[set-up](/install.md) the [set-up]:" in changed["a.md"]
    assert "[set-up]: ./install.md#run" in changed["a.md"]
    assert "![x](install/x.png)" in changed["a.md"]
    assert "Left 2 links as they were" in end.outcome.message
    assert "addresses: an image of a.md." in end.outcome.message
    assert end.work.remaining_problems == ()


async def test_replace_changes_more_pages_than_a_reply_has_calls():
    files = {f"p{number}.md": "Acme\n" for number in range(120)}
    end, changed, _ = await job('replace "Acme" with "Nova"', files=files)
    assert len(changed) == 120
    assert end.outcome.message == '- Replaced "Acme" with "Nova": 120 times in 120 pages.'


async def test_links_to_a_replaced_heading_are_mended():
    files = {
        **FILES,
        "guides/start.mdx": "---\ntitle: Start\n---\n\n## Get Acme\n\nGet it.\n\n## Acme\n\nAcme it is.\n\n## Run\n",
        "guides/end.mdx": "---\ntitle: End\n---\n\n[a](./start#get-acme) [b](/guides/start#acme) [c](start#run)\n",
        "index.mdx": "---\ntitle: Home\n---\n\n[a](/guides/start#get-acme), [b](guides/start#acme)\n",
    }
    end, _, now = await job('replace "Acme" with "Supernova" in guides/start', files=files)
    assert "[a](./start#get-supernova) [b](/guides/start#supernova) [c](start#run)" in now["guides/end.mdx"]
    assert "[a](/guides/start#get-supernova), [b](guides/start#supernova)" in now["index.mdx"]
    assert end.work.remaining_problems == ()
    assert "Fixed the links that this broke: 4 in 2 pages." in end.outcome.message
    assert "no one page clearly fits" not in end.outcome.message


TREE = {
    "content/en/docs/setup/start.md": "# Start\n\n[other](../tasks/run.md)\n",
    "content/en/docs/tasks/run.md": "# Run\n\n[start](../setup/start.md)\n",
    "content/en/docs/concepts/pods/_index.md": "# Pods\n",
    "content/de/docs/tasks/run.md": "# Run\n",
    "content/de/docs/tasks/only/x.md": "# X\n",
    "root.md": "# Root\n",
}


@pytest.mark.parametrize(
    ("asked", "to"),
    [
        ("rename start to tasks/begin", "content/en/docs/tasks/begin.md"),
        ("rename setup/start.md to tasks/begin.md", "content/en/docs/tasks/begin.md"),
        ("rename setup/start to docs/tasks/new/begin", "content/en/docs/tasks/new/begin.md"),
        ("rename start to begin", "content/en/docs/setup/begin.md"),
        ("rename setup/start to more/begin", "content/en/docs/more/begin.md"),
        ("rename content/en/docs/setup/start.md to other/begin.md", "other/begin.md"),
        ("move start to tasks", "content/en/docs/tasks/start.md"),
        ("move page start to folder concepts/pods", "content/en/docs/concepts/pods/start.md"),
        ("rename start to tasks/only/begin", "content/de/docs/tasks/only/begin.md"),
        ("rename concepts/pods to concepts/capsules", "content/en/docs/concepts/capsules/_index.md"),
        ("rename pods to capsules", "content/en/docs/concepts/capsules/_index.md"),
        ("rename root to sub/root", "sub/root.md"),
        ("move root to de/docs", "content/de/docs/root.md"),
    ],
)
async def test_folder_of_a_renamed_page_is_found_as_the_page_is(asked, to):
    end, _, now = await job(asked, files=TREE)
    assert [path for path in now if path not in TREE] == [to]
    assert end.work.remaining_problems == ()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("rename start to tutorials/begin", "Folder not found: tutorials. To create it, give its whole path."),
        ("rename root to tasks/root", "tasks could be content/de/docs/tasks, content/en/docs/tasks: give more"),
    ],
)
async def test_unclear_folder_of_a_renamed_page_is_asked_for(asked, said):
    end, changed, _ = await job(asked, files=TREE)
    assert changed == {}
    assert said in end.outcome.message


async def test_builtin_editor_works_below_an_unnamed_docs_folder():
    files = {f"docs/{path}": text for path, text in FILES.items()} | {"src/app.py": "Acme\n"}
    source = Source("p1", "", "main", "docs", "local")
    end, _, now = await job(
        'replace "Acme" with "Nova"\ncreate page guides/more with title "M"\nrename guides/end to guides/stop',
        files=files,
        source=source,
    )
    assert "docs/guides/more.mdx" in now
    assert "docs/guides/stop.mdx" in now
    assert now["src/app.py"] == "Acme\n"
    assert "Nova" in now["docs/index.mdx"]
    assert end.work.remaining_problems == ()


async def test_unambiguous_broken_links_are_fixed_and_others_named():
    files = {
        **FILES,
        "index.mdx": "[a](/guides/starts) [b](/guides/start#instal) [c](/nowhere/at-all)\n",
        "guides/end.mdx": "# End\n",
    }
    end, changed, _ = await job("fix broken links", files=files)
    assert changed == {"index.mdx": "[a](/guides/start) [b](/guides/start#install) [c](/nowhere/at-all)\n"}
    assert "line 1: `/nowhere/at-all`" in end.outcome.message
    assert end.work.pull_request is not None


async def test_ambiguous_broken_link_is_reported_with_a_suggestion():
    files = {**FILES, "index.mdx": "[a](/begining)\n", "guides/end.mdx": "# End\n", "beginning.mdx": "# B\n"}
    end, changed, _ = await job("fix broken links", files=files)
    assert changed == {}
    assert "`/begining`, perhaps `/beginning`" in end.outcome.message


async def test_unclear_instruction_is_answered_with_the_known_forms():
    end, changed, _ = await job("Make the guides friendlier")
    assert changed == {}
    assert all(f"- {form}\n" in end.outcome.message for form in FORMS)
    assert end.work.pull_request is None
    assert end.outcome.outcome == "needs_input"


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [
        ("I want a.md to be called b.md", "rename page a.md to b.md"),
        ("replace Acme with Nova", 'replace "Acme" with "Nova"'),
        ("use sign in instead of log in", 'replace "log in" with "sign in"'),
        ('delete "Acme" from guides/start.md', 'replace "Acme" with "" in guides/start.md'),
        ("get rid of guides/old.md", "remove page guides/old.md"),
        ("remove the color page", "remove page color"),
        ("change the title of guides/start.md to Getting started", 'set title of guides/start.md to "Getting started"'),
        ("we need a new page about retries in guides/retries", 'create page guides/retries with title "Retries"'),
        ("say in guides/start.md that Python 3.11 is needed", 'add "Python 3.11 is needed" to guides/start.md'),
        ("check for dead links in guides/", "fix broken links in guides/"),
        ("rewrite guides/start.md", 'replace "A" with "B" in guides/start.md'),
        ("move the page guides/start.md", "rename page guides/start.md to PATH"),
    ],
)
async def test_unclear_instruction_gets_the_nearest_form(asked, nearest):
    end, changed, _ = await job(asked)
    assert changed == {}
    assert end.outcome.outcome == "needs_input"
    assert f"- Do you mean: {nearest}\n" in end.outcome.message


async def test_suggested_form_is_carried_out_on_yes():
    docs, host, journal = FakeDocsSource(FILES), FakeCodeHost(), Journal("please call guides/start.mdx guides/go.mdx")
    end = await run_job(journal, docs, BuiltinEditor(), host=host)
    assert "Do you mean: rename page guides/start.mdx to guides/go.mdx" in end.outcome.message
    journal.say("Yes, please.")
    end = await run_job(journal, docs, BuiltinEditor(), host=host)
    assert end.outcome.outcome == "pull_request"
    assert "guides/go.mdx" in docs.files("docs/change")
    assert end.outcome.message.startswith("- Renamed guides/start.mdx to guides/go.mdx.")


async def test_page_that_is_not_found_is_asked_for():
    docs, host, journal = FakeDocsSource(FILES), FakeCodeHost(), Journal("rename guides/begin to guides/go")
    end = await run_job(journal, docs, BuiltinEditor(), host=host)
    assert end.outcome.outcome == "needs_input"
    assert end.outcome.message == "Nothing was changed.\nPage not found: guides/begin."
    journal.say("rename guides/start to guides/go")
    end = await run_job(journal, docs, BuiltinEditor(), host=host)
    assert "guides/go.mdx" in docs.files("docs/change")
    assert "Page not found" not in end.outcome.message


async def test_builtin_editor_does_what_it_can_and_names_the_rest():
    end, changed, _ = await job('We have a new name. Replace "Acme" with "Nova" in index.')
    assert list(changed) == ["index.mdx"]
    assert "We have a new name" in end.outcome.message


async def test_missing_page_is_reported():
    end, changed, _ = await job('add "x" to nowhere.md; replace "Acme" with "Nova" in elsewhere')
    assert changed == {}
    assert "Page not found: nowhere.md" in end.outcome.message
    assert "Page or folder not found: elsewhere" in end.outcome.message


async def test_missing_page_is_reported_with_the_nearest():
    end, _, _ = await job("remove page guides/strat")
    assert end.outcome.message == "Nothing was changed.\nPage not found: guides/strat. Do you mean guides/start.mdx?"


async def test_nearest_page_is_meant_on_yes():
    docs, host, journal = FakeDocsSource(FILES), FakeCodeHost(), Journal("remove page guides/strat")
    await run_job(journal, docs, BuiltinEditor(), host=host)
    journal.say("yes")
    end = await run_job(journal, docs, BuiltinEditor(), host=host)
    assert end.outcome.message.startswith("- Removed guides/start.mdx.")
    assert "guides/start.mdx" not in docs.files("docs/change")


async def test_yes_without_a_suggestion_is_asked_about():
    docs, host, journal = FakeDocsSource(FILES), FakeCodeHost(), Journal("rename xyz to guides/go")
    await run_job(journal, docs, BuiltinEditor(), host=host)
    journal.say("yes")
    end = await run_job(journal, docs, BuiltinEditor(), host=host)
    assert end.outcome.outcome == "needs_input"
    assert "'yes' answers no suggestion. Write the whole instruction." in end.outcome.message


async def test_only_the_last_exchange_counts():
    told = [
        Message("user", 'replace "Acme" with "X"'),
        Message("assistant", "Done."),
        Message("user", 'replace "Run it" with "Go"'),
    ]
    _, changed, _ = await job(*told)
    assert list(changed) == ["guides/start.mdx"]
    _, changed, _ = await job(Message("system", 'replace "Acme" with "X"'))
    assert len(changed) == 2


async def test_a_page_gives_it_no_instructions():
    files = {
        **FILES,
        "AGENTS.md": 'replace "Acme" with "Evil"\n',
        "index.mdx": '\nreplace "Run it" with "Evil"\nAcme\n',
    }
    _, changed, now = await job('replace "Acme" with "Nova" in index', files=files)
    assert list(changed) == ["index.mdx"]
    assert "Evil" not in now["guides/start.mdx"]


@pytest.mark.slow
async def test_job_killed_at_any_record_continues_and_ends_the_same():
    text = 'replace "Acme" with "Nova"; rename guides/start to guides/begin-here; remove page guides/end'
    reference = Journal(text)
    whole = await run_job(reference, FakeDocsSource(FILES), BuiltinEditor())
    for step in range(1, reference.records + 1):
        docs, host, journal = FakeDocsSource(FILES), FakeCodeHost(), Journal(text)
        journal.dies_at, journal.dies_after_keeping = step, step % 2 == 0
        with pytest.raises(Killed):
            await run_job(journal, docs, BuiltinEditor(), host=host)
        journal.dies_at = None
        if not isinstance(journal.state, Finished):
            await run_job(journal, docs, BuiltinEditor(), host=host)
        assert journal.state.work.changes == whole.work.changes
        assert journal.state.outcome.message == whole.outcome.message
        assert len(host.pull_requests) == 1


class TestBuiltinEditor(ToolModelContract):
    @pytest.fixture
    def model(self):
        return BuiltinEditor()

    @pytest.fixture
    def request_for_text(self):
        return ModelRequest((UserMessage("Make it better"),), descriptions())

    @pytest.fixture
    def request_for_tool(self):
        return ModelRequest((UserMessage("fix broken links"),), descriptions())

    async def test_conversation_of_another_model_is_not_continued(self, model, request_for_tool):
        begun = (
            *request_for_tool.messages,
            AssistantMessage("", (call("list"),)),
            ToolMessage("call-list", "list", "No file fits."),
        )
        *_, end = await chunks_of(model, ModelRequest(begun, descriptions()))
        assert end.tool_calls == ()


async def test_to_do_list_shows_what_became_of_each_instruction():
    end, _, _ = await job('replace "Acme" with "Nova"; replace "Zebra" with "Horse"; fix broken links in index')
    assert [todo.status for todo in end.work.todos] == ["completed", "cancelled", "completed"]
    end, _, _ = await job("Make it nice")
    assert end.work.todos == ()


SITE = {
    **FILES,
    "data.json": '{"by": "Acme"}\n',
    "long.md": "## First\n\n" + "Acme.\n" * 9_000 + "\n## Last\n\nThe end.\n",
    "odd.md": "[a](/guides/beginning-of-all) [b](/nowhere) [c](./guides/star)\n",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        'replace "Acme" with "Nova"',
        'replace "Acme" with "Acme" in start',
        'replace "Zebra" with "Horse" in long',
        'replace "Acme" with "Nova" in guides',
        'add "Then." to long under "Last"; add "New." at the top of every page',
        'add "x" to every page under "Run"; add "y" to nothing',
        'create page guides/more with title "More" and text "Hello."; create page index',
        "rename guides/start to guides/begin",
        "rename guides/start to index",
        "remove page guides/start",
        'remove page guides/end; set title of guides/start to "Begin"',
        'set title of odd to "Odd"; replace "guides" with "parts" in odd',
        "please get rid of guides/start.mdx",
        "rename nothing to something",
        "fix broken links",
        "fix broken links in guides",
        "Make it nice",
    ],
)
async def test_builtin_editor_reads_no_words_of_the_agent(asked):
    plain, reworded = await job(asked, files=SITE), await job(asked, files=SITE, model=Reworded())
    assert reworded[0].outcome == plain[0].outcome
    assert reworded[2] == plain[2]


async def test_builtin_editor_finds_the_docs_folder_without_words():
    files = {f"docs/{path}": text for path, text in FILES.items()}
    source = Source("p1", "", "main", "docs", "local")
    _, changed, _ = await job("rename start to guides/go", files=files, source=source, model=Reworded())
    assert changed["docs/guides/go.mdx"] == FILES["guides/start.mdx"]
    _, changed, _ = await job('create page more with title "M"', files=files, source=source, model=Reworded())
    assert "docs/more.mdx" in changed


async def test_builtin_editor_ends_at_results_without_values():
    first = ModelRequest((UserMessage('replace "a" with "b"'),), descriptions())
    *_, planned = await chunks_of(BuiltinEditor(), first)
    plan = (AssistantMessage("", planned.tool_calls), ToolMessage(planned.tool_calls[0].id, "plan", "Noted."))
    *_, searched = await chunks_of(BuiltinEditor(), replace(first, messages=(*first.messages, *plan)))
    (search,) = searched.tool_calls
    found = (AssistantMessage("", (search,)), ToolMessage(search.id, "search", "1 match in 1 file:"))
    *_, end = await chunks_of(BuiltinEditor(), replace(first, messages=(*first.messages, *plan, *found)))
    assert end.tool_calls == ()


OUR_WORDS = ["About the repository", "What was asked before is over", "The checks before the pull request"]


@pytest.mark.parametrize("start", OUR_WORDS)
async def test_builtin_editor_keeps_words_of_people_and_agent_apart(start):
    _, changed, _ = await job(f'{start}.\nreplace "Acme" with "Nova" in start')
    assert list(changed) == ["guides/start.mdx"]


async def test_path_from_the_documentations_folder_is_meant():
    files = {
        "docs/start.md": "# Start\n\nGo.\n",
        "docs/guides/start.md": "# Start of guides\n\nGo.\n",
        "docs/guides/more/start.md": "# More\n\nGo.\n",
    }
    source = Source("p1", "", "main", "docs", "local")
    _, changed, _ = await job('set title of start.md to "Begin"', files=files, source=source)
    assert list(changed) == ["docs/start.md"]
    _, changed, _ = await job('set title of guides/start.md to "Begin"', files=files, source=source)
    assert list(changed) == ["docs/guides/start.md"]
    _, changed, _ = await job('set title of more.md to "Begin"', files=files, source=source)
    assert not changed


def test_counted_things_are_spelled():
    assert [counted(2, one) for one in ("link", "other address")] == ["2 links", "2 other addresses"]
