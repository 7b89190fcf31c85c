"""A flag, an option or a function: the section that explains it is the first that is found."""

import pytest

from service.markup.terms import names_asked, names_in, term_key
from service.ports.search_index import MaterialRequest
from tests.retrieval.sites import DOMAIN

CREW = {
    "docs/cli.md": "# Command line\n\n| Option | Meaning |\n|---|---|\n| `--row` | rows the boat by hand |\n"
    "| `--keel-depth` | prints the depth |\n| `-q` | says less |\n\n## `--sortByWind`\n\nShuffles.\n\n"
    "## `--harbourPattern=<regex>`\n\nOnly harbours with a name that matches.\n",
    "docs/rowing.md": "# Row a boat\n\nRow a boat to row it. Each row rows a boat. A row is a row of a row.\n\n"
    "## Keel\n\nThe depth of the keel. Depth is kept before the keel is deep.\n",
    "docs/debug.md": "# Debug\n\nPass `--harbourPattern` to debug. Then `--sortByWind` is off, sort by wind by hand.\n",
    "docs/modes.md": "# Modes\n\nIn calm mode the macro `SKIP_ANCHOR` is set while the mate writes the log.\n",
    "docs/skip.md": "# Skip an anchor\n\nTo skip an anchor, skip the step. Anchor skip rules follow. Skip it.\n",
    "docs/config.md": "# Settings\n\n## Cargo\n\nSettings of the cargo.\n\n### `cargo` (required)\n\nType: text.\n\n"
    "### `logo`\n\nThe picture of the ship.\n",
    "docs/logos.md": "# Change the logo\n\nA logo is a logo. Put the logo beside the other logo, logo by logo.\n",
    "docs/pods.md": "# Seal pods\n\nA pod of seals. Pods of seals are seal pods: static, resting, and pods at sea.\n",
    "docs/whales.md": "# Whales\n\n## Seals and pods\n\nNot here.\n\n## Pods\n\nWhales swim in pods.\n",
}


@pytest.fixture
async def crew(indexed):
    await indexed.fill(CREW)
    return indexed


async def first(site, query, **options):
    found = (await site.index.search(DOMAIN, query, **options)).sections
    return found[0].url, found[0].heading


FORMS = ["{}", "`{}`", '"{}"', "“{}”", "What does {} do?", "What is `{}`?", "how do I use {}", "Explain the {} option."]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("term", "url"),
    [
        ("--row", "/cli"),
        ("--keel-depth", "/cli"),
        ("--sortByWind", "/cli#--sortbywind"),
        ("--harbourPattern", "/cli#--harbourpatternregex"),
        ("logo", "/config#logo"),
        ("cargo", "/config#cargo-required"),
    ],
)
async def test_section_of_a_term_is_first(crew, term, url, form):
    assert (await first(crew, form.format(term)))[0] == url


@pytest.mark.parametrize("spelled", ["--sort-by-wind", "sortByWind", "sort_by_wind", "SORT_BY_WIND", "sortbywind"])
async def test_term_is_known_in_any_spelling(crew, spelled):
    assert await first(crew, spelled) == ("/cli#--sortbywind", "--sortByWind")


async def test_row_of_a_term_is_shown_alone(crew):
    assert await first(crew, "--row") == ("/cli", "--row")


@pytest.mark.parametrize(
    "query", ["SKIP_ANCHOR", "`SKIP_ANCHOR`", '"SKIP_ANCHOR"', "skip_anchor", "what is SKIP_ANCHOR"]
)
async def test_name_in_code_goes_before_its_parts(crew, query):
    assert (await first(crew, query))[0] == "/modes"


@pytest.mark.parametrize("query", ["pods", "seal pods", "What are pods?"])
async def test_heading_of_plain_words_leaves_the_pages_order(crew, query):
    assert (await first(crew, query))[0] == "/pods"


async def test_heading_of_plain_words_is_first_on_its_page(crew):
    found = (await crew.index.search(DOMAIN, "Pods")).sections
    assert next(one.heading for one in found if one.path == "docs/whales.md") == "Pods"


async def test_prompt_has_the_section_of_the_term(crew):
    material = await crew.index.find_material(DOMAIN, MaterialRequest(("What does --row do?",), 4_000))
    best = max(material.sections, key=lambda section: section.score)
    assert best.path == "docs/cli.md"


VERSIONED = {
    "site/docusaurus.config.js": "module.exports = {title: 'Ship', url: 'https://ship.test', baseUrl: '/',"
    " presets: [['classic', {docs: {sidebarPath: './sidebars.js'}}]]};\n",
    "site/versions.json": '["2.0", "1.0"]',
    "site/docs/cli.md": "# Command line\n\n## `--tide`\n\nThe tide, the coming tide: --tide.\n\n## `--moon`\n\nNew.\n",
    "site/versioned_docs/version-2.0/cli.md": "# Command line\n\n## `--tide`\n\nHigh or low.\n",
    "site/versioned_docs/version-1.0/cli.md": "# Command line\n\n## `--tide`\n\nHigh.\n\n## `--sail`\n\nUp or down.\n",
    "site/versioned_docs/version-1.0/tide.md": "# Tide\n\nThe --tide of old: tide, tide and --tide.\n",
}


@pytest.mark.parametrize("form", ["{}", "What does {} do?"])
@pytest.mark.parametrize(
    ("term", "url"),
    [("--tide", "/docs/cli#--tide"), ("--moon", "/docs/next/cli#--moon"), ("--sail", "/docs/1.0/cli#--sail")],
)
async def test_current_version_of_a_term_is_first(indexed, term, url, form):
    await indexed.fill(VERSIONED)
    assert (await first(indexed, form.format(term)))[0] == url


