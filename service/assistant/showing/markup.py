"""Make a model's text safe to show, while it flows: no raw HTML, no address that is not from its material.

A page of the documentation, or a reader, may make a model write ``<img src=…?q=…>`` or a link whose address carries
away what was said. So, outside of code:

- Tags, comments and declarations are shown as text: ``<`` becomes ``&lt;``. A few that have no attributes and only set
  text (``<br>``, ``<kbd>``) stay, inside of a line.
- A link keeps its address when it leads to a page of the site, or when the documentation, the reader or the site's
  owner wrote that very address. One that means a page of the site gets its address (``addresses``). Every other loses
  it and its words stay. So no ``javascript:`` and the like ever gets out.
- A bare address that chat clients would make a link of stays under the same rule; else it is shown as code, which can
  be read and copied as well, and is never followed by accident.
- An image is one of the site itself, or becomes a link.

Code passes byte for byte: fenced blocks in lists and quotes too, and spans within one line. Where it depends on the
reader whether something is code (``lines``), or where a span does not end on its line, its backticks are escaped, so
that it is text for every reader. Text that is indented by four blanks counts as text.

What is held back: a tag, an address, a link's words, a code span, to their ends; never more than some hundred
characters, and never across a line, except for a fence's own line. The result does not depend on where the chunks were
cut: each step looks at the text from where it stands, and waits as long as more of it could change what it does.
"""

import re
from collections.abc import Callable
from html import unescape

from service.assistant.showing.outgoing import Outgoing
from service.markup.streaming import lines, links
from service.markup.streaming.code import MAX_SPAN, Fence, FenceLine, fence_line, place_of_fence, run_of, span_of

MAX_ADDRESS = 500
MAX_FENCE_LINE = 200
_PIECE_CHARACTERS = 1_000
_BEGIN_HEAD = " \t>-*+0123456789"

_BACKSLASH = "\\"
_NO_WIDTH = "\u200b"
# The look ahead spares most letters the alternatives.
_SPECIAL = re.compile(rf"[\\`~\[\]<!&@\n]|(?=[hfw:.])(?:{links.SCHEME}|{links.IN_WORD})", re.IGNORECASE)
_QUIET = re.compile(r"(?:[^\\`~\[\]<!&@\n:/.]|(?<![wW])\.|(?<= )@)+")
"""Neither anything special, nor an address, nor the end of what may begin one, but for its last letters. A word that
begins with ``@`` is none.
"""
_PLAIN_LABEL = re.compile(r"(?!.*\b(?:www|https?|ftp)$)(?:\w|\w[\w ,.'+/-]*\w|(`+)[^`]+\1)", re.IGNORECASE)
"""Words that mean the same without their brackets."""

_HARMLESS = re.compile(r"<(?:br ?/?|/?(?:kbd|sub|sup))>", re.IGNORECASE)
_HARMLESS_BEGUN = re.compile(r"<(?:br? ?/?|/?(?:k(?:bd?)?|s(?:u[bp]?)?)?)\Z", re.IGNORECASE)
_ENTITY = re.compile(r"&#?\w{1,32};")
_ENTITY_BEGUN = re.compile(r"&#?\w{0,32}\Z")
_LETTER = re.compile(r"[A-Za-z]")
_TABLE_RULE = re.compile(r"[ \t>|:-]*")
_CELL_END = re.compile(r"(?<!\\)\|")
_ESCAPABLE = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_FIRST_OF_RULE = re.compile(r"[|:-]")


