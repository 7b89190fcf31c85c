"""Shortcodes of Hugo as readers see them, with the lines of the file."""

import pytest

from service.retrieval.readers.markdown import ParsedPage
from service.retrieval.site.detection import detect_layout
from service.retrieval.site.pages import PageReader

SITE = {
    "hugo.toml": "[params]\nversion = '1.9'\n[params.repo]\nname = 'kites'\n",
    "content/_index.md": "Home.",
    "content/docs/_index.md": "---\ntitle: Docs\n---\nDocs.",
    "content/docs/other.md": "---\ntitle: Other\ndescription: Another page.\n---\nOther text.",
    "content/docs/glossary/index.md": "---\ntitle: Glossary\n---\n{{% glossary %}}",
    "content/docs/glossary/kite.md": "---\ntitle: Kite\n---\nIt flies.\n\n<!--more-->\nIt has a line.",
    "content/examples/kite.yaml": "kind: Kite\n",
    "content/includes/part.md": "---\ntitle: P\n---\nPart of {{< param version >}}.",
    "layouts/shortcodes/box.html": '<p id="{{ .Get "kind" }}">{{ .Get "kind" | default "Box" }} {{ .Inner }}</p>',
    "layouts/shortcodes/maybe.html": "{{ with .Get 0 }}Given {{ . }}{{ else }}Nothing given{{ end }}",
    "layouts/shortcodes/hard.html": "{{ range .Site.Pages }}{{ .Title }}{{ end }}",
}


def page_of(text: str, path: str = "content/docs/page.md", **more: str) -> ParsedPage:
    files = {name: content.encode() for name, content in {**SITE, path: text, **more}.items()}
    layout = detect_layout(files, files.get)
    page = PageReader(layout, lambda name, limit: files[name][:limit] if name in files else None).page(path)
    assert isinstance(page, ParsedPage)
    return page


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{{< note >}}\nMind *this*.\n{{< /note >}}", "**Note:** \nMind *this*."),
        ('{{% alert\n  title="Take care"\n  color="red" %}}\nHot.\n{{% /alert %}}', "**Take care**\n\nHot."),
        ('{{< tab "One" >}}\n{{< tip >}}In it.{{< /tip >}}\n{{< /tab >}}', "**One**\n\n**Tip:** In it."),
        ('{{< tab name="T" include="glossary/kite.md" />}}', "**T**\n\nIt flies.\n\nIt has a line."),
        ('{{< tab name="T" include="other.md" />}}', "**T**"),
        ("{{< highlight go >}}\na()\n{{< /highlight >}}", "```go\na()\n```"),
        ("{{< code-toggle file=hugo >}}\na = 1\n{{< /code-toggle >}}", "```toml\na = 1\n```"),
        ("Of {{< param version >}} and {{% param repo.name %}}.", "Of 1.9 and kites."),
        ("```\nv{{< param version >}}\n```", "```\nv1.9\n```"),
        ('{{% include "part.md" %}}', "Part of 1.9."),
        ('- {{< include "part.md" >}} {{< none >}}', "- Part of 1.9."),
        ('{{< codenew file="kite.yaml" >}}', "```yaml\nkind: Kite\n```"),
        ('A {{< glossary_tooltip term_id="kite" >}}, two\n{{< glossary_tooltip\n term_id="kite" text="kites" >}}.',
         "A Kite, two\nkites."),
        ('{{< glossary_definition term_id="kite" prepend="Look:" >}}', "Look: It flies."),
        ('{{< glossary_definition term_id="kite" length="all" >}}', "It flies.\n\nIt has a line."),
        ('## {{% heading "prerequisites" %}}\n\nRead.', "## Before you begin\n\nRead."),
        ('{{< feature-state for_k8s_version="v1.2" state="beta" >}}', "**Feature state:** v1.2 [beta]"),
        ("{{< new-in 0.1.0 />}} Text.", "New in 0.1.0 Text."),
        ("{{% render-list-of-pages-in-section path=/docs %}}", "- Glossary\n- Other: Another page."),
        ('{{< box kind="warm" >}}Gloves.{{< /box >}}', "warm Gloves."),
        ("{{< box >}}Gloves.{{< /box >}}", "Box Gloves."),
        ("{{< maybe x >}}, {{< maybe >}}.", "Given x, Nothing given."),
        ("{{< hard >}}Inner.{{< /hard >}}", "Inner."),
        ("{{< unknown a=b >}}Inner {{< gone 1 2 >}}text.{{< /unknown >}}", "Inner text."),
        ("{{< comment >}}\nUnseen.\n{{< /comment >}}\nSeen.", "Seen."),
        ("`{{</* note */>}}` and {{%/* tip */%}}\n\n```\n{{</* a \"b\" */>}}\n```",
         '`{{< note >}}` and `{{% tip %}}`\n\n```\n{{< a "b" >}}\n```'),
        ("Text.\n{.wide #a}\n\n> Quote.\n{cite=x}", "Text.\n\n> Quote."),
    ],
)  # fmt: skip
def test_shortcode_is_shown_as_readers_see_it(text, shown):
    lines = [line.rstrip() for line in page_of(text).content.split("\n")]
    wanted = [line.rstrip() for line in shown.split("\n")]
    assert [line for line in lines if line] == [line for line in wanted if line]


def test_glossary_shows_its_terms_as_sections():
    page = page_of(SITE["content/docs/glossary/index.md"], "content/docs/glossary/index.md")
    assert [(section.heading, section.anchor) for section in page.sections] == [("Kite", "kite")]


def test_sections_keep_the_lines_of_the_file():
    text = (
        '---\ntitle: A\n---\n{{% include "long.md" %}}\n\n## B\n\n{{< note >}}\nText.\n{{< /note >}}\n\n## C\n\nEnd.\n'
    )
    page = page_of(text, **{"content/docs/long.md": "One.\n\n## Two\n\nThree.\n\nFour."})
    places = {section.heading: (section.start_line, section.end_line) for section in page.sections}
    assert places == {"": (4, 4), "Two": (4, 5), "B": (6, 11), "C": (12, 14)}


@pytest.mark.parametrize(
    "text",
    [
        "{{< a >}}" * 30_000,
        "{{< a >}}" * 5_000 + "{{< /a >}}" * 5_000,
        '{{< a "' * 20_000,
        "{{< a `" + "x>}" * 50_000,
        '{{% include "page.md" %}}' * 200,
        '{{% include "loop.md" %}}',
        "{{</* " * 20_000,
    ],
)
def test_hostile_shortcodes_end(text):
    page_of(text, **{"content/docs/loop.md": '{{% include "loop.md" %}}{{% include "page.md" %}}' * 100})
