"""What a reply keeps of its passages while its model is silent, and reads again afterwards."""

import threading
from concurrent.futures import ThreadPoolExecutor

from service.assistant.addresses import KnownAddresses
from service.assistant.finding.found import FoundPassages
from service.ports.model import Passage
from service.sentences.checker import SentenceChecker
from service.sentences.passages import GivenPassage

TEXT = "Set `retries` to 5. The delay between two tries is 30 seconds."


def test_packed_passages_are_read_again():
    found = FoundPassages()
    passage = Passage(1, "Jobs", "Retries", "/jobs#retries", TEXT, 1.0)
    found.held["jobs.md", 3] = passage
    found.first = [passage]
    found.give(GivenPassage(1, TEXT, 3, "Jobs"))
    found.pack()
    found.pack()
    assert found.held == {("jobs.md", 3): passage}
    assert found.first == [passage]
    assert found.given() == (GivenPassage(1, TEXT, 3, "Jobs"),)


def test_packed_addresses_may_still_be_linked_to():
    found = FoundPassages()
    addresses = KnownAddresses("docs", "", found.addresses)
    addresses.add("See https://example.com/retries.")
    found.urls[1] = "/jobs#retries"
    found.pack()
    assert addresses("https://example.com/retries")
    assert not addresses("https://example.com/other")
    assert found.url_of(1) == "/jobs#retries"
    found.pack()
    addresses.add("And https://example.com/other.")
    assert addresses("https://example.com/retries")
    assert addresses("https://example.com/other")


def test_long_texts_are_the_same_after_packing():
    found, other = FoundPassages(), FoundPassages()
    texts = [f"{TEXT * 10}{end}" for end in ("", "\n", "é", "\ud800")]
    for number, text in enumerate(texts):
        found.give(GivenPassage(number, text))
        other.give(GivenPassage(number, text[:-1]))
        other.give(GivenPassage(number + 9, text))
    for one in (found, other, found):
        one.pack()
    assert [passage.text for passage in found.given()] == texts
    del found
    assert {passage.text for passage in other.given()} == {*texts, *(text[:-1] for text in texts)}


def test_passage_found_after_packing_is_given_too():
    found = FoundPassages()
    found.give(GivenPassage(1, TEXT))
    found.pack()
    found.give(GivenPassage(2, "More."))
    assert [passage.number for passage in found.given()] == [1, 2]


def test_threads_that_unpack_together_share_one_copy():
    found = FoundPassages()
    for number in range(2_000):
        found.give(GivenPassage(number, f"{number} {TEXT}"))
    found.pack()
    begin = threading.Barrier(4)

    def give(number):
        begin.wait()
        found.give(GivenPassage(number, "Found by a thread."))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(give, range(2_000, 2_004)))
    assert len(found.given()) == 2_004


def test_verdicts_are_the_same_after_forgetting():
    checker = SentenceChecker(["Is it 30 seconds in Magento 2.4.7?"])
    checker.add_passages([GivenPassage(1, TEXT)])
    said = "The delay between two tries is 30 seconds in Magento 2.4.7. [1](/jobs)\n\n"
    first = checker.judge(checker.feed(said))
    checker.forget_passages()
    checker.add_passages([GivenPassage(1, TEXT)])
    second = checker.judge(checker.feed(said))
    assert [check.status for check in first] == [check.status for check in second] == ["supported"]