async def test_open_version_of_a_term_is_first(indexed):
    await indexed.fill(VERSIONED)
    assert (await first(indexed, "--tide", current_path="/docs/1.0/tide"))[0] == "/docs/1.0/cli#--tide"


LANGUAGES = {
    "mkdocs.yml": "site_name: Ship\nplugins:\n  - i18n:\n      docs_structure: folder\n      languages:\n"
    "        - {locale: en, default: true, name: English}\n        - {locale: es, name: Español}\n"
    "        - {locale: de, name: Deutsch}\n",
    "docs/en/settings.md": "# Settings\n\nThe settings of the ship are in this file.\n\n"
    "## `pagination`\n\nWhether the log has pages.\n\n## `dir`\n\nThe direction of the text.\n",
    "docs/es/settings.md": "# Ajustes\n\nLos ajustes del barco están en este archivo.\n\n"
    "## `pagination`\n\nSi el diario tiene páginas; la página, las páginas y la paginación.\n\n"
    "## `dir`\n\nLa dirección del texto.\n",
    "docs/es/paginas.md": "# Páginas\n\nLa página de las páginas. Cada página es una página del diario.\n\n"
    "## Más\n\nUna página más.\n",
    "docs/de/settings.md": "# Einstellungen\n\nDie Einstellungen des Schiffs stehen in dieser Datei, bei dir.\n\n"
    "## `pagination`\n\nOb das Logbuch Seiten hat.\n\n## `dir`\n\nDie Richtung des Texts, wie sie dir gefällt.\n",
}


@pytest.mark.parametrize("term", ["pagination", "`pagination`", "dir"])
async def test_term_alone_is_no_word_of_another_language(indexed, term):
    await indexed.fill(LANGUAGES)
    found = (await indexed.index.search(DOMAIN, term)).sections[0]
    assert found.path == "docs/en/settings.md"
    assert found.heading == term.strip("`")


@pytest.mark.parametrize(
    ("query", "path"), [("¿Qué hace pagination?", "docs/es/settings.md"), ("Was macht dir?", "docs/de/settings.md")]
)
async def test_question_about_a_term_has_its_own_language(indexed, query, path):
    await indexed.fill(LANGUAGES)
    assert (await indexed.paths(query))[0] == path


@pytest.mark.parametrize(
    ("heading", "names"),
    [
        ("--testNamePattern=<regex>", ["--testNamePattern"]),
        ("getByRole(role, options)", ["getByRole"]),
        ("automock [boolean]", ["automock"]),
        ("-v, --verbose", ["-v", "--verbose"]),
        ("`lineColor`, `rowColor`, and `showBorder`", ["lineColor", "rowColor", "showBorder"]),
        ("`lineColor` & `showBorder`", ["lineColor", "showBorder"]),
        ("vi.mockObject 3.2.0", ["vi.mockObject"]),
        ("The --foo option", ["--foo"]),
        ("Class: Foo<T>", ["Foo"]),
        ("logLevel?: string", ["logLevel"]),
        ("--level string", ["--level"]),
        ("--mode=fast", []),
        ("Note: see below", []),
        ("build and deploy", []),
        ("Static pods", []),
    ],
)
def test_names_of_a_heading(heading, names):
    assert [name for name in names_in(heading) if name != heading] == names


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("What is the --row flag used for?", "--row"),
        ("--row=fast", "--row"),
        ("Was macht --row?", "--row"),
        ("Que fait --row ?", "--row"),
        ("¿Qué hace --row?", "--row"),
        ("--row とは何ですか", "--row"),
        ("什么是 --row", "--row"),
        ("how does useTide() work?", "useTide"),
    ],
)
def test_name_that_a_question_asks_for(question, name):
    assert name in names_asked(question)


def test_long_question_asks_for_no_name():
    assert names_asked("What does --row do " + "and then what else " * 20) == ()


@pytest.mark.parametrize(("one", "other"), [("C++", "C"), ("C#", "C"), ("2.1.0", "2.10"), ("2.10.1", "21.01")])
def test_signs_that_make_another_name(one, other):
    assert term_key(one) != term_key(other)


async def test_heading_of_a_term_goes_before_a_row_of_its_page(indexed):
    rows = "".join(f"| [`{name}`](#{name}) | one of many words about it |\n" for name in ("berth", "mast", "oar"))
    page = f"# Reference\n\n## Quick reference\n\n| Name | Meaning |\n|---|---|\n{rows}\n## `mast`\n\nHolds the sail.\n"
    await indexed.fill({"docs/reference.md": page, "docs/berth.md": "# Berths\n\nA berth is for a ship.\n"})
    for query in ("mast", "What does mast do?", "how do I use `mast`"):
        assert await first(indexed, query) == ("/reference#mast", "mast")


async def test_page_with_a_name_in_its_title_goes_before_pages_that_mention_it(indexed):
    mention = "# {}\n\nPass it through `tide_encoder`, then `tide_encoder` again: the tide and the encoder.\n"
    pages = {f"docs/{name}.md": mention.format(name.title()) for name in ("waves", "winds", "clouds")}
    await indexed.fill({**pages, "docs/reference.md": "# Encoders - `tide_encoder`\n\nWrites a row.\n"})
    for query in ("tide_encoder", "`tide_encoder`", "what is tide_encoder"):
        assert (await first(indexed, query))[0] == "/reference"
