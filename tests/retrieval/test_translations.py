"""The languages of pages, their copies, and the reader's language."""

import json

import pytest

from service.domain.search import SearchFilter
from service.markup.languages.detection import chinese_script, page_language
from service.ports.search_index import MaterialRequest
from service.retrieval.site.translations import Copy, groups_of, text_language
from tests.retrieval.sites import DOMAIN
from tests.retrieval.test_navigation import site_of

ENGLISH = (
    "# Keys\n\nYou can make a key in the settings of your account. It is shown only once, so copy it to a place that is"
    " safe. When you lose it, make another one.\n"
)
GERMAN = (
    "# Schlüssel\n\nEin Schlüssel wird in den Einstellungen des Kontos angelegt. Er wird nur einmal angezeigt, also"
    " kopieren Sie ihn an einen sicheren Ort. Wenn Sie ihn verlieren, legen Sie einen neuen an.\n"
)
FRENCH = (
    "# Clés\n\nVous pouvez créer une clé dans les paramètres de votre compte. Elle ne s'affiche qu'une seule fois, donc"
    " copiez-la dans un endroit sûr. Si vous la perdez, créez-en une autre.\n"
)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (ENGLISH, "en"),
        (GERMAN, "de"),
        (FRENCH, "fr"),
        ("# キー\n\n設定でキーを作成できます。", "ja"),
        ("```yaml\nkey: value\n```\n", ""),
        ("", ""),
    ],
)
def test_language_of_a_page_is_that_of_its_text(text, language):
    assert page_language(text) == language


@pytest.mark.parametrize(
    ("found", "told", "default", "language"),
    [
        ("en", "de", "", "en"),  # an untranslated page
        ("de", "de-AT", "", "de"),
        ("", "pt_BR", "", "pt"),
        ("es", "pt", "", "pt"),  # kindred languages
        ("fr", "", "en", "fr"),
        ("", "", "", "en"),
        ("", "", "de", "de"),
        ("it", "fi", "", "fi"),  # a language without a list of words
        ("en", "python", "", "en"),
    ],
)
def test_language_of_a_text_is_told_or_plainly_other(found, told, default, language):
    assert text_language(found, told, default) == language


SITES = {
    "folders": {"en/guide/a.md": ENGLISH, "de/guide/a.md": GERMAN, "pt-br/guide/a.md": FRENCH},
    "default at the root": {"guide/a.md": ENGLISH, "de/guide/a.md": GERMAN},
    "docusaurus": {
        "docusaurus.config.js": "module.exports = {}",
        "docs/guide/a.md": ENGLISH,
        "i18n/de/docusaurus-plugin-content-docs/current/guide/a.md": GERMAN,
    },
    "docusaurus with versions": {
        "docusaurus.config.js": "module.exports = {}",
        "versions.json": '["2.0", "1.0"]',
        "docs/guide/a.md": ENGLISH,
        "versioned_docs/version-2.0/guide/a.md": ENGLISH,
        "versioned_docs/version-1.0/guide/a.md": ENGLISH,
        "i18n/de/docusaurus-plugin-content-docs/version-2.0/guide/a.md": GERMAN,
    },
    "hugo": {
        "hugo.toml": "defaultContentLanguage = 'en'",
        "content/guide/a.md": ENGLISH,
        "content/guide/a.de.md": GERMAN,
    },
    "hugo with folders": {
        "hugo.toml": "defaultContentLanguage = 'en'",
        "content/en/guide/a.md": ENGLISH,
        "content/de/guide/a.md": GERMAN,
    },
}


@pytest.mark.parametrize("name", SITES)
def test_copies_of_a_page_share_a_key(name):
    keys = {page.copy_key for page in site_of(SITES[name]).pages.values()}
    assert len(keys) == 1


def test_two_pages_have_two_keys():
    pages = site_of({"en/a.md": ENGLISH, "en/b.md": ENGLISH, "en/sub/a.md": ENGLISH}).pages.values()
    assert len({page.copy_key for page in pages}) == 3


