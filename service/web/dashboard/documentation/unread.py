"""The files of an upload that no one reads, named by kind: a person who sends a manual as PDF is to know at once."""

from collections.abc import Mapping

from service.runtime.zip_files import Unpacked

READ = "Markdown, MDX, reStructuredText, HTML, Jupyter notebooks and OpenAPI descriptions"
"""Kinds of files that are read as pages."""
KINDS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("PDF file", "PDF files"): (".pdf",),
    ("Word document", "Word documents"): (".doc", ".docx", ".odt", ".rtf", ".pages"),
    ("presentation", "presentations"): (".ppt", ".pptx", ".odp"),
    ("spreadsheet", "spreadsheets"): (".xls", ".xlsx", ".ods", ".csv"),
    ("AsciiDoc file", "AsciiDoc files"): (".adoc", ".asciidoc"),
    ("e-book", "e-books"): (".epub", ".mobi"),
    ("archive", "archives"): (".zip", ".tar", ".gz", ".tgz", ".7z", ".rar"),
    ("picture", "pictures"): (
        ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif", ".ico", ".bmp", ".tiff", ".drawio",
    ),
    ("film or sound", "films and sounds"): (".mp4", ".webm", ".mov", ".mp3", ".wav", ".ogg"),
}  # fmt: skip
"""Kinds that have no reader, one and several, by the ends of their names. Other files may be settings, or be included
in pages: what became of those the site's report says, once they were read.
"""
DOCUMENTS = ("PDF", "Word", "presentation", "spreadsheet", "AsciiDoc", "e-book")
"""Beginnings of the names of those that people write documentation in."""


def unread_files(unpacked: Unpacked) -> str:
    """Return sentences about the files of an archive that are not read; empty where there are none."""
    found = {names: sum(unpacked.suffixes.get(one, 0) for one in ends) for names, ends in KINDS.items()}
    parts = [f"{number:,} {one if number == 1 else several}" for (one, several), number in found.items() if number]
    if unpacked.left_out_count:
        links = "symbolic link or special file" if unpacked.left_out_count == 1 else "symbolic links or special files"
        parts.append(f"{unpacked.left_out_count:,} {links}")
    if not parts:
        return ""
    listed = f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]
    hint = " Save documents as Markdown or HTML to have them read." if _has_documents(found) else ""
    return f"Not read: {listed}.{hint}"


def _has_documents(found: Mapping[tuple[str, str], int]) -> bool:
    return any(number and one.startswith(DOCUMENTS) for (one, _), number in found.items())
