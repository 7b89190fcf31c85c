"""Remove from a model's text, while it flows, what is not text for readers: reasoning, channels, control tokens, calls.

Self-hosted models write these into their text where their server does not know their form. No reader sees them, and a
number in brackets in them is no citation. The reasoning is returned separately, to be recorded, and so are calls that
were written as text (``written_calls`` reads them).

| Kind | Marks |
|---|---|
| reasoning | ``<think>``, ``<reasoning>``, ``<thought>``, ``[THINK]``, ``◁think▷``, ``<|START_THINKING|>`` |
| a channel (gpt-oss) | ``<|channel|>analysis<|message|>`` … ``<|end|>``; without tokens ``analysis…assistantfinal`` |
| a call | ``<tool_call>``, ``<function=…>``, ``<invoke name=…>``, ``[TOOL_CALLS]``, ``<|python_tag|>``, DeepSeek's |
| the end of the reply | ``<|im_end|>``, ``<|eot_id|>``, ``</s>``, ``<end_of_turn>``; another turn's beginning |
| any other control token | ``<|word|>`` |
| a tag of our own prompts | ``<passage-MARK …>``, ``[question-MARK]``, ``<page-1a2b3c4d>``, ``<data 1a2b3c4d>`` |

- A mark counts wherever it is outside of code, tags in upper or lower case; blanks may be before the ``>`` of
  reasoning. Without an end it goes on to the end of the call. Tags of reasoning nest. An end without a beginning is
  removed on its own. Text behind the end of the reply is left out.
- In code of the answer a mark is text: in a fenced block, and in a code span that ends on its line. In what is thought,
  only a span is code: a block in it that was never closed must not hide its end. Tags of our own prompts are no text
  anywhere: no author knows their ending. With another ending they are none outside of code: small models miscopy it.
- A call is nothing but a JSON document with the name of a tool, if the whole text is one.

What is held back: a mark that has begun, a run of backticks, what follows a mark behind an open backtick, to the end
of the span or of the line, at most ``MAX_SPAN`` characters, and a text that begins like a call. The result does not
depend on where the chunks were cut.
"""

import re
from collections.abc import Collection

from service.markup.streaming.code import KEPT_OF_LINE, MAX_SPAN, CodeLexer, run_of
from service.markup.streaming.written_calls import written_calls

PIECE_CHARACTERS = 1_000
"""Limit for the part of a chunk that is handled at once: the rest of it is copied at each step."""
MAX_HEADER = 200
"""Characters between the beginning of a turn or a channel and its text."""
MAX_HELD = 50_000
"""Characters of a text that may be a call, before it is text after all."""
MAX_NAME = 53
"""Characters of the name of a tag of our prompts, with its ending."""
MAX_ATTRIBUTES = 700
"""Characters behind the name of a tag of our prompts."""
MAX_CALL = 1_000_000
"""Characters of a call that are kept."""

OUR_NAMES = frozenset(
    [
        "documentation",
        "earlier",
        "language-of-the-documentation",
        "not-in-the-documentation",
        "open-page",
        "page",
        "pages-found",
        "passage",
        "question",
        "selection",
        "site",
        "site-owner",
    ]
)
"""Names of the tags of an answer's prompts: small models copy them with another ending."""
_NAME = re.compile(r"[<\[]/?([a-z][a-z-]{0,40})-[0-9a-f]{8}")

