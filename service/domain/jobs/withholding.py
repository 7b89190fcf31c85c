"""Leave lines of context repositories that are not public out of a job's requests, for those who read them later.

Others of the organization may read a job's requests than those who may read its code. Left out are the data in results
of tools that were asked for such a context, the list of what is at its top, and each further line that stood in such a
result, wherever it comes again: in the model's calls, in a diff, in a comment. A line in their place says how many.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from service.domain.jobs.events import ContextsOpened, JobEvent, ModelReplied, ToolReturned
from service.domain.jobs.requests import RequestMessage
from service.domain.model import ToolCall, decoded_arguments

LEAST_CHARACTERS = 8
"""Shorter lines, such as brackets, say nothing of where they are from."""
_OPENS, _CLOSES = "<data ", "</data "


class Withholding:
    """The lines of a job's contexts that are not public."""

    def __init__(self, events: Iterable[JobEvent]) -> None:
        self._private: set[str] = set()
        self._of_call: dict[str, str] = {}
        """The context that a call asks for, by the call's id; of those that are not public."""
        self._lines: dict[str, str] = {}
        """The context of each line."""
        for event in events:
            match event:
                case ContextsOpened(contexts=contexts):
                    self._private = {one.name for one in contexts if not one.public} | self._private
                case ModelReplied(tool_calls=calls):
                    for call in calls:
                        if name := next((name for name in _contexts_of(call) if name in self._private), ""):
                            self._of_call[call.id] = name
                case ToolReturned(call_id=call_id, result=result) if call_id in self._of_call:
                    for line, is_data in _lines(result):
                        for form in _forms(line) if is_data else ():
                            self._lines.setdefault(form, self._of_call[call_id])
                case _:
                    pass

    def without(self, message: RequestMessage) -> tuple[RequestMessage, int]:
        """Return a message without the lines, and how many they are."""
        if not self._private:
            return message, 0
        text, count = self._text(message.text, self._of_call.get(message.call_id, ""))
        calls = []
        for call in message.calls:
            shown, more = self._call(call)
            calls.append(shown)
            count += more
        return replace(message, text=text, calls=tuple(calls)), count

    def _text(self, text: str, asked: str = "") -> tuple[str, int]:
        """Return a text without the lines. ``asked``: the context that all of its data is of."""
        shown: list[str] = []
        count, run, of = 0, 0, ""
        named = asked
        for line, is_data in _lines(text):
            if not is_data and not line.startswith((_OPENS, _CLOSES)):
                named = asked or self._described(line)
            name = named if is_data and named else next((self._lines[f] for f in _forms(line) if f in self._lines), "")
            if run and name != of:
                shown.append(_note(run, of))
                run = 0
            if name:
                run, of, count = run + 1, name, count + 1
            else:
                shown.append(line)
        if run:
            shown.append(_note(run, of))
        return "\n".join(shown), count

    def _described(self, line: str) -> str:
        """Return the context whose list of files follows a line; empty for none."""
        return next((name for name in self._private if line.startswith(f"- @{name}/ is at commit ")), "")

    def _call(self, call: ToolCall) -> tuple[ToolCall, int]:
        try:
            arguments = decoded_arguments(call.arguments, dict[str, object])
        except msgspec.DecodeError:
            text, count = self._text(call.arguments)
            return replace(call, arguments=text), count
        shown, count = self._value(arguments)
        return (replace(call, arguments=msgspec.json.encode(shown).decode()), count) if count else (call, 0)

    def _value(self, value: object) -> tuple[object, int]:
        match value:
            case str():
                return self._text(value)
            case list():
                parts = [self._value(one) for one in value]
                return [part for part, _ in parts], sum(count for _, count in parts)
            case dict():
                named = {key: self._value(one) for key, one in value.items()}
                return {key: part for key, (part, _) in named.items()}, sum(count for _, count in named.values())
            case _:
                return value, 0


def _note(count: int, name: str) -> str:
    return f"[{count} {'line' if count == 1 else 'lines'} of @{name} left out: it is not public]"


def _contexts_of(call: ToolCall) -> Iterator[str]:
    """Yield the names of the contexts that a call asks for."""
    try:
        arguments = decoded_arguments(call.arguments, dict[str, object])
    except msgspec.DecodeError:
        return
    several = arguments.get("paths")
    for path in (arguments.get("path"), arguments.get("folder"), *(several if isinstance(several, list) else ())):
        if isinstance(path, str) and path.strip().startswith("@"):
            yield path.strip()[1:].partition("/")[0]


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a text, each with whether it is data, which stands between two tags."""
    tag = ""
    for line in text.split("\n"):
        if tag and line.startswith(f"{_CLOSES}{tag}>"):
            tag = ""
        yield line, bool(tag)
        if not tag and line.startswith(_OPENS) and line.endswith(">"):
            tag = line[len(_OPENS) : -1]


def _forms(line: str) -> Sequence[str]:
    """Return a line as it may stand in a file: without white space around it, or the mark and number before it that
    results of tools show. None for a short one.
    """
    found = {line.strip(), line.lstrip(" >+-").strip()}
    number, mark, rest = line.lstrip(" >").partition("\t")
    if not mark:
        number, mark, rest = line.lstrip(" >").partition(": ")
    if mark and number.strip().isdigit():
        found |= {rest.strip(), rest.lstrip(" >+-").strip()}
    return [form for form in found if len(form) >= LEAST_CHARACTERS]
