"""Words that exclude one another, in all their forms: of an option, ``required`` and ``optional``."""

from collections.abc import Iterator
from functools import cache

_GROUPS = """
more greater larger higher longer bigger|less fewer smaller lower shorter
oldest|newest
older|newer
better|worse
best|worst
fast quick quickly|slow slowly
strong|weak
simple easy|complex difficult
before prior precede priorto earlier|after once
atleast minimum min|atmost maximum max upto
first initial earliest|second|third|last final latest
resolve fulfill|reject
same equal identical|different differ distinct
enable activate|disable deactivate
allow permit accept approve|deny reject forbid refuse prohibit disallow block
include|exclude omit
required mandatory compulsory|optional optionally
increase raise|decrease reduce
add append insert|remove delete
start begin|stop
open|close
show visible display|hide hidden hides invisible conceal
inside within|outside
always|never
automatic automatically|manual manually|interactive interactively
explicit explicitly|implicit implicitly
local locally|remote remotely
relative|absolute
public publicly|private privately|protected
positive|negative
correct right proper|reverse opposite wrong incorrect
ascending|descending
horizontal horizontally|vertical vertically
succeed success successful|fail failure error
parallel concurrent concurrently simultaneously|sequential sequentially serially
development|production
client|server
input|output
parent|child children
sender|receiver
positional|keyword named
fresh|stale
permanent permanently|temporary temporarily
static statically|dynamic dynamically
private|shared
old|new
safe secure safely securely|unsafe insecure dangerous
empty|full
single once onetime|multiple several twice
whole entire full|part partial partially portion
keep kept preserve retain|discard drop ignore lose
ignore|respect honor honour obey
subscribe|unsubscribe
connect|disconnect
public|internal
global globally|local locally
uppercase|lowercase
mutable|immutable
synchronous synchronously|asynchronous asynchronously
hourly|daily|weekly|monthly|yearly annually
plain plaintext|encrypted
read|write
import|export
encode|decode
encrypt|decrypt
compress|decompress
upgrade|downgrade
increment|decrement
upload|download
push|pull
grant|revoke
lock|unlock
left|rightside
above|below beneath under
stable|experimental unstable
recommended encouraged advised|discouraged deprecated
supported|unsupported
valid|invalid
possible|impossible
necessary|unnecessary
restricted limited|unrestricted unlimited
known|unknown
used|unused
sorted|unsorted
set|unset
signed|unsigned
safe|unsafe
stateful|stateless
present exist|absent
few|many
design mean meant intend|
fail error|
forbidden denied banned|
common|rare
directly|indirectly
active|inactive idle
"""
"""A line is a group, with ``|`` between words that exclude those on the other side."""
COMPARED = 8
"""As many groups, from the first, compare."""
PHRASES = {
    "at least": "atleast", "no less than": "atleast", "no fewer than": "atleast", "at most": "atmost",
    "no more than": "atmost", "not more than": "atmost", "up to": "upto", "cannot exceed": "atmost",
    "not exceed": "atmost", "can't exceed": "atmost", "never exceeds": "atmost", "limited to": "atmost",
    "prior to": "priorto", "one single time": "onetime", "one time": "onetime", "only once": "onetime",
    "right after": "after", "right before": "before", "right away": "now", "more than": "more", "less than": "less",
    "have to": "must", "has to": "must", "needs to": "must", "need to": "must", "required to": "must",
    "at once": "now", "even if": "evenif", "other than": "except", "on its own": "automatically",
    "by itself": "automatically", "as long as": "while",
}  # fmt: skip
"""Words that together are one."""


def _forms_of(word: str) -> Iterator[str]:
    yield word
    if len(word) < 4 or word.endswith("ly"):
        yield word + "s"
        return
    base = word.removesuffix("e")
    yield from (word + "s", base + "es", base + "ed", base + "ing", word + word[-1] + "ed", word + word[-1] + "ing")
    if word.endswith("y"):
        yield from (word[:-1] + "ies", word[:-1] + "ied")


@cache
def _table() -> dict[str, dict[int, set[int]]]:
    """Return of each form its places: the group, and its sides there."""
    found: dict[str, dict[int, set[int]]] = {}
    for number, line in enumerate(_GROUPS.strip().splitlines()):
        for side, words in enumerate(line.split("|")):
            for word in words.split():
                for form in _forms_of(word):
                    found.setdefault(form, {}).setdefault(number, set()).add(side)
    return found


def sides_of(word: str) -> dict[int, set[int]]:
    """Return the groups that a word in lower case is in, and on which side; none for most words."""
    return _table().get(word, {})
