"""Golden questions, and what a result's place comes from, on the command line."""

import json

import pytest

from service.queries.evaluation import scored
from tests.service_process import service_in, write_docs

GOLDEN = [
    {"query": "How do I install Kite?", "relevant": ["install.md"]},
    {"query": "delay between two tries", "relevant": ["/retry"]},
    {"query": "how long until a job is tried again", "facts": ["The default  is 30."]},
    {"query": "installer disk", "relevant": ["retry.md", "nowhere.md"]},
]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("eval")
    with service_in(folder) as service:
        service.set_up(write_docs(folder / "docs"))
        yield service


@pytest.fixture
def golden(tmp_path):
    def write(questions):
        file = tmp_path / "golden.jsonl"
        lines = [each if isinstance(each, str) else json.dumps(each) for each in questions]
        file.write_text("\n".join(lines), encoding="utf-8")
        return str(file)

    return write


def test_questions_are_scored_and_the_misses_listed(service, golden):
    told = service.cli("eval", golden(GOLDEN), "--domain", "kite")
    assert (told["domain"], told["questions"], len(told["commit"])) == ("kite", 4, 40)
    assert (told["recallAt5"], told["hitAt5"]) == (0.75, 0.75)
    assert (told["mrr"], told["ndcgAt10"]) == (0.5833, 0.625)  # the fact stands in the third section found
    (missed,) = told["misses"]
    assert missed["query"] == "installer disk"
    assert missed["wanted"] == ["retry.md", "nowhere.md"]
    assert missed["found"][0] == "install.md"


def test_a_threshold_that_is_missed_fails_the_command(service, golden):
    file = golden(GOLDEN)
    assert service.run("eval", file, "--min-recall", "0.75", "--min-mrr", "0.5", "--min-ndcg", "0.6").returncode == 0
    done = service.run("eval", file, "--min-recall", "0.7", "--min-mrr", "0.9")
    assert done.returncode == 1
    assert "mrr is 0.583, less than 0.9" in done.stderr
    assert "missed: installer disk" in done.stdout
    assert service.cli("eval", file, "--min-ndcg", "1", status=1)["failed"] == ["ndcg is 0.625, less than 1"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["{"], "line 1"),
        ([GOLDEN[0], '{"query": 5, "relevant": ["a"]}'], "line 2"),
        ([{"query": "a", "relevant": ["a"], "facts": ["b"]}], "relevant pages or facts, not both"),
        ([{"query": "a", "facts": [" "]}], "none of them blank"),
        ([{"query": " ", "relevant": ["a"]}], "blank"),
        ([""], "0 questions"),
    ],
)
def test_invalid_golden_questions_are_refused_with_the_line(service, golden, lines, reason):
    done = service.run("eval", golden(lines))
    assert done.returncode == 1
    assert reason in done.stderr


def test_source_page_of_a_question_does_not_answer_it(service, golden):
    question = {"query": "How do I install Kite?", "relevant": ["index.md"]}
    assert service.cli("eval", golden([question]))["mrr"] == 0.5
    assert service.cli("eval", golden([{**question, "source": "kite@1:install.md"}]))["mrr"] == 1.0


def test_a_repeated_right_answer_counts_once():
    both = scored([frozenset({0}), frozenset({0}), frozenset({1})], 2)
    assert (both.hit, both.recall, both.reciprocal_rank) == (True, 1.0, 1.0)
    assert both.ndcg == pytest.approx((1 + 0.5) / (1 + 0.63093), abs=1e-4)
    late = scored([frozenset()] * 5 + [frozenset({0})], 1)
    assert (late.hit, late.recall, late.reciprocal_rank) == (False, 0.0, pytest.approx(1 / 6))
    assert scored([], 3).ndcg == 0.0


def test_a_result_is_explained(service):
    told = service.run("search", "kite", "delai betwen tries", "--explain").stdout
    assert "points: " in told
    assert "looked for: " in told
    assert "read as" in told
    (best, *_) = service.cli("search", "kite", "delay", "--explain")["results"]
    assert best["explanation"]["heading"] > 0
    assert best["explanation"]["words"] == ["delay"]
    (best, *_) = service.cli("search", "kite", "delay")["results"]
    assert "explanation" not in best
    assert service.cli("search", "kite", "dela", "--prefix")["results"][0]["path"] == best["path"]


def test_plain_question_is_checked_for_being_answered(service, tmp_path):
    file = tmp_path / "plain.txt"
    file.write_text("How do I install Kite?\n\nWhere are zeppelins moored overnight?\n")
    told = service.cli("eval", str(file))
    assert (told["questions"], told["plain"], told["answered"], told["recallAt5"]) == (2, 2, 1, None)
    assert [(one["query"], one["wanted"]) for one in told["misses"]] == [("Where are zeppelins moored overnight?", [])]
    done = service.run("eval", str(file), "--min-answered", "0.6")
    assert done.returncode == 1
    assert "2 plain questions: 1 answered" in done.stdout
    assert "answered is 0.500, less than 0.6" in done.stderr
    assert "recall is not measured" in service.run("eval", str(file), "--min-recall", "0.1").stderr
