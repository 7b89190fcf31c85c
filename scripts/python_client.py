"""Write the types and methods of service/sdk/docsmith_client.py again, from the API's description.

Everything between the marks "generated" and "end of" is made here; the rest of the file is written by hand. Left out
are deprecated operations, what only web pages call, and streams, whose methods are written by hand.
"""

import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from keyword import iskeyword
from pathlib import Path
from typing import Any

from service.web.api.description.description import description

CLIENT = Path(__file__).parent.parent / "service" / "sdk" / "docsmith_client.py"
BY_HAND = {"ask", "followJob", "resumeReply"}
"""Operations with methods that are written by hand."""
FOR_PAGES = {"createReaderToken"}
ONLY_READ = {"search", "readPage", "evaluateSearch"}
"""Operations with a body that change nothing: they may be sent again."""
ALSO_WANTED = ("Checks", "FilterBody", "ContextBody")
"""Schemas that the methods written by hand use."""
ENDINGS = re.compile(r"(?:View|Body)$")
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict[str, Any]"}
DATES = {"date-time": "datetime", "date": "date"}
WIDTH = 120

Schema = Mapping[str, Any]


class Client:
    """The generated parts, for one description."""

    def __init__(self, document: Schema) -> None:
        self._schemas: Schema = document["components"]["schemas"]
        self._names = self._short_names()
        self._wanted: list[str] = []
        self._operations = [
            (method, path, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
            if not operation.get("deprecated") and operation["operationId"] not in FOR_PAGES
        ]

    def _short_names(self) -> dict[str, str]:
        """Return the class for each schema: its name without View or Body, where no other one has that name."""
        names: dict[str, str] = {}
        for name in sorted(self._schemas, key=lambda name: name.endswith("Body")):  # views have precedence
            short = ENDINGS.sub("", name)
            is_free = short not in names.values() and (short == name or short not in self._schemas)
            names[name] = short if is_free else name
        return names

    def methods(self) -> str:
        made = (self._method(*one) for one in self._operations if one[2]["operationId"] not in BY_HAND)
        return textwrap.indent("\n".join(made), "    ")

    def asynchronous(self) -> str:
        names = (_snake(one[2]["operationId"]) for one in self._operations if one[2]["operationId"] not in BY_HAND)
        return "".join(f"    {name} = _in_thread(Docsmith.{name})\n" for name in names)

    def types(self) -> str:
        """Return the types that methods name: to be asked for after the methods."""
        for name in ALSO_WANTED:
            self._type_of({"$ref": f"#/components/schemas/{name}"})
        made: dict[str, str] = {}
        for name in self._wanted:  # grows while its types are made
            made[self._names[name]] = self._class(name)
        return "\n\n".join(made[name] for name in sorted(made))

    def _type_of(self, schema: Schema) -> str:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            if name not in self._wanted:
                self._wanted.append(name)
            return self._names[name]
        if "enum" in schema:
            return f"Literal[{', '.join(repr(value) for value in schema['enum'])}]"
        if "type" not in schema and "anyOf" in schema:
            return " | ".join(dict.fromkeys(self._type_of(one) for one in schema["anyOf"]))
        match schema.get("type"):
            case "null":
                return "None"
            case "array":
                return f"list[{self._type_of(schema['items'])}]"
            case "object" if "additionalProperties" in schema:
                return f"dict[str, {self._type_of(schema['additionalProperties'])}]"
            case "string" if schema.get("format") in DATES:
                return DATES[schema["format"]]
            case str(kind):
                return SCALARS[kind]
            case _:
                return "Any"

    def _class(self, name: str) -> str:
        schema = self._schemas[name]
        lines, notes = [], []
        for field, value in schema["properties"].items():
            kind, is_required = self._type_of(value), field in schema["required"]
            default = "" if is_required else f" = {_default(value)}"
            if not is_required and default == " = None" and "None" not in kind.split(" | "):
                kind += " | None"
            lines.append(f"    {_snake(field)}: {kind}{default}\n")
            notes += _note(_snake(field), self._described(value))
        docstring = _docstring(schema["description"], "Attributes", notes)
        head = f"@dataclass(frozen=True, kw_only=True)\nclass {self._names[name]}:\n"
        return head + textwrap.indent(docstring, "    ") + "\n" + "".join(lines)

    def _described(self, schema: Schema) -> str:
        if "$ref" in schema and "description" not in schema:
            schema = self._schemas[schema["$ref"].rpartition("/")[2]]
        return str(schema.get("description", ""))

    def _method(self, method: str, path: str, operation: Schema) -> str:
        """Return a method: its parameters are those of the path, then the body's, the query's and the headers'."""
        answer = next(one for status, one in operation["responses"].items() if status.startswith("2"))
        contents = answer.get("content", {})
        returned = self._type_of(contents["application/json"]["schema"]) if contents else "None"
        places, required, optional, notes = [], [], [], []
        sent: dict[str, list[str]] = {"query": [], "headers": [], "body": []}
        for parameter in operation.get("parameters", ()):
            name = _parameter_name(parameter["name"], path)
            if parameter["in"] == "path":
                places.append(f"{name}: str")
            elif not self._is_sent(parameter, [*required, *optional], contents):
                continue
            else:
                kind = self._type_of(parameter["schema"]) if parameter["in"] == "query" else "str"
                kind = "date" if parameter["schema"].get("anyOf") else kind
                (required if parameter["required"] else optional).append((name, kind))
                group = "headers" if parameter["in"] == "header" else "query"
                made = f"{name} or str(uuid.uuid4())" if name == "idempotency_key" else name
                sent[group].append(f"{parameter['name']!r}: {made}")
            notes += _note(name, parameter["description"])
        body = operation.get("requestBody", {}).get("content", {})
        if "application/json" in body:
            schema = self._schemas[body["application/json"]["schema"]["$ref"].rpartition("/")[2]]
            for field, value in schema["properties"].items():
                name, kind = _snake(field), self._type_of(value)
                (required if field in schema["required"] else optional).append((name, kind))
                sent["body"].append(f"{field!r}: {name}")
                notes += _note(name, self._described(value))
        elif body:
            places.append("data: bytes")
            notes += _note("data", "The file's content.")
        named = [f"{name}: {kind}" for name, kind in required] + [
            f"{name}: {kind.removesuffix(' | None')} | None = None" for name, kind in optional
        ]
        parameters = ", ".join(["self", *places, *(["*"] if named else []), *named])
        arguments = [returned if returned != "None" else "None", repr(method.upper()), _path_expression(path)]
        arguments += [f"{group}={{{', '.join(found)}}}" for group, found in sent.items() if found]
        arguments += ["body=data"] if body and "application/json" not in body else []
        arguments += ["only_reads=True"] if operation["operationId"] in ONLY_READ else []
        arguments += ["waits=wait or 0.0"] if any(name == "wait" for name, _ in optional) else []
        call = f"self._json({', '.join(arguments)})"
        result = call if returned == "None" else f"return cast({returned!r}, {call})"
        docstring = _docstring(operation["summary"] + ".", "Args", notes)
        head = f"def {_snake(operation['operationId'])}({parameters}) -> {returned}:\n"
        return head + textwrap.indent(f"{docstring}{result}\n", "    ")

    def _is_sent(self, parameter: Schema, known: list[tuple[str, str]], contents: Schema) -> bool:
        """Return whether a method has the parameter: not what asks for another form of the answer, or repeats."""
        if parameter["name"] == "If-None-Match" or (parameter["name"] == "format" and len(contents) > 1):
            return False
        return _parameter_name(parameter["name"], "") not in [name for name, _ in known]


def _snake(name: str) -> str:
    made = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).replace("-", "_").lower()
    return f"{made}_" if iskeyword(made) else made


