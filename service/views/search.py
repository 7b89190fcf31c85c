"""Results of a site's search, and its pages as text."""

from typing import Annotated

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict

from service.domain.search import path_on_site
from service.ports.search_index import Range, Section
from service.views.fields import Reference, described

MAX_RESULT_CHARACTERS = 20_000


class Highlight(Struct, frozen=True):
    """A word that was found, as JavaScript's `slice` takes it: characters are counted in UTF-16 units."""

    start: Annotated[int, described("Its first character, from 0.")]
    end: Annotated[int, described("The character after its last.")]


class HighlightsView(Struct, frozen=True):
    """Where the words that were looked up stand."""

    title: Annotated[tuple[Highlight, ...], described("In `metadata.title`.")]
    heading: Annotated[tuple[Highlight, ...], described("In `metadata.heading`.")]
    content: Annotated[tuple[Highlight, ...], described("In `content`.")]


class ResultMetadata(Struct, frozen=True, rename="camel"):
    """Where a section is from."""

    title: Annotated[str, described("The page's title.")]
    url: Annotated[Reference, described("Where the section is on the site, anchor included.")]
    score: Annotated[float, described("0 to 1, the best result being 1; to be compared within one answer only.")]
    heading: Annotated[str, described("The section's heading; empty above a page's first one.")]
    heading_path: Annotated[tuple[str, ...], described("The headings above it, the outermost first.")]
    start_line: Annotated[int, described("Where it begins in the file, from 1.")]
    end_line: Annotated[int, described("Where it ends in the file.")]
    file: Annotated[str, described("The path of its file in the repository: the page's, or one that the page shows.")]
    commit: Annotated[str, described("The commit of the repository that it was read from.")]
    language: Annotated[str, described("The language of the text, such as `de`.")] = ""
    highlights: Annotated[
        HighlightsView | UnsetType, described("When the search asked for them: the words that were found, as ranges.")
    ] = UNSET


class SearchResult(Struct, frozen=True):
    """A section of a page."""

    content: Annotated[str, described("Its text as Markdown.")]
    path: Annotated[str, described("The page's path on the site, without the leading slash.")]
    metadata: ResultMetadata


class ExplanationView(Struct, frozen=True, rename="camel"):
    """Where a section's place in a result comes from: points, which ``place`` multiplies."""

    points: Annotated[float, described("All of the following together, multiplied by `place`.")]
    title: Annotated[float, described("Points of the page's title.")]
    links: Annotated[float, described("Points of the names that other pages have for it.")]
    text: Annotated[float, described("Points of the whole page as one text.")]
    heading: Annotated[float, described("Points of the section's heading.")]
    body: Annotated[float, described("Points of the section's text.")]
    further_sections: Annotated[float, described("Points of the page's further sections.")]
    pairs: Annotated[float, described("Points of neighbours of the question that stand side by side.")]
    place: Annotated[
        float,
        described(
            "Over 1 for a page that others link to; under 1 for older versions, change logs, and other languages than"
            " the reader's."
        ),
    ]
    word_rank: Annotated[int, described("The page's place by its words, from 1.")]
    meaning_rank: Annotated[
        int,
        described("By its meaning; 0 when meanings are not compared, or it was not among the first."),
    ]
    language: Annotated[str, described("The language of its text.")]
    site_language: Annotated[str, described("The language that the site says its page is in; may be empty.")]
    reader_language: Annotated[str, described("The language that pages were ranked for; may be empty.")]
    copies: Annotated[int, described("Translations and other versions of its page, which the page stands for.")]
    words: Annotated[tuple[str, ...], described("The words as they were looked up.")]
    corrected: Annotated[
        dict[str, str],
        described("Words that were typed and are not on the site, with the words that were looked up instead."),
    ]


class ExplainedResult(SearchResult, frozen=True):
    """A section, with what gave it its place."""

    explanation: Annotated[ExplanationView, described("What gave it its place.")]


class ExplainedResults(Struct, frozen=True):
    """The result of a search, with its reasons."""

    commit: Annotated[str, described("The commit that is indexed.")]
    results: Annotated[tuple[ExplainedResult, ...], described("Sections, best first.")]


class PageMetadata(Struct, frozen=True):
    """Where a page is from."""

    title: Annotated[str, described("The page's title.")]
    url: Annotated[Reference, described("Where it is on the site.")]
    path: Annotated[str, described("Its path on the site, without the leading slash.")]
    file: Annotated[str, described("Its path in the repository.")]


class PageView(Struct, frozen=True):
    """A page."""

    path: Annotated[str, described("As it was asked for.")]
    content: Annotated[str, described("Its text as Markdown.")]
    metadata: PageMetadata


def search_result(section: Section, commit: str) -> SearchResult:
    found = section.highlights
    return SearchResult(
        section.text[:MAX_RESULT_CHARACTERS],
        path_on_site(section.url),
        ResultMetadata(
            section.title, section.url, section.score, section.heading, section.heading_path, section.start_line,
            section.end_line, section.path, commit, section.language,
            HighlightsView(_ranges(found.title), _ranges(found.heading), _ranges(found.text)) if found else UNSET,
        ),
    )  # fmt: skip


def explained_result(section: Section, commit: str) -> ExplainedResult:
    """Return a result of a search that was asked to explain."""
    assert section.explanation is not None
    found = asdict(section.explanation)
    why = ExplanationView(**{**found, "corrected": dict(found["corrected"])})
    return ExplainedResult(**asdict(search_result(section, commit)), explanation=why)


def _ranges(ranges: tuple[Range, ...]) -> tuple[Highlight, ...]:
    return tuple(Highlight(start, end) for start, end in ranges)
