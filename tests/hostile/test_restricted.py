"""A page that certain readers alone may see shows no one else a word of it, whatever they ask."""

import pytest

from service.domain.search import SearchFilter
from service.ports.search_index import MaterialRequest
from service.retrieval.search.query import SiteIndexes
from tests.retrieval.sites import DOMAIN, Indexed

FILES = {
    "guide.md": "# Guide\n\nInstall the gadget with pip.\n",
    "en/guide.md": "# Guide in English\n\nInstall the gadget here.\n",
    "fr/guide.md": "---\ngroups: [staff]\n---\n# Guide du zanzibarium\n\nInstaller le gadget avec zanzibarium.\n",
    "launch.md": "---\ngroups: [staff]\n---\n# Zanzibarium launch\n\n## Qwertzon\n\nStart the hyperdriven gadget.\n",
}
SECRET = ("zanzibarium", "qwertzon", "hyperdriven")
ASKED = ("zanzibariun gadget", "zanzib", "qwertzom gadget", "hyperdrivn gadget", "hyperdriv", '"the hyperdrivn gadget"')


@pytest.mark.parametrize("query", ASKED)
async def test_words_of_restricted_pages_are_not_shown(tmp_path, query):
    index = SiteIndexes(tmp_path)
    await Indexed(index).fill(FILES)
    for groups in ((), ("other",)):
        wanted = SearchFilter(groups=groups)
        for prefix in (False, True):
            shown = await index.search(DOMAIN, query, filter=wanted, explain=True, prefix=prefix, highlight=True)
            assert not [word for word in SECRET if word in repr(shown).lower()]
        material = await index.find_material(DOMAIN, MaterialRequest((query,), 3_000, filter=wanted))
        assert not [word for word in SECRET if word in repr(material).lower()]
    await index.close()


async def test_words_of_restricted_pages_are_unknown_to_others(tmp_path):
    index = SiteIndexes(tmp_path)
    await Indexed(index).fill(FILES)
    found = {
        groups: (
            await index.find_material(
                DOMAIN, MaterialRequest(("hyperdriven gadget",), 3_000, filter=SearchFilter(groups=groups))
            )
        ).words
        for groups in (("other",), ("staff",))
    }
    assert [(word.typed, word.share > 0) for word in found["other",]] == [("hyperdriven", False), ("gadget", True)]
    assert [(word.typed, word.share > 0) for word in found["staff",]] == [("hyperdriven", True), ("gadget", True)]
    await index.close()