def _parameter_name(name: str, path: str) -> str:
    """Return a parameter's name in Python: the id of a job is ``job_id``, and headers go without their ``X-``."""
    return "job_id" if name == "id" and "/job/{id}" in path else _snake(name.removeprefix("X-"))


def _default(schema: Schema) -> str:
    default = schema.get("default")
    return "field(default_factory=list)" if default == [] else repr(default)


def _path_expression(path: str) -> str:
    made = re.sub(r"{(\w+)}", lambda found: f"{{_quoted({_parameter_name(found[1], path)})}}", path)
    return f'f"{made}"' if made != path else f'"{path}"'


def _note(name: str, text: str) -> list[str]:
    text = " ".join(text.split())
    return textwrap.wrap(f"{name}: {text}", WIDTH - 16, subsequent_indent="    ", break_long_words=False)


def _docstring(text: str, heading: str, notes: list[str]) -> str:
    lines = textwrap.wrap(" ".join(text.replace("``", "`").split()), WIDTH - 16, break_long_words=False)
    if notes:
        lines += ["", f"{heading}:", *(f"    {note}" for note in notes)]
    made = "\n".join(lines).replace("\\", "\\\\")
    return f'"""{made}"""\n' if len(lines) == 1 else f'"""{made}\n"""\n'


def _parts(document: Schema) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each generated part."""
    client = Client(document)
    yield "methods", client.methods()
    yield "asynchronous methods", client.asynchronous()
    yield "types", f'VERSION = "{document["info"]["version"]}"\n\n\n' + client.types() + "\n"


def generated(client: str, document: Schema) -> str:
    """Return the text of the client with its generated parts made from the description."""
    for name, text in _parts(document):
        pattern = re.compile(rf"(?<=# generated: {name}\n).*?(?=^ *# end of {name}$)", re.DOTALL | re.MULTILINE)
        client, count = pattern.subn(lambda _, text=text: text, client)
        assert count == 1, f"The mark 'generated: {name}' is not in the client, or more than once."
    ruff = [str(Path(sys.executable).parent / "ruff"), "format", "--stdin-filename", str(CLIENT), "-"]
    return subprocess.run(ruff, input=client, stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    CLIENT.write_text(generated(CLIENT.read_text(encoding="utf-8"), description()), encoding="utf-8")