_SPECIAL = re.compile(r"[`~<\[◁]")
_THINK = r"think(?:ing)?|reasoning|thought|reflection|seed:think"
_ROLES = r"user|assistant|system|tool|model|developer|observation|human"
_ANGLED = r"</?(?:[a-z][a-z-]{0,40}-|data[ ])[0-9a-f]{8}"
_BRACKETED = r"\[/?(?:[a-z][a-z-]{0,40}-|data[ ](?=\d{0,7}[a-f]))[0-9a-f]{8}"
_MARK = re.compile(
    rf"""
    (?P<ours>{_ANGLED}(?!\w)(?:[^<>\n]{{0,{MAX_ATTRIBUTES}}}>)?|{_BRACKETED}(?!\w)\]?)
    |(?P<think>
        </?(?:{_THINK})[ \t]{{0,8}}>|\[/?THINK\]|◁/?think▷|<\|(?:begin|end)_of_thought\|>
        |<\|(?:START|END)_THINKING\|>
    )
    |(?P<channel><\|channel\|?>)
    |(?P<close><\|end\|>|<channel\|>)
    |(?P<call>
        <(?:[a-z]{{1,16}}:|\uff5cDSML\uff5c)?(?:longcat_)?(?:tool_calls?|function_calls?|tool_use)>
        |<function=[\w.:-]{{1,64}}>|<invoke\ name="[^"<>\s]{{1,64}}">|\[TOOL_CALLS\]|<start_function_call>
        |<\|(?:python_tag|tool_call|tool_calls_section_begin|tool_call_begin|action_start|start_action)\|>
        |<\uff5ctool▁calls?▁begin\uff5c>
    )
    |(?P<end>
        <\|(?:im_end|endoftext|eot_id|eom_id|end_of_text|return|end_of_turn_token|end_response|end_of_turn
            |user|system|observation)\|>
        |</s>|<eos>|<end_of_turn>|<\uff5cend▁of▁sentence\uff5c>|<\uff5cUser\uff5c>|<turn\|>|\[INST\]
    )
    |(?P<start><\|(?:im_start|start_header_id|start_of_turn_token|start)\|>|<start_of_turn>|<\|turn>)
    |(?P<strike><s>)
    |(?P<token><\|/?[a-z][a-z0-9_]{{1,40}}\|>|<\uff5c[\w▁]{{2,40}}\uff5c>|<(?:bos|pad|unk)>|\[/INST\])
    """,
    re.IGNORECASE | re.VERBOSE,
)
_BEGUN = re.compile(
    rf"""<[^\s<>`\[]{{0,63}}\Z|</?(?:{_THINK})[ \t]{{0,8}}\Z
    |<invoke(?:\ (?:n(?:a(?:m(?:e(?:=(?:"[^"<>\s]{{0,64}}"?)?)?)?)?)?)?)?\Z
    |\[/?[a-z_-]{{0,42}}\Z|[<\[]/?(?:[a-z][a-z-]{{0,40}}-|data[ ])[0-9a-f]{{0,8}}\Z|◁/?[a-z]{{0,5}}\Z""",
    re.IGNORECASE | re.VERBOSE,
)
"""A mark that has begun."""
_OURS_BEGUN = re.compile(rf"{_ANGLED}(?:[^\w<>\n][^<>\n]{{0,{MAX_ATTRIBUTES}}})?\Z|{_BRACKETED}\Z", re.IGNORECASE)
"""A tag of our prompts whose end is still to come."""
_HEADER_END = re.compile(r"<\|(?:message|end_header_id)\|>|\n")
_OTHERS = re.compile(r"\s*(?:user|system|tool|developer|observation|human)\b", re.IGNORECASE)
_ASSISTANT = re.compile(r"\s*+(?:(?:assistant|model)\s*+)?", re.IGNORECASE)
_CALL_BEGINS = re.compile(
    r"""\s*(?:```[a-z_]{0,12}\s*)?[\[{\s]{1,20}"""
    r""""(?:name|function|tool|tool_name|type|arguments|parameters|recipient_name)"\s*:"""
)
_MAY_BEGIN = re.compile(
    r"""\s*(?:`{1,3}|```[a-z_]{0,12}\s*)?(?:[\[{][\[{\s]{0,20}(?:"(?:[a-z_]{0,16}(?:"\s{0,4}:?)?)?)?)?\Z"""
)
_LOST_CHANNELS = tuple(f"{role}{name}" for role in ("", "assistant") for name in ("analysis", "commentary"))
"""Beginnings of a reply whose channels have lost their tokens; a capital letter is behind them."""
_LOST_END = "assistantfinal"
_ENDS_CHANNEL = ("close", "start", "channel", "end")
_BRACKET = re.compile(r"\[/?(?:[A-Za-z]|\Z)")
"""A mark in brackets may begin here; a citation does not."""
_ENDS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<\uff5cend▁of▁sentence\uff5c>")
"""Ends of the reply, also within a call."""


