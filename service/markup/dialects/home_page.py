"""The home page of VitePress, whose text is in its front matter: ``layout: home``, ``hero`` and ``features``
(vitepress.dev/reference/default-theme-home-page).
"""

import re
from collections.abc import Mapping

from service.markup.front_matter import FrontMatter, text_field

MAX_ITEMS = 100
"""Features, or buttons."""
_TAG = re.compile(r"<[^<>]{0,500}>")


def hero_name(front_matter: FrontMatter) -> str:
    """Return the name that a home page shows as its heading; empty for other pages."""
    return _text(_mapping(front_matter.get("hero")), "name") if text_field(front_matter, "layout") == "home" else ""


def home_text(front_matter: FrontMatter) -> str:
    """Return what a home page shows above its own text, as Markdown; empty for other pages."""
    if text_field(front_matter, "layout") != "home":
        return ""
    hero = _mapping(front_matter.get("hero"))
    shown = [" ".join(filter(None, (_text(hero, "name"), _text(hero, "text")))), _text(hero, "tagline")]
    shown += [_linked(_text(each, "text"), _text(each, "link")) for each in _list(hero.get("actions"))]
    for feature in _list(front_matter.get("features")):
        title = _linked(_text(feature, "title"), _text(feature, "link"))
        shown.append(
            " ".join(
                filter(None, (f"**{title}**" if title else "", _text(feature, "details"), _text(feature, "linkText")))
            )
        )
    return "\n\n".join(filter(None, shown))


def _mapping(value: object) -> Mapping[str, object]:
    return {str(key): each for key, each in value.items()} if isinstance(value, dict) else {}


def _list(value: object) -> list[Mapping[str, object]]:
    return [_mapping(each) for each in value[:MAX_ITEMS]] if isinstance(value, list) else []


def _text(values: Mapping[str, object], name: str) -> str:
    return _TAG.sub("", text_field(values, name)).strip()


def _linked(text: str, link: str) -> str:
    return f"[{text}]({link})" if text and link and " " not in link else text
