"""Lines that the builtin editor turns into others come out as they were meant, through the workspace's own replace."""

from hypothesis import given
from hypothesis import strategies as st

from service.adapters.builtin.editing.steps import rewrites
from service.adapters.builtin.editing.unlinking import unlinked
from service.agent.workspace import Workspace
from service.domain.tool_values import DeadLink
from service.ports.docs_source import Source
from tests.fakes.docs_source import FakeDocsSource

SOURCE = Source("p1", "", "main", "", "local")
LINES = st.lists(st.sampled_from(["", "a", "b", "a b", "# a", "  c", "a\rb"]), min_size=1, max_size=8)


@given(LINES, LINES, st.sampled_from(["", "\n"]))
async def test_rewritten_lines_are_the_wanted_ones(was, new, end):
    text = "\n".join(was) + end
    old = text.removesuffix("\n").split("\n")  # as the editor reads it
    docs = FakeDocsSource({"a.md": text})
    workspace = await Workspace.open(docs, SOURCE, (await docs.fetch(SOURCE)).base_commit, {})
    calls = rewrites("a.md", old, new)
    for name, arguments in calls:
        if name == "write":
            workspace.apply(await workspace.write("a.md", arguments["text"]))
            continue
        change, count = await workspace.replace("a.md", arguments["old"], arguments["new"], line=arguments["line"])
        workspace.apply([change])
        assert count == 1
    written = any(name == "write" for name, _ in calls)
    assert await workspace.text("a.md") == "\n".join(new) + ("\n" if text.endswith("\n") or written else "")


PIECES = ["[a](/old)", "- ", "See ", ". ", "\n", "\n\n", "# ", "text", '<Card href="/old">', "</Card>", "`",
          "```\n", "**", "[a]", "[a]: /old\n", "<Cards>\n", "</Cards>\n", "| ", "[", "](", "(/old)",
          "\r\n", "---\n"]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_text_without_links_keeps_all_that_is_not_theirs(text):
    dead = [DeadLink("a.mdx", line, found) for line in range(1, text.count("\n") + 2)
            for found in ("(/old)", '"/old"', "[a]: /old")]  # fmt: skip
    left = unlinked(text, "a.mdx", dead)
    assert left.text.count("text") == text.count("text") or left.gone
    assert unlinked(text, "a.mdx", []).text == text