def test_folder_with_a_code_for_a_name_is_no_language():
    def page(language, text, content):
        return Copy("/a", language, "", text, content)

    assert groups_of({1: page("", "en", b"1"), 2: page("id", "en", b"2")}) == {}
    assert groups_of({1: page("", "en", b"1"), 2: page("id", "en", b"1")}) == {1: 1, 2: 1}
    assert groups_of({1: page("", "en", b"1"), 2: page("id", "id", b"2")}) == {1: 1, 2: 1}


UNTRANSLATED = (
    "# Webhooks\n\nA webhook is sent to your server when a job ends. It has a signature in one of its headers.\n"
)
TRANSLATED = {
    "en/keys.md": ENGLISH,
    "de/keys.md": GERMAN,
    "fr/keys.md": FRENCH,
    "en/webhooks.md": UNTRANSLATED,
    "de/webhooks.md": UNTRANSLATED,
    "en/limits.md": "# Limits\n\nYou can make ten requests in a second with a key; more of them are refused.\n",
}


@pytest.fixture
async def translated(indexed):
    await indexed.fill(TRANSLATED)
    return indexed


@pytest.mark.parametrize(
    ("query", "options", "first"),
    [
        ("How do I make a key?", {}, "en/keys.md"),
        ("Wie lege ich einen Schlüssel an?", {}, "de/keys.md"),
        ("Comment créer une clé ?", {}, "fr/keys.md"),
        ("keys", {}, "en/keys.md"),
        ("Schlüssel", {}, "de/keys.md"),
        ("key", {"filter": SearchFilter(language="de")}, "de/keys.md"),
        ("How do I make a key?", {"filter": SearchFilter(language="fr")}, "fr/keys.md"),
        ("How do I make a key?", {"current_path": "/de/webhooks"}, "de/keys.md"),
        ("webhook signature", {"filter": SearchFilter(language="de")}, "de/webhooks.md"),
        ("webhook signature", {}, "en/webhooks.md"),
        ("webhook signature", {"filter": SearchFilter(language="fr")}, "en/webhooks.md"),
        ("requests in a second", {"filter": SearchFilter(language="fr")}, "en/limits.md"),
        ("Welche Limits gibt es?", {}, "en/limits.md"),
        ("kopier", {"prefix": True}, "de/keys.md"),
        ("kopier", {"prefix": True, "filter": SearchFilter(language="de")}, "de/keys.md"),
    ],
)
async def test_copies_are_one_result_for_the_reader(translated, query, options, first):
    paths = await translated.paths(query, **options)
    assert paths[0] == first
    names = [path.partition("/")[2] for path in paths]
    assert len(names) == len(set(names))


async def test_material_has_one_copy_of_a_page(translated):
    request = MaterialRequest(("How do I make a key?", "Schlüssel anlegen"), 4_000)
    material = await translated.index.find_material(DOMAIN, request)
    assert {section.path for section in material.sections} <= {"en/keys.md", "en/limits.md", "en/webhooks.md"}
    assert material.sections[0].path == "en/keys.md"


async def test_copy_is_shown_only_to_its_readers(indexed):
    await indexed.fill({"en/keys.md": ENGLISH, "de/keys.md": f"---\ngroups: [staff]\n---\n{GERMAN}"})
    german = SearchFilter(language="de")
    assert await indexed.paths("make a key", filter=german) == ["en/keys.md"]
    staff = SearchFilter(language="de", groups=("staff",))
    assert await indexed.paths("make a key", filter=staff) == ["de/keys.md"]


