"""Settings as people see them: where each value comes from, what is not in effect yet, and no secrets."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from service.runtime.settings.settings import Settings
from service.runtime.settings.settings_file import Reading, Value, load_settings, read_settings, values_of

SECRET = re.compile(r"\b(sk-[\w-]{8,}|gh[pousr]_\w{10,}|github_pat_\w{10,}|glpat-[\w-]{8,}|docsmith_\w{10,})")
PASSWORD = re.compile(r"(?<=://)[^/@\s]+(?=@)")
IN_QUERY = re.compile(r"(?<==)[^&#\s]+|(?<=#).+")
"""The values of a query (api_key=…, token=…), and what follows it."""
SECRET_NAME = re.compile(r"key|token(?!s)|secret|password|authorization|credential", re.IGNORECASE)
MASK = "••••"

SINCE_START = "as it was read last"
"""The origin of a value that the file and the environment name no more."""


class SettingsReader:
    """Reader of a command's settings: each time again, from its file and the environment."""

    def __init__(self, sources: Callable[[], tuple[Path | None, Mapping[str, str]]]) -> None:
        self._sources = sources

    def __call__(self) -> Settings:
        """Return the settings as they are now. Raises BadSettings."""
        return load_settings(*self._sources())

    def reading(self) -> Reading:
        """Return the settings as they are now, with every problem, and where each value comes from."""
        return read_settings(*self._sources())


class ShownSetting(Struct, frozen=True):
    name: str
    value: str
    origin: str
    pending: str
    """The value that the file or the environment names now and that is not in effect; empty where it is."""

    @property
    def is_default(self) -> bool:
        return self.origin == "default"


class ShownSettings:
    """The settings of the running service."""

    def __init__(self, in_effect: Settings) -> None:
        self.at_start = self._newest = in_effect
        self._after_restart: frozenset[str] = frozenset()
        self.reader: SettingsReader | None = None
        """None where no command line has read them."""

    def change(self, newest: Settings, after_restart: Iterable[str]) -> None:
        """Note settings that were read again, and the names of those whose change waits for the next start."""
        self._newest, self._after_restart = newest, frozenset(after_restart)

    def read(self) -> tuple[list[ShownSetting], tuple[str, ...]]:
        """Return each setting by name, and the problems of the file and the environment as they are now."""
        reading = self.reader.reading() if self.reader else Reading(None, (), ())
        now = {one.name: one for one in reading.values}
        at_start = dict(values_of(self.at_start))
        values = {name: value for name, value in values_of(self._newest) if name not in self._after_restart}
        values |= {name: at_start[name] for name in self._after_restart & at_start.keys()}
        return [self._line(name, values[name], now.get(name)) for name in sorted(values)], reading.problems

    def _line(self, name: str, value: object, now: Value | None) -> ShownSetting:
        mine = masked(Value(name, value, ""))
        if now is None or now.value == value:
            return ShownSetting(name, written(mine.value), now.origin if now else SINCE_START, "")
        return ShownSetting(name, written(mine.value), SINCE_START, written(masked(now).value))


def masked(one: Value) -> Value:
    """Return the setting without what looks like a secret."""
    if ".extra." in one.name and (isinstance(one.value, dict | list) or SECRET_NAME.search(one.name)):
        return Value(one.name, MASK, one.origin)  # a header with a key may be within
    if isinstance(one.value, str):
        before, mark, query = PASSWORD.sub(MASK, SECRET.sub(MASK, one.value)).partition("?")
        return Value(one.name, f"{before}{mark}{IN_QUERY.sub(MASK, query)}", one.origin)
    return one


def written(value: object) -> str:
    """Return the value as a settings file has it."""
    match value:
        case None:
            return "-"
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case tuple():
            return f"[{', '.join(map(written, value))}]"
        case _:
            return str(value)
