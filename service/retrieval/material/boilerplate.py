"""Sections that say little: what stands on many pages beside their subject.

The rules look at headings and at the form of a text, never at the subject of a site. A section that they name is left
out of a prompt unless the question asks for that very thing ("what changed in the last release?", "which license?").
"""

import re
from functools import lru_cache

from msgspec import Struct

from service.markup.blocks import has_code
from service.markup.prose import words_of
from service.ports.search_index import Section

SHORT = 300
"""Characters; a shorter section says little by itself, though it may hold the one value that was asked for."""
LEAST_WORD = 5
"""Letters that a word of a heading shares with the question."""
MAX_LINKS_CHARACTERS = 20_000
KEPT_NAMES = 4_096
"""Places of sections that are known to be of a change log or not."""

_POINTERS = re.compile(
    r"(?:see also|see more|next steps?|what.?s next|where to go (?:next|from here)|related(?: \w+){0,3}|further reading"
    r"|read(?:ing)? more|learn more|more (?:information|resources|reading|help)|additional (?:resources|reading)"
    r"|(?:external |useful |helpful )?(?:links|resources|references)|references and (?:further )?\w+"
    r"|what you(?:.ll| will) (?:learn|need to know|build|do)|(?:learning )?objectives"
    r"|in this (?:guide|article|section|page)"
    r"|on this page|(?:table of )?contents|toc|feedback|was this (?:page )?helpful|edit this page|contributors"
    r"|need help|get(?:ting)? help|questions|support|community|credits|acknowledge?ments|license|specifications?"
    r"|browser compatibility|siehe auch|nächste schritte|voir aussi|étapes suivantes|véase también|próximos pasos"
    r"|veja também|próximos passos|参照|関連項目|次のステップ|参考|相关链接|下一步|다음 단계|같이 보기)",
    re.IGNORECASE,
)  # fmt: skip
_HISTORY = re.compile(
    r"(?:(?:[\w.&-]+ ){0,3}(?:change ?logs?|release notes?|release history|version history)"
    r"|what.?s new(?: in .{1,40})?|unreleased"
    r"|(?:[\w.&-]+ ){0,3}v?\d+\.\d+(?:\.\d+)?\S{0,20} \(.{0,30}\b\d{4}\b.{0,12}\)"
    r"|(?:version |release )?v?\d+\.\d+(?:\.\d+)?\S{0,20}(?: [-–(].{0,20}\d{4}.{0,12})?"  # noqa: RUF001
    r"|更新履歴|变更日志|变更记录|registro de cambios|journal des modifications|änderungsprotokoll)",
    re.IGNORECASE,
)
_ASKS_HISTORY = re.compile(
    r"(?<![\w-])(?:change ?log|release|released|version|versions|changed|changes|new in|since when|deprecat\w*"
    r"|upgrad\w*|migrat\w*|breaking|v?\d+\.\d+|since (?:which|what)|seit wann|depuis quand|desde cuándo)\b"
    r"|\bwhen (?:was|were|did)\b.{1,80}\b(?:added|introduced|removed|dropped|renamed|appear)\b",
    re.IGNORECASE,
)
_POST = re.compile(r"(?:^|/)(?:_?posts?|blogs?|news|announcements?)/", re.IGNORECASE)
_RELEASE = re.compile(
    r"\b(?:announc(?:e|es|ed|ing|ement)|releas(?:e|es|ed|ing)|is out|what.?s new|beta|rc)\b"
    r"|\bv?\d{1,4}(?:[.-]\d{1,4}){1,4}\b(?![-/])"
    r"|[a-z]-?\d{1,3}(?:-\d{1,3})?(?:\.mdx?)?$|\b\w{1,40} \d{1,3}(?:[:!]|$)",
    re.IGNORECASE,
)
_MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_ASKS_RELEASES = re.compile(
    r"(?<![\w-])(?:change ?log|releas(?:e|es|ed)|announc\w*|what.?s new|new in|blog|news|v?\d+\.\d+)\b"
    rf"|\b{_MONTH}\.? (?:\d{{1,2}},? )?\d{{4}}\b|\b\d{{4}}-\d\d-\d\d\b",
    re.IGNORECASE,
)
_COOKIES = re.compile(
    r"\bcookies?\b.{0,200}\b(?:accept|consent|agree|preferences|privacy)\b", re.IGNORECASE | re.DOTALL
)
_LINK = re.compile(
    r"!?\[([^\]\n]{0,300})\]\([^)\n]{0,500}\)|`[^`\n]{0,200}`_{1,2}|:(?:ref|doc):`[^`\n]{0,200}`|<https?://[^>\s]{1,300}>"
)
_FILE_OF_HISTORY = re.compile(
    r"(?:^|[/_.-])(?:change-?logs?|release[-_]?notes?|whats-?new)(?:\b|_)|(?:^|/)(?:changes|history|news)\.[a-z]{2,4}$",
    re.IGNORECASE,
)