async def test_other_versions_come_after_all_pages(indexed):
    keys = "# Keys\n\nMake a key in the settings. A key is a key.\n"
    config = {"docusaurus.config.js": "module.exports = {}", "versions.json": '["2.0", "1.0"]'}
    await indexed.fill(
        {
            **config,
            "versioned_docs/version-2.0/keys.md": keys,
            "versioned_docs/version-1.0/keys.md": keys,
            "versioned_docs/version-2.0/other.md": "# Other\n\nThere is more, and at its end also a key.\n",
        }
    )
    folder = "versioned_docs/version"
    assert await indexed.paths("key") == [f"{folder}-2.0/keys.md", f"{folder}-2.0/other.md", f"{folder}-1.0/keys.md"]
    assert await indexed.paths("key", current_path="/docs/1.0/keys") == [
        f"{folder}-1.0/keys.md", f"{folder}-2.0/other.md", f"{folder}-2.0/keys.md"
    ]  # fmt: skip


@pytest.mark.parametrize(("text", "language"), [("如何建立專案與設定", "zh-hant"), ("如何创建项目并设置", "zh")])
def test_script_of_chinese(text, language):
    assert chinese_script(text) == language


async def test_explanation_has_the_languages_of_a_page(translated):
    found = await translated.index.search(DOMAIN, "webhook signature", filter=SearchFilter(language="de"), explain=True)
    why = found.sections[0].explanation
    assert (why.language, why.site_language, why.reader_language, why.copies) == ("en", "de", "de", 1)
    assert found.sections[0].language == "en"


async def test_material_names_the_readers_language(translated):
    request = MaterialRequest(("Welche Limits gibt es für einen Schlüssel?",), 4_000)
    material = await translated.index.find_material(DOMAIN, request)
    assert material.language == "de"
    assert {section.language for section in material.sections if section.path == "en/limits.md"} <= {"en"}


async def test_languages_of_a_navigation_are_no_older_versions(indexed):
    navigation = {"languages": [{"language": "en", "pages": ["a"]}, {"language": "de", "pages": ["de/a", "de/b"]}]}
    docs = {"name": "X", "navigation": navigation}
    await indexed.fill({"docs.json": json.dumps(docs), "a.mdx": ENGLISH, "de/a.mdx": GERMAN, "de/b.mdx": GERMAN})
    found = await indexed.index.search(DOMAIN, "Wo werden Schlüssel angezeigt?", explain=True)
    assert [section.explanation.place for section in found.sections] == [1.0, 1.0]


async def test_one_page_in_another_language_makes_no_site_in_two(indexed):
    await indexed.fill({"fr.md": FRENCH, **{f"{number}.md": ENGLISH for number in range(60)}})
    found = await indexed.index.search(DOMAIN, "Comment créer une clé ?", explain=True)
    assert found.sections[0].path == "fr.md"
    assert found.sections[0].explanation.reader_language == ""


async def test_navigation_of_each_language_makes_no_older_version(indexed):
    config = "site_name: S\nnav:\n- Keys: keys.md\n"
    await indexed.fill(
        {
            "docs/en/mkdocs.yml": config,
            "docs/en/docs/keys.md": ENGLISH,
            "docs/de/mkdocs.yml": "INHERIT: ../en/mkdocs.yml\n",
            "docs/de/docs/keys.md": GERMAN,
            "docs/de/docs/notes.md": "# Notizen\n\nDas ist eine Seite, die nicht in der Navigation steht.\n",
        }
    )
    found = await indexed.index.search(DOMAIN, "Wo werden Schlüssel angezeigt?", explain=True)
    assert [(one.path, one.explanation.place) for one in found.sections[:1]] == [("docs/de/docs/keys.md", 1.0)]


async def test_word_that_only_a_translation_has_finds_nothing_for_a_prompt(indexed):
    """The page is shown in the reader's language, in which it does not match; that ended the answer."""
    await indexed.fill(
        {
            "docs/en/mkdocs.yml": "site_name: x",
            "docs/de/mkdocs.yml": "site_name: x",
            "docs/en/docs/index.md": "# Ships\n\nA ship leaves the harbour in the morning.\n",
            "docs/de/docs/index.md": "# Schiffe\n\nEin Schiff verlässt den Hafen am Morgen. Hier steht origami.\n",
        }
    )
    material = await indexed.index.find_material(DOMAIN, MaterialRequest(("fold an origami crane",), 2_000))
    assert not [section for section in material.sections if section.language == "de"]
