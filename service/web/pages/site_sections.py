"""The sections of a documentation page as HTML. Others wrote them: all of it runs in a child process."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import escape

from service.ports.search_index import Section
from service.web.pages.rendering import clipped, visible

if TYPE_CHECKING:  # 20 ms, for which a start does not wait
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict


def render_sections(sections: Sequence[Section]) -> list[str]:
    """Return the HTML of a page's sections in pieces: every second one is the target of a link, which begins there."""
    from service.markup.parsers import prepared
    from service.web.pages.safe_markdown import page_parser

    parser = page_parser()
    parser.add_render_rule("link_open", _target)
    parser = prepared(parser)
    html: list[str] = []
    for section in sections:
        anchor = section.url.partition("#")[2]
        html.append(f'<section id="{escape(anchor)}">' if anchor else "<section>")
        if section.heading and (anchor or section.heading != section.title):
            level = min(max(len(section.heading_path), 1) + 1, 6)
            html.append(f"<h{level}>{escape(clipped(visible(section.heading)))}</h{level}>")
        html.append(f"{parser.render(visible(section.text))}</section>\n")
    return "".join(html).split("\0")


def _target(
    _renderer: "RendererHTML", tokens: "Sequence[Token]", index: int, _options: "OptionsDict", _env: "EnvType"
) -> str:
    return f"\0{escape(str(tokens[index].attrs.get('href', '')))}\0"