def asks_for_history(question: str) -> bool:
    """Return whether a question is about versions and what changed in them."""
    return _ASKS_HISTORY.search(question) is not None


class Traits(Struct, frozen=True, gc=False):
    """The judgement of a section by its headings and text alone, for any question."""

    is_blank: bool
    """It has no words, or asks for consent to cookies."""
    points_elsewhere: bool
    """It only leads to other pages, or says what a page is going to say."""
    is_history: bool
    """It is a part of a change log or of release notes."""
    subjects: tuple[str, ...]
    """How the longer words of its heading begin."""

    def say_little(self, asked: str, *, of_history: bool) -> bool:
        """Return whether the section would only take the place of another one in a prompt. ``asked``: the question in
        lower case; ``of_history``: it is about versions (``asks_for_history``).
        """
        if self.is_blank or (self.is_history and not of_history):
            return True
        return self.points_elsewhere and not any(subject in asked for subject in self.subjects)


def traits_of(section: Section) -> Traits:
    """Return the traits of a section."""
    heading = section.heading.strip(" :#*?!.…")
    return Traits(
        is_blank=is_empty(section.text) or is_banner(section.text),
        points_elsewhere=_points_elsewhere(heading, section.text),
        is_history=says_history(section.path, (section.title, *section.heading_path)),
        subjects=tuple(word[:LEAST_WORD] for word in heading.casefold().split() if len(word) >= LEAST_WORD),
    )


def _points_elsewhere(heading: str, text: str) -> bool:
    if heading and _POINTERS.fullmatch(heading) and len(_without_links(text)) < SHORT:
        return not has_code(text)
    return is_list_of_links(text)


def is_list_of_links(text: str) -> bool:
    """Return whether a text is links, with hardly a word of its own."""
    if len(text) > MAX_LINKS_CHARACTERS or text.count("](") + text.count("`_") + text.count("://") < 3:
        return False
    links = _LINK.findall(text)
    if len(links) < 3:
        return False
    own = re.sub(r"\W+", "", _without_links(text))
    linked = re.sub(r"\W+", "", "".join(links))
    return len(own) < len(linked) // 2 and not has_code(text)


def _without_links(text: str) -> str:
    return " ".join(_LINK.sub("", text[:MAX_LINKS_CHARACTERS]).split())


def is_release_post(path: str, title: str) -> bool:
    """Return whether a page is news of a release: its words are often those of a guide, which is newer."""
    return _POST.search(path) is not None and (_RELEASE.search(title) or _RELEASE.search(path)) is not None


def asks_for_releases(question: str) -> bool:
    """Return whether a question is about releases themselves, or names a day or a month, as news do."""
    return _ASKS_RELEASES.search(question) is not None


@lru_cache(KEPT_NAMES)
def says_history(path: str, headings: tuple[str, ...]) -> bool:
    """Return whether a file's name, or a title or heading, is that of a change log or of release notes."""
    return _FILE_OF_HISTORY.search(path) is not None or any(_HISTORY.fullmatch(one.strip()) for one in headings)


def is_banner(text: str) -> bool:
    """Return whether a text asks for consent to cookies."""
    return len(text) < 4 * SHORT and _COOKIES.search(text) is not None


def is_empty(text: str) -> bool:
    """Return whether a text has no words that a reader would see."""
    return len(text) < SHORT and not any(map(str.isalnum, words_of(text)))
