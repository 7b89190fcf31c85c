"""MkDocs sites: which files are pages, in which order, where, and what a page shows."""

from service.retrieval.site.navigation import detect_layout, make_site
from service.retrieval.site.pages import PageReader


def site_of(files):
    data = {name: text.encode() for name, text in files.items()}
    layout = detect_layout(data, data.get)
    assert layout.kind == "mkdocs"
    reader = PageReader(layout, lambda name, limit: data[name][:limit] if name in data else None)
    return make_site(layout, [reader.page(name) for name in sorted(data) if layout.is_page(name)], data)


def listed(files):
    pages = sorted(site_of(files).pages.values(), key=lambda page: (page.order < 0, page.order, page.path))
    return [(page.url, page.title, page.language) for page in pages]


def test_folders_of_languages_are_one_site():
    config = "site_name: S\nsite_url: https://x.y/docs/\ntheme: {language: en}\nnav:\n- Home: index.md\n- a.md\n"
    files = {
        "docs/de/mkdocs.yml": "INHERIT: ../en/mkdocs.yml\n",
        "docs/en/mkdocs.yml": config + "extra:\n  alternate:\n  - {link: /docs/, name: en}\n",
        "docs/fr/mkdocs.yml": "INHERIT: ../en/mkdocs.yml\nsite_url: https://x.y/docs/francais/\n",
        **{
            f"docs/{name}/docs/{page}.md": f"# {page} {name}\n"
            for name in ("en", "de", "fr", "zh-hant")
            for page in "ab"
        },
        "docs/en/docs/index.md": "# Welcome\n",
        "docs/de/docs/index.md": "# Willkommen\n",
        "docs/parts/docs/a.md": "# No language\n",
    }
    assert listed(files) == [
        ("/", "Home", "en"),
        ("/a", "a en", "en"),
        ("/de", "Willkommen", "de"),
        ("/de/a", "a de", "de"),
        ("/francais/a", "a fr", "fr"),
        ("/zh-hant/a", "a zh-hant", "zh-hant"),
        ("/de/b", "b de", "de"),
        ("/b", "b en", "en"),
        ("/francais/b", "b fr", "fr"),
        ("/zh-hant/b", "b zh-hant", "zh-hant"),
    ]
