"""Markup that was not read is found in a section's text; code and prose about markup are not."""

import pytest

from service.markup.leftovers import leftovers


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('Text <Card title="A"> more.', "component"),
        ("<Tabs>\n\nText.", "component"),
        ("Text <Tabs.Tab/> more </Foo>", "component"),
        ("import A from '@site/a.mdx'", "expression"),
        ("export const a = 1", "expression"),
        ("Version {{ site.version }}.", "expression"),
        ('A {{< note >}} and {{% include "a.md" %}}', "shortcode"),
        ("{{< tooltip\n text=x >}}", "shortcode"),
        ("{% include a.md %}", "shortcode"),
        ("{* ../../docs_src/a.py hl[3] *}", "include"),
        ("<<< @/snippets/a.js", "include"),
        ("include::partial$a.adoc[]", "include"),
        ('```py\n--8<-- "a.py"\n```', "include"),
        (".. note:: Text", "directive"),
        ("See :py:class:`Kite`.", "directive"),
        ("See {ref}`kites`.", "directive"),
        ("```{toctree}\na\n```", "directive"),
        ("::: tip\nText.\n:::", "container"),
        ('!!! note "A"\n', "container"),
        ('=== "Tab"', "container"),
        ("/// warning | A", "container"),
        ("> [!NOTE]\n> Text.", "container"),
        ("Text.\n{.wide #a}", "attributes"),
    ],
)
def test_leftover_is_found_with_its_kind(text, kind):
    assert [one.kind for one in leftovers(text)][:1] == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "Use `{{< note >}}` and ``<Card title=a>`` and `{% include %}`.",
        "``` { .dockerfile .annotate }\nRUN\n```",
        "```jsx\n<Tabs>\n  <Tab/>\n</Tabs>\n```\n\n    <Indented />",
        "Put <Name> or <YOUR_KEY> there: `a`, Promise<Response>, List<T>.",
        "The path /users/{id} and {user.name}; ratio 1:2:3; a::b and std::vector.",
        "Title\n=====\n\nText === text. A dict {1: 2}. C++ templates ... and ..",
        "At 10:30: `code`. Use the class: `Kite`.",
        "import the file from your disk\n\nexport it again",
        '<div class="a">Text</div> and a < b > c.',
    ],
)
def test_prose_about_markup_is_no_leftover(text):
    assert list(leftovers(text)) == []