class _Region:
    """Text up to one of the marks that end it."""

    def __init__(self, closing: Collection[str], sink: list[str]) -> None:
        self.closing = (*closing, *_ENDS)
        self.kept_back = max(map(len, self.closing)) - 1
        self.sink = sink
        self.is_call = False


def _closing_of(mark: str) -> tuple[str, ...]:
    """Return the mark that ends a call; none where it goes on to the end."""
    name = mark.strip("<>").partition("=")[0].partition(" ")[0]
    if mark.startswith("[") or name == "|python_tag|":
        return ()
    if mark.startswith(("<|", "<\uff5ctool")):
        return (mark.replace("begin", "end").replace("start", "end"), f"<|/{name.strip('|')}|>")
    if name == "start_function_call":
        return ("<end_function_call>",)
    return (f"</{name}>",)


class ModelTextFilter:
    """Feed it the model's text, line ends as LF, then ``finish``; what they return belongs to the answer."""

    def __init__(self, tools: Collection[str] = (), mark: str = "") -> None:
        """``tools``: the names in a text that is nothing but a call; without any, there is none. ``mark``: the ending
        of the names of the prompt's tags, eight hexadecimal digits.
        """
        self._tools = tools
        self._prompt_mark = mark
        self._buffer = ""
        self._unread: list[str] = []
        """Text without a mark, which was let through: where there is code in it matters only once a mark comes."""
        self._ahead = 0
        """Characters that were let through, and are yet to come out of the steps."""
        self._out: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[str] = []
        self._line = ""
        """The answer's line so far, its beginning at least."""
        self._lexer = CodeLexer()
        self._has_thought = False
        self._begin("")

    def _begin(self, begun: str | None) -> None:
        self._begun = begun
        """The beginning of the text, as long as it may be a call or a channel; None once it is text."""
        self._held: list[str] = []
        """A text that begins like a call."""
        self._depth = 0
        """Number of open tags of reasoning."""
        self._is_channel = False
        """Whether the reasoning is a channel's."""
        self._region: _Region | None = None
        self._header = ""
        """The mark before a name that is not text; empty outside of one."""
        self._has_text = False
        self._strikes = 0
        """HTML's ``<s>`` that are open."""
        self._is_over = False

    def feed(self, text: str) -> str:
        if (
            self._begun is None
            and not self._buffer
            and not self._depth
            and "<" not in text
            and "◁" not in text
            and ("[" not in text or _BRACKET.search(text) is None)
            and self._is_plain
        ):  # nearly always: no mark, so it is the answer's
            self._unread.append(text)
            self._ahead += len(text)
            if self._ahead > PIECE_CHARACTERS:
                self._read("")
            return text
        if self._is_over:
            return ""
        if self._begun is not None:
            text = self._beginning(text)
        return self._read(text)

    @property
    def _is_plain(self) -> bool:
        return self._region is None and not self._header and not self._is_over

    def _beginning(self, text: str) -> str:
        """Return what of the beginning of a text is text, or is to be read for marks."""
        if self._held:
            self._held.append(text)
            return self._let_go() if sum(map(len, self._held)) > MAX_HELD else ""
        blanks, begun = "", f"{self._begun}{text}"
        if not self._begun:
            begun = text.lstrip()
            blanks = text[: len(text) - len(begun)]
        if self._may_be_call(begun) or any(each.startswith(begun) for each in _LOST_CHANNELS):
            if _CALL_BEGINS.match(begun):
                self._held, begun = [begun], ""
            self._begun = begun
            return blanks
        self._begun = None
        name = next((each for each in _LOST_CHANNELS if begun.startswith(each)), "")
        if name and begun[len(name)].isupper():
            self._region = _Region((_LOST_END,), self._thoughts)
            begun = begun[len(name) :]
        return blanks + begun

    def _may_be_call(self, begun: str) -> bool:
        if not self._tools or not begun.startswith(("{", "[", "`")):
            return False
        return bool(_CALL_BEGINS.match(begun) or _MAY_BEGIN.match(begun))

    def _let_go(self) -> str:
        """Return a text that was held as a call, and is none."""
        text, self._begun = "".join(self._held), None
        self._held = []
        return text

    def _read(self, text: str) -> str:
        """Look at what was let through unread, then at the text."""
        if self._unread:
            text = "".join([*self._unread, text])
            self._unread.clear()
        for at in range(0, len(text), PIECE_CHARACTERS):
            self._buffer += text[at : at + PIECE_CHARACTERS]
            self._run(final=False)
        return self._take()

    def take_up(self, text: str) -> None:
        """Read text that was let through before, by another process: it is text, also what would be held back now."""
        self._read(text)
        self._begin(None)
        self._has_text = True
        self._ahead = len(self._buffer)

    def finish(self) -> str:
        """What is still held back. Afterwards an answer begins."""
        self._end()
        self._begin("")
        self._line, self._lexer = "", CodeLexer()
        return self._take()

    def pause(self) -> str:
        """Return what is still held back where a call is cut: the next goes on with the text, not with a thought."""
        self._end()
        self._begin(None)
        return self._take()

    def _end(self) -> None:
        if self._held:
            text = self._let_go()
            if written_calls(text, self._tools):
                self._calls.append(text)
            else:
                self._read_held(text)
        elif self._begun:
            begun, self._begun = self._begun, None
            self._read_held(begun)
        self._buffer += "".join(self._unread)
        self._unread.clear()
        self._run(final=True)

    def _read_held(self, text: str) -> None:
        for at in range(0, len(text), PIECE_CHARACTERS):
            self._buffer += text[at : at + PIECE_CHARACTERS]
            self._run(final=False)

    def take_calls(self) -> tuple[str, ...]:
        """Return the calls that were written as text, each as it was written, since the last time."""
        calls = tuple(self._calls)
        self._calls.clear()
        return calls

    def take_thoughts(self) -> str:
        """Return the reasoning since the last call."""
        if not self._thoughts:
            return ""
        text = "".join(self._thoughts)
        self._thoughts.clear()
        return text

    def _take(self) -> str:
        text = "".join(self._out)
        self._out.clear()
        if self._ahead:
            text, self._ahead = text[self._ahead :], max(0, self._ahead - len(text))
        return text

    def _run(self, *, final: bool) -> None:
        while self._buffer and self._step(final):
            pass

    def _step(self, final: bool) -> bool:
        """One step; False: more of the text is needed for it."""
        if self._is_over:
            self._buffer = ""
            return False
        if self._region is not None:
            return self._in_region(self._region, final)
        if self._header:
            return self._in_header(final)
        buffer = self._buffer
        found = _SPECIAL.search(buffer)
        at = len(buffer) if found is None else found.start()
        if at:
            self._pass(at)
            return True
        match buffer[0]:
            case "`" | "~" as mark:
                run = min(len(buffer) - len(buffer.lstrip(mark)), MAX_SPAN)
                if run == len(buffer) < MAX_SPAN and not final:
                    return False
                line = self._line
                self._let_through(run)
                self._lexer.run(mark * run, line, may_be_fence=not self._depth)
                return True
            case _:
                return self._mark(final)

    def _pass(self, count: int) -> None:
        """Pass on that number of characters, to where they belong."""
        text = self._buffer[:count]
        if "\n" not in text:
            self._lexer.text(count)
        elif self._depth:
            self._lexer.end_span()
        else:
            for line in (self._line + text.rpartition("\n")[0]).split("\n"):
                self._lexer.end_line(line[:KEPT_OF_LINE])
        self._let_through(count)

    def _let_through(self, count: int) -> None:
        text, self._buffer = self._buffer[:count], self._buffer[count:]
        (self._thoughts if self._depth else self._out).append(text)
        if not self._depth:
            self._has_text = self._has_text or not text.isspace()
            _, newline, last = text.rpartition("\n")
            self._line = (last if newline else self._line + last)[:KEPT_OF_LINE]

    def _mark(self, final: bool) -> bool:
        """At ``<``, ``[`` or ``◁``: a mark, or a sign."""
        buffer = self._buffer
        found = _MARK.match(buffer)
        if found is None:
            if not final and _BEGUN.match(buffer):
                return False
            self._pass(1)
            return True
        if found["ours"]:
            return self._ours(found, final)
        if self._lexer.fence and not self._depth:
            self._pass(found.end())
            return True
        if self._lexer.ticks:
            ends = self._ends_span(found.end(), final)
            if ends is None:
                return False
            if ends:
                self._pass(found.end())
                return True
            self._lexer.ticks = 0
        self._take_mark(found)
        return True

    def _ours(self, found: re.Match[str], final: bool) -> bool:
        """At what may be a tag of our prompts."""
        name = found[0][:MAX_NAME].lower()
        known = _NAME.match(name)
        is_ours = (
            (known is not None and known[1] in OUR_NAMES and not (self._lexer.fence or self._lexer.ticks))
            or name.lstrip("<[/").startswith("data ")
            or (self._prompt_mark and f"-{self._prompt_mark}" in name)
        )
        if not is_ours:
            self._pass(1)
            return True
        if not final and _OURS_BEGUN.match(self._buffer):
            return False
        self._buffer = self._buffer[found.end() :]
        return True

    def _take_mark(self, found: re.Match[str]) -> None:
        kind, mark = str(found.lastgroup), found[0].lower()
        if self._depth and kind not in ("think", "end") and not (self._is_channel and kind in _ENDS_CHANNEL):
            self._pass(found.end())
            return
        if kind == "think":
            self._tag(found)
            return
        if mark in ("<s>", "</s>") and not self._is_control(mark):
            self._pass(found.end())
            return
        self._buffer = self._buffer[found.end() :]
        if self._depth and kind in _ENDS_CHANNEL:
            self._depth, self._is_channel = 0, False
            kind = "token" if kind == "close" else kind
        match kind:
            case "call":
                self._region = _Region(_closing_of(found[0]), [found[0]])
                self._region.is_call = True
            case "channel":
                self._header = "channel"
            case "start" if mark == "<|start|>" or not self._has_text:
                self._header = "start"
            case "end" | "start":
                self._is_over = True
            case "close":
                self._is_over = mark == "<|end|>" and self._has_text
            case _:
                pass

    def _is_control(self, mark: str) -> bool:
        """Return whether ``<s>`` or ``</s>`` is no HTML: the first one begins a text, the second one ends what is not
        struck through.
        """
        if mark == "<s>":
            self._strikes += self._has_text
            return not self._has_text
        self._strikes -= 1
        return self._strikes < 0

    def _in_region(self, region: _Region, final: bool) -> bool:
        buffer = self._buffer
        places = [(at, mark) for mark in region.closing if (at := buffer.find(mark)) >= 0]
        if places:
            at, mark = min(places)
            region.sink.append(buffer[:at])
            self._buffer, self._is_over = buffer[at + len(mark) :], mark in _ENDS
            if region.is_call:
                region.sink.append(mark)
            self._leave_region(region)
            return True
        kept = 0 if final else min(len(buffer), region.kept_back)
        if sum(map(len, region.sink)) < MAX_CALL:
            region.sink.append(buffer[: len(buffer) - kept])
            region.sink[1:] = ["".join(region.sink[1:])]
        self._buffer = buffer[len(buffer) - kept :]
        if final:
            self._leave_region(region)
        return False

    def _leave_region(self, region: _Region) -> None:
        self._region = None
        if region.is_call:
            self._calls.append("".join(region.sink))

    def _in_header(self, final: bool) -> bool:
        """Read the name behind the beginning of a turn or of a channel."""
        buffer, is_channel = self._buffer, self._header == "channel"
        found = _HEADER_END.search(buffer, 0, MAX_HEADER)
        if found is None:
            if len(buffer) < MAX_HEADER and not final:
                return False
            self._header, self._buffer = "", ""
            self._thoughts.append(buffer)
            return False
        header, self._buffer, self._header = buffer[: found.start()], buffer[found.end() :], ""
        role, mark, name = header.rpartition("<|channel|>")
        if "to=" in header:
            self._region = _Region(("<|call|>", "<|end|>", "<|start|>", "<|return|>"), [f"{header}\n"])
            self._region.is_call = True
        elif is_channel or mark:
            if not name.strip().lower().startswith("final"):
                self._depth, self._is_channel = 1, True
        elif _OTHERS.match(role or name):
            self._is_over = True
        elif not _ASSISTANT.fullmatch(role or name):
            self._buffer = f"{header}{found[0] if found[0] == chr(10) else ''}{self._buffer}"
        return True

    def _ends_span(self, at: int, final: bool) -> bool | None:
        """Return whether the span that is open ends behind this place; None: that is yet to be seen."""
        buffer = self._buffer
        limit = max(0, MAX_SPAN - self._lexer.in_span)
        newline = buffer.find("\n")
        end = min(limit, len(buffer) if newline < 0 else newline)
        while (at := buffer.find("`", at, end)) >= 0:
            run = run_of(buffer, at)
            if at + run == len(buffer) and not final:
                return None
            if run == self._lexer.ticks:
                return True
            at += run
        is_cut = newline < 0 and len(buffer) < limit and not final
        return None if is_cut else False

    def _tag(self, found: re.Match[str]) -> None:
        self._buffer = self._buffer[found.end() :]
        closes = "/" in found[0] or "end_" in found[0].lower()
        is_outermost = self._depth <= (1 if closes else 0)
        self._depth = max(0, self._depth + (-1 if closes else 1))
        if not is_outermost:
            self._thoughts.append(found[0])
        elif self._depth and self._has_thought:
            self._thoughts.append("\n\n")
        self._has_thought |= self._depth > 0


class WordFilter:
    """Remove a word that no reader may see, with the hyphen before it, wherever it stands, while the text flows."""

    def __init__(self, word: str) -> None:
        """``word``: empty for none."""
        self._word = word
        self._beginnings = tuple((f"-{word}"[:end]) for end in range(len(word), 0, -1)) if word else ()
        self._beginnings += tuple(word[:end] for end in range(len(word) - 1, 0, -1))
        self._held = ""

    def feed(self, text: str) -> str:
        """Return what of the text is known not to be a part of the word; up to its length is held back."""
        if not self._word:
            return text
        if self._held:
            text, self._held = self._held + text, ""
        if self._word in text:
            text = text.replace(f"-{self._word}", "").replace(self._word, "")
        if text.endswith(self._beginnings):
            self._held = max((each for each in self._beginnings if text.endswith(each)), key=len)
            text = text[: -len(self._held)]
        return text

    def finish(self) -> str:
        """Return what is still held back."""
        held, self._held = self._held, ""
        return held


def plain(text: str) -> str:
    """Return a whole text without what is not text for readers, and without blanks around it."""
    reader = ModelTextFilter()
    return (reader.feed(text) + reader.finish()).strip()
