"""Everything that the instances of the service count together."""

from msgspec import Struct

from service.ports.shared.brief_counts import BriefCounts, TokenCounts
from service.ports.shared.turns import Turns
from service.ports.shared.used_once import UsedOnce


class SharedCounts(Struct, frozen=True):
    turns: Turns
    brief: BriefCounts
    tokens: TokenCounts
    once: UsedOnce
