"""Which sentences claim something about what is documented: only those are judged."""

import re

_QUESTION = re.compile(r"[?？][\"')\]*_]*\s*\Z")  # noqa: RUF001
_SILENT = re.compile(
    r"\b(?:"
    r"(?:documentation|docs|passages?|pages?|sources?|material|excerpts?)\b[^.]{0,80}"
    r"\b(?:do(?:es)?\s*n[o']t|do(?:es)? not|no|nothing|never|isn't|aren't)\b"
    r"|(?:could|can|did)(?:n't| ?not) find|(?:not|n't) (?:mentioned|documented|covered|described|specified|stated|find)"
    r"|no (?:mention|information|documentation|passage)|I(?:'m| am) not (?:sure|certain)|I don't (?:know|have)"
    r"|Dokumentation\b[^.]{0,80}\b(?:nicht|keine?n?)|nicht (?:erwähnt|dokumentiert|beschrieben)"
    r"|documentation\b[^.]{0,80}\b(?:ne|pas|aucune?)\b|n'est pas (?:mentionné|documenté|décrit)"
    r"|documentación\b[^.]{0,80}\bno\b"
    r")|(?:ドキュメント|文書|資料)[^。]{0,60}(?:ありません|ない|ません)|記載(?:されて)?(?:いない|いません|は?ありません)",
    re.IGNORECASE,
)
_TALK = re.compile(
    r"(?:[>*_\s-]*)(?:"
    r"(?:hi|hello|hey|sure|great|good|thanks|thank you|of course|certainly|absolutely|you're welcome|happy to|glad|hope"
    r"|yes|no|ok|okay)\b[^.]{0,60}[.!]?\s*\Z"
    r"|(?:let me know|feel free|if you (?:need|want|have|would like|tell|share|let) (?:more|further|help|any|me)"
    r"|would you|do you|could you|please (?:let|share|tell|provide)|for more|see also|see the|see\b|related|learn more"
    r"|check out|sources?:|read more|want me|i can|i'd)\b"
    r"|(?:hallo|guten|gerne|natürlich|ja|nein|bonjour|bien sûr|oui|non|hola|claro)\b[^.]{0,40}[.!]?\s*\Z"
    r"|(?:sagen sie|sag mir|n'hésitez|siehe|voir|weitere informationen|pour plus)\b"
    r"|(?:こんにちは|もちろん|はい|いいえ|詳しくは|詳細は)"
    r")",
    re.IGNORECASE,
)
_CODE = re.compile(r"`[^`\n]{1,500}`|\]\([^()\s]{0,2000}\)")
_TITLE = re.compile(r"(?:#{1,6}\s|\*\*[^*]{1,200}\*\*\s*\Z)")
_LEAD = re.compile(r"[:：]\s*+(?:[*_]++\s*+)?\Z")  # noqa: RUF001


def is_question(text: str) -> bool:
    return _QUESTION.search(text) is not None


def is_silence(text: str) -> bool:
    """Return whether the sentence says that the documentation does not say something."""
    return _SILENT.search(text) is not None


def is_talk(text: str) -> bool:
    """Return whether the sentence greets, offers, suggests or points elsewhere."""
    return _TALK.match(text) is not None


def is_title(text: str) -> bool:
    """Return whether the words name or announce what follows, rather than say something of it."""
    return is_lead(text) or is_heading(text)


def is_heading(text: str) -> bool:
    """Return whether the words are a heading, or bold like one."""
    return _TITLE.match(text.strip()) is not None


def is_lead(text: str) -> bool:
    """Return whether the sentence announces what follows."""
    return _LEAD.search(text) is not None


def without_code(text: str) -> str:
    return _CODE.sub(" ", text)