class MarkupGuard:
    """Feed it text with its citations resolved, then ``finish``; send what they return."""

    def __init__(self, is_allowed_url: Callable[[str], bool], resolve: links.Resolve | None = None) -> None:
        """``is_allowed_url``: whether an address that is not of the site itself may be shown as a link."""
        self._is_allowed_url = is_allowed_url
        self._resolve = resolve or links.as_written(is_allowed_url)
        self._buffer = ""
        self._out = Outgoing()
        self._read = ""
        """The last six that were read: of what may be a scheme, with the character before it."""
        self._line = ""
        """The line of the text so far, as it was read."""
        self._before = lines.START
        """The place of the line before."""
        self._fence: Fence | None = None
        self._in_code_line = False
        """In a fenced block, behind the beginning of a line."""
        self._is_table = False
        self._may_be_head = False
        """The line before has a code span over what would be several cells, if it were the head of a table."""
        self._has_odd_span = False
        self._behind_address = False
        self._indents = lines.Indents()
        self._in_indented_code = False
        self._may_go_on = self._goes_on = False
        """The line before is of a paragraph, for every reader: one that is indented goes on with it."""

    def feed(self, text: str) -> str:
        if self._is_quiet(text):  # nearly always: what the steps would do, in one
            self._out.last = text[-1]
            self._read = text[-6:] if len(text) > 5 else (self._read + text)[-6:]
            if len(self._line) < lines.LINE_CHARACTERS:
                self._line = (self._line + text)[: lines.LINE_CHARACTERS]
            self._behind_address = False
            return text
        if len(text) <= _PIECE_CHARACTERS:
            self._buffer += text
            self._run(final=False)
            return self._out.take()
        for at in range(0, len(text), _PIECE_CHARACTERS):  # what waits behind a step is copied by it
            self._buffer += text[at : at + _PIECE_CHARACTERS]
            self._run(final=False)
        return self._out.take()

    def _is_quiet(self, text: str) -> bool:
        """Return whether the text is words and nothing else, and nothing is under way."""
        if self._buffer or self._out.labels or self._fence is not None or not self._line or not _QUIET.fullmatch(text):
            return False
        if text[0] == "." and self._read[-1:] in ("w", "W"):
            return False
        read = self._read
        return text[-1] not in links.ENDS_OF_BEGUN or links.SCHEME_BEGUN.search(read + text, len(read)) is None

    def finish(self) -> str:
        """What is still held back. A code block that is open is closed. Afterwards a paragraph begins."""
        self._run(final=True)
        self._out.let_labels_go()
        if self._fence is not None:
            begun = "" if self._out.last == "\n" else "\n"
            self._out.emit(begun + self._fence.closing + "\n")
        text = self._out.take()
        self._fence, self._in_code_line, self._is_table, self._has_odd_span = None, False, False, False
        self._line, self._before, self._read, self._may_be_head = "", lines.START, "", False
        self._behind_address, self._out.last = False, "\n"
        self._indents, self._in_indented_code, self._may_go_on, self._goes_on = lines.Indents(), False, False, False
        return text

    def _run(self, *, final: bool) -> None:
        while self._buffer:
            step = self._code_step if self._fence is not None else self._text_step
            if not step(final):
                return

    def _use(self, count: int) -> str:
        """Remove that number of characters from the buffer; they are read."""
        used, self._buffer = self._buffer[:count], self._buffer[count:]
        self._read = (self._read + used)[-6:]
        if len(self._line) < lines.LINE_CHARACTERS:
            self._line = (self._line + used)[: lines.LINE_CHARACTERS]
        self._behind_address = False
        return used

    # Text

    def _text_step(self, final: bool) -> bool:
        """One step; False: more of the text is needed for it."""
        if self._line == "":
            done = self._rule_of_table(final) if self._may_be_head else None
            if done is None:
                done = self._begin_line(final)
            if done is not None:
                return done
        if self._in_indented_code and self._buffer[0] != "\n":
            self._out.emit(self._use(len(self._buffer.partition("\n")[0])))
            return True
        found = _SPECIAL.search(self._read + self._buffer, len(self._read))
        at = len(self._buffer) if found is None else found.start() - len(self._read)
        if at:
            return self._words(at, is_cut=found is None and not final)
        match self._buffer[0]:
            case "\n":
                self._end_line()
                return True
            case "\\":
                return self._backslash(final)
            case "`" | "~":
                return self._ticks(final)
            case "[":
                self._use(1)
                self._out.open_label(is_image=False)
                return True
            case "!":
                return self._exclamation(final)
            case "]":
                return self._close_label(final)
            case "<":
                return self._angle(final)
            case "&":
                return self._ampersand(final)
            case "@":
                return self._at(final)
            case _:
                return self._address(final)

    def _words(self, count: int, *, is_cut: bool) -> bool:
        if is_cut:
            begun = links.SCHEME_BEGUN.search(self._read + self._buffer, len(self._read))
            if begun is not None:
                count = begun.start() - len(self._read)
        if count:
            self._out.emit(self._use(count))
        return count > 0 and not is_cut

    def _begin_line(self, final: bool) -> bool | None:
        """At the blanks and markers before a line's content; None where there are none."""
        if self._buffer[0] not in _BEGIN_HEAD:
            return None
        line = self._buffer[: lines.LINE_CHARACTERS]
        head = lines.head_of(line, final=final or len(line) == lines.LINE_CHARACTERS)
        if head is None:
            return False
        if not head:
            return None
        is_cut = len(head) == lines.LINE_CHARACTERS
        begun = self._buffer[: len(head) + 1]
        if lines.is_wide(head) and not begun.endswith("\n"):
            if self._indents.is_code(begun):
                self._in_indented_code = True
            elif self._may_go_on and not head.strip(lines.BLANKS):
                self._goes_on = True
            elif not lines.place_of(begun, self._before).is_certain:
                narrow = lines.narrowed(head, self._before)
                self._buffer, head = narrow + self._buffer[len(head) :], narrow
        if is_cut and not self._in_indented_code:  # with a character before it, what follows is a head for no reader
            self._buffer, head = head + _NO_WIDTH + self._buffer[len(head) :], head + _NO_WIDTH
        self._out.emit(self._use(len(head)))
        return True

    def _end_line(self) -> None:
        self._out.let_labels_go()
        line = self._line
        content = line.lstrip(lines.MARKERS)
        self._indents.end(line)
        self._in_indented_code = False
        self._before = lines.place_of(line, self._before)
        is_rule = "|" in line and "-" in line and _TABLE_RULE.fullmatch(line) is not None
        self._is_table = bool(line.strip(" \t>")) and (self._is_table or is_rule)
        self._may_be_head, self._has_odd_span = self._has_odd_span, False
        self._may_go_on = (self._goes_on or content[:1].isalpha()) and not self._is_table
        self._goes_on = False
        self._out.emit(self._use(1))
        self._line = ""

    def _rule_of_table(self, final: bool) -> bool | None:
        """Below what must not become the head of a table; None when the line is no rule."""
        found = _TABLE_RULE.match(self._buffer)
        assert found is not None
        line = found[0].partition("\n")[0]
        if len(line) == len(self._buffer) < MAX_FENCE_LINE and not final:
            return False
        self._may_be_head = False
        ends = len(line) == len(self._buffer) or self._buffer[len(line)] == "\n"
        first = _FIRST_OF_RULE.search(line)
        if not ends or first is None or "|" not in line or "-" not in line:
            return None
        self._out.emit(self._use(first.start()) if first.start() else "")
        self._out.emit("\\" + self._use(len(line) - first.start()))
        return True

    def _backslash(self, final: bool) -> bool:
        if len(self._buffer) < 3 and not final:
            return False
        escaped, behind, before = self._buffer[1:2], self._buffer[2:3], self._read[-3:].lower()
        is_escape = escaped != "" and escaped in _ESCAPABLE
        self._out.emit(self._use(2 if is_escape else 1))
        is_scheme = escaped in (":", "/") and (behind in ("/", _BACKSLASH) or before[-1:] in (":", "/"))
        is_mail = escaped == "@" and links.MAIL_NAME.search(before) is not None
        if is_scheme or is_mail or (escaped == "." and before == "www"):
            self._out.emit(" ")  # some clients look for addresses in what is left when the backslashes are gone
        return True

    def _ampersand(self, final: bool) -> bool:
        """A character by its name or number, which must not hide an address from us."""
        found = _ENTITY.match(self._buffer)
        if found is None and _ENTITY_BEGUN.match(self._buffer) and not final:
            return False
        if found is not None and re.fullmatch(r"[\w:/.@+-]+", unescape(found[0]), re.ASCII):
            self._use(1)
            self._out.emit("&amp;")
        else:
            self._out.emit(self._use(1))
        return True

    def _exclamation(self, final: bool) -> bool:
        if len(self._buffer) < 2 and not final:
            return False
        if self._buffer[1:2] == "[":
            self._use(2)
            self._out.open_label(is_image=True)
        else:
            self._out.emit(self._use(1))
        return True

    def _close_label(self, final: bool) -> bool:
        """At ``]``: a link, or brackets."""
        behind = self._buffer[1:]
        if not behind and not final:
            return False
        if behind[:1] == "(" and self._out.labels:
            found = links.LINK.match(behind)
            # The character behind decides whether the brackets can go.
            if found is None or len(behind) == found.end():
                is_open = found is not None or links.LINK_BEGUN.match(behind) is not None
                if is_open and len(behind) <= MAX_ADDRESS and not final:
                    return False
            if found is not None and found.end() <= MAX_ADDRESS:
                self._link(found)
                return True
        is_glued = self._behind_address and behind[:1] not in ("", " ", "\n")
        self._brackets(is_glued=is_glued)
        return True

    def _brackets(self, *, is_glued: bool) -> None:
        """The brackets are text, with nothing behind them that makes them a link."""
        words = "]"
        if self._out.labels:
            label = self._out.close_label()
            words = f"{label.opening}{label.words}]"
        self._use(1)
        self._out.emit(words + (" " if self._buffer[:1] in ("(", ":") or is_glued else ""))

    def _link(self, found: re.Match[str]) -> None:
        label = self._out.close_label()
        words = label.words
        address = found["plain"] if found["wrapped"] is None else found["wrapped"]
        self._use(1 + found.end())
        is_here = links.is_of_the_site(address)
        follows = self._buffer[:1]
        target = address if label.is_image and is_here else self._resolve(address)
        behind = found[0] if target in (None, address) else f"({target})"
        if target is not None and links.is_plain(address + target) and links.LINK.fullmatch(behind):
            mark = "!" if label.is_image and is_here else label.opening[:-1]
            self._out.emit(f"{mark}[{words}]{behind}")
        elif label.stands_free and (not follows or follows in ' \n.,;!?)*_"') and _PLAIN_LABEL.fullmatch(words):
            self._out.emit(words)
        else:
            blank = " " if follows in ("(", ":") else ""
            self._out.emit(f"{label.opening}{words}]{blank}")

    def _angle(self, final: bool) -> bool:
        """At ``<``: a tag, an address in angle brackets, or a sign."""
        buffer = self._buffer
        if (len(buffer) == 1 or ((found := links.AUTOLINK.match(buffer)) and found.end() == len(buffer))) and not final:
            return False
        if not (buffer[1:2].isascii() and (buffer[1:2].isalpha() or buffer[1:2] in ("/", "!", "?"))):
            if buffer[1:2].isdigit() and (found := links.AUTOLINK.match(buffer)) is not None:
                self._angled(found)
                return True
            self._out.emit(self._use(1))
            return True
        if (harmless := _HARMLESS.match(buffer)) is not None and _LETTER.search(self._line):
            self._out.emit(self._use(harmless.end()))
            return True
        if (found := links.AUTOLINK.match(buffer)) is not None:
            self._angled(found)
            return True
        may_be = links.AUTOLINK_BEGUN.match(buffer) or _HARMLESS_BEGUN.match(buffer)
        if may_be and len(buffer) < MAX_ADDRESS and not final:
            return False
        self._use(1)
        self._out.emit("&lt;")
        return True

    def _angled(self, found: re.Match[str]) -> None:
        address, mail = found["address"], found["mail"]
        target = address or f"mailto:{mail}"
        self._use(found.end())
        if links.is_plain(target) and self._is_allowed_url(target):
            self._out.emit(found[0])
        else:
            self._as_code(address or mail)

    def _address(self, final: bool) -> bool:
        """At an address without brackets."""
        found = links.ADDRESS.match(self._read + self._buffer, len(self._read))
        assert found is not None
        whole = found[0][:MAX_ADDRESS]
        if len(whole) == len(self._buffer) and len(whole) < MAX_ADDRESS and not final:
            return False
        follows = self._buffer[len(whole) : len(whole) + 1]
        shown = links.shown_address(
            whole,
            follows,
            is_allowed_url=self._is_allowed_url,
            ends_label=bool(self._out.labels),
            is_whole=len(whole) < MAX_ADDRESS,
        )
        self._use(shown.length)
        if shown.is_code:
            self._as_code(shown.text)
            return True
        is_escaped = shown.text[0] == "<" and self._out.last == _BACKSLASH
        self._out.emit((" " if is_escaped else "") + shown.text)
        self._behind_address = shown.ends_label
        return True

    def _at(self, final: bool) -> bool:
        """At ``@``: of what may be an address for mail, whose name has been sent."""
        is_known = len(self._line) < lines.LINE_CHARACTERS
        found = links.MAIL_NAME.search(self._line[-links.MAX_MAIL_NAME :] if is_known else self._read)
        name = "" if found is None else found[0]
        if not name and not links.MAIL_NAME.search(self._out.last):
            self._out.emit(self._use(1))
            return True
        found = links.MAIL_HOST.match(self._buffer)
        assert found is not None
        if found.end() == len(self._buffer) < MAX_ADDRESS and not final:
            return False
        whole = found[0][:MAX_ADDRESS]
        follows = self._buffer[len(whole) : len(whole) + 1]
        self._use(len(whole))
        if links.may_stay(name if is_known else "", whole, follows, is_allowed_url=self._is_allowed_url):
            self._out.emit(whole)
        else:
            self._as_code(whole)
        return True

    def _as_code(self, text: str) -> None:
        """Readable, and no link. Backticks next to it would become a part of it, and a backslash would escape it."""
        before = " " if self._out.last in ("`", _BACKSLASH) else ""
        self._read = " "
        after = " " if self._buffer[:1] == "`" else ""
        self._out.emit(f"{before}`{text}`{after}")

    # Code

    def _ticks(self, final: bool) -> bool:
        """At a run of backticks or tildes."""
        mark, run = self._buffer[0], run_of(self._buffer)
        if run >= MAX_SPAN:
            self._escape(MAX_SPAN)
            return True
        if run == len(self._buffer) and not final:
            return False
        place = place_of_fence(mark * run, self._line, self._before)
        if place is not None:
            return self._open_fence(run, place, final)
        if mark == "~":
            self._out.emit(self._use(run))
            return True
        return self._span(run, final)

    def _open_fence(self, run: int, place: lines.Place, final: bool) -> bool:
        buffer = self._buffer
        end = buffer.find("\n")
        info = buffer[run:] if end < 0 else buffer[run:end]
        is_short = len(self._line) < lines.LINE_CHARACTERS and len(info) <= MAX_FENCE_LINE
        is_fence = place.is_certain and is_short and "|" not in info and not (buffer[0] == "`" and "`" in info)
        if is_fence and end < 0 and not final:
            return False
        if not is_fence:
            self._escape(run)
            return True
        self._out.let_labels_go()
        mark = buffer[:run]
        self._before = place
        self._indents.end(self._line + mark)
        self._out.emit(self._use(run + len(info) + (end >= 0)))
        self._line, self._fence, self._in_code_line = "", Fence(mark, place), end < 0
        self._may_be_head = self._has_odd_span = self._is_table = self._may_go_on = False
        return True

    def _escape(self, run: int) -> None:
        mark = self._use(run)[0]
        self._out.emit(f"\\{mark}" * run)

    def _span(self, run: int, final: bool) -> bool:
        """A code span, if it ends on this line and soon."""
        length = span_of(self._buffer, run, final=final)
        if length is None:
            return False
        content = self._buffer[run : length - run] if length else ""
        if not length or (self._is_table and _CELL_END.search(content)):
            self._escape(run)
            return True
        self._has_odd_span |= "|" in content
        before = " " if self._out.last == "`" else ""
        self._out.emit(before + self._use(length))
        return True

    def _code_step(self, final: bool) -> bool:
        fence = self._fence
        assert fence is not None
        if self._in_code_line:
            text, newline, _ = self._buffer.partition("\n")
            self._out.emit(self._use(len(text) + len(newline)))
            self._in_code_line = not newline
            self._line = ""
            return True
        line = fence_line(fence, self._buffer, final=final)
        match line:
            case None:
                return False
            case FenceLine("code"):
                self._in_code_line = True
            case FenceLine("closing", length, sent):
                self._use(length)
                self._out.emit(sent)
                self._leave_fence()
                if not sent.endswith("\n"):
                    self._line = "`"
            case FenceLine("doubtful"):
                self._out.emit(fence.closing + "\n")
                self._leave_fence()
            case _:
                self._leave_fence()
        return True

    def _leave_fence(self) -> None:
        assert self._fence is not None
        self._before, self._line, self._fence = self._fence.place, "", None
