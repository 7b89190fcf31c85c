"""Why a result has its place, in words."""

from service.markup.languages.detection import NAMES, known_language
from service.ports.search_index import Explanation


def explained(why: Explanation) -> str:
    """Return ``7.12 points: body 4.1, title 3.0; looked for: …``"""
    parts = {
        "body": why.body,
        "heading": why.heading,
        "title": why.title,
        "names in links": why.links,
        "whole page": why.text,
        "further sections": why.further_sections,
        "neighbouring words": why.pairs,
    }
    gave = sorted(((value, name) for name, value in parts.items() if value > 0), reverse=True)
    text = f"{why.points:.2f} points: {', '.join(f'{name} {value:.2f}' for value, name in gave)}"
    if why.place != 1:
        text += f"; times {why.place:.2f} for its place"
    if why.meaning_rank:
        text += f"; {why.word_rank}. by words, {why.meaning_rank}. by meaning"
    text += _languages(why)
    text += f"; looked for: {', '.join(why.words)}"
    return text + "".join(f"; {typed} read as {term}" for typed, term in why.corrected.items())


def _languages(why: Explanation) -> str:
    """Return ``; in English, in the folder of de, for readers of de; stands for 12 copies``"""
    if not why.reader_language and not why.copies:
        return ""
    text = f"; in {NAMES.get(why.language, why.language or 'no known language')}"
    if why.site_language and known_language(why.site_language) != why.language:
        text += f", at a place for {why.site_language}"
    if why.reader_language:
        text += f", for readers of {why.reader_language}"
    return text + (f"; stands for {why.copies + 1} copies" if why.copies else "")
