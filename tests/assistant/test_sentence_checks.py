"""Sentences of an answer against the passages that it was made from."""

import pytest

from service.assistant.answer import answer
from service.assistant.question import AnswerSettings, Question
from service.domain.threads.replies import SentencesChecked
from service.sentences.checker import SentenceChecker
from service.sentences.passages import GivenPassage
from tests.assistant.scripted_model import ScriptedModel
from tests.fakes.search_index import FakeSearchIndex

PROBES = """\
## Configure probes

* `periodSeconds`: How often (in seconds) to perform the probe. Default to 10
seconds. Minimum value is 1.
* `timeoutSeconds`: Number of seconds after which the probe times out. Defaults to 1 second.
* `failureThreshold`: When a probe fails, Kubernetes will try `failureThreshold` times before giving up.
Defaults to 3. Minimum value is 1.

An upload has at most 1,000 files of 2 MB each; it is kept for 1 minute. The server does not verify the certificate.

```yaml
livenessProbe:
  httpGet:
    path: /healthz
    port: 8080
```

```shell
kubectl apply -f probe.yaml
kubectl get pods --watch
```
"""
OTHER = "The cache is `enabled` by default. Set `cache.ttl` to `false` to turn it off. Redis keeps 64 entries."


def checked(text, *, said=(), size=None):
    checker = SentenceChecker(said)
    checker.add_passages([GivenPassage(1, PROBES, 20, "Probes"), GivenPassage(2, OTHER, 1, "Cache")])
    units = []
    for at in range(0, len(text), size or len(text)):
        units += checker.feed(text[at : at + (size or len(text))])
    checker.judge([*units, *checker.finish()])
    return checker


def verdict(text, **more):
    (check,) = checked(text, **more).checks
    return check.status, check.missing


@pytest.mark.parametrize(
    "sentence",
    [
        "The probe is performed every 10 seconds [1](/p).",
        "By default a probe runs each ten seconds and times out after a second [1](/p).",
        "`failureThreshold` is three unless you set it [1](/p).",
        "You may upload 1000 files of 2 megabytes each [1](/p).",
        "At most 1k files are uploaded, and they are kept for 60 seconds [1](/p).",
        "Set `port: 8080` below `httpGet` [1](/p).",
        "Run `kubectl apply -f YOUR_FILE.yaml` and then `kubectl get pods --watch` [1](/p).",
        "- **Timeout**: `timeoutSeconds` defaults to 1 [1](/p).",
        "| `periodSeconds` | 10 seconds | [1](/p) |",
        "Die Prüfung läuft alle 10 Sekunden (`periodSeconds`) [1](/p).",
        "プローブは10秒ごとに実行されます [1](/p)。",
        "The cache (i.e. `cache.ttl`) is enabled by default, e.g. with Redis [2](/c).",
    ],
)
def test_true_sentences_are_supported(sentence):
    assert verdict(sentence) == ("supported", ())


@pytest.mark.parametrize(
    ("sentence", "missing"),
    [
        ("The probe is performed every 25 seconds [1](/p).", "25 seconds"),
        ("You may upload 1500 files [1](/p).", "1500"),
        ("Files of 2 GB can be uploaded [1](/p).", "2 GB"),
        ("`timeoutSeconds` defaults to 3 seconds [1](/p).", "3"),
        ("Set `retrySeconds` to 10 for more probes [1](/p).", "retrySeconds"),
        ("Run `kubectl get pods --follow` to see them [1](/p).", "--follow"),
        ("The cache keeps its entries in PostgreSQL [2](/c).", "PostgreSQL"),
        ("Setze `ttl_seconds` auf den Wert [2](/c).", "ttl_seconds"),
        ("The server does verify the certificate [1](/p).", "not"),
    ],
)
def test_slips_are_marked_with_what_is_missing(sentence, missing):
    status, found = verdict(sentence)
    assert status == "unsupported"
    assert missing in found


def test_block_of_code_has_one_verdict_at_its_first_slip():
    text = (
        "```yaml\nlivenessProbe:\n  httpGet:\n    path: /healthz\n    port: 9999\n```\n\n"
        "```shell\nkubectl apply -f my-probe.yaml\nkubectl delete -f probe.yaml\n```\n\n"
        "```yaml\nhttpGet:\n  port: 8080\n```\n"
    )
    found = checked(text).checks
    assert [(check.text, check.missing) for check in found] == [
        ("port: 9999", ("9999",)),
        ("kubectl delete -f probe.yaml", ("delete",)),
        ("httpGet:", ()),
    ]
    assert all(text[check.start :].lstrip().startswith(check.text) for check in found)


CALLS = """\
```py
app.add(
    Zip,
    level=9,  # 1 to 9
    size=500,
)
```

The method `app.add()` takes what is to be added. Write `build: {` to begin.

| Flag | Use |
|---|---|
| `--force` | ignores the cache |

Run `kite build` or `kite serve`. Zip is off by default. It does **not** apply to folders.
"""


def of_pages(text, *pages):
    checker = SentenceChecker()
    checker.add_passages([GivenPassage(number, page, 1, head) for number, (head, page) in enumerate(pages, start=1)])
    checker.judge([*checker.feed(text), *checker.finish()])
    return [(check.status, check.missing) for check in checker.checks]


@pytest.mark.parametrize(
    "text",
    [
        "Call `app.add(Zip, level=9, size=500)` [1](/p).",
        "```py\napp.add(Zip, level=9, size=500)\n```\n[1](/p)",
        "Run `kite --force` to ignore the cache [1](/p).",
        "| Flag | Meaning |\n| --- | --- |\n| `--force` | ignores the cache [1](/p) |",
        "It applies to files, and so on, but not to folders [1](/p).",
    ],
)
def test_code_is_judged_by_its_tokens_however_it_is_laid_out(text):
    assert of_pages(text, ("Kite", CALLS)) == [("supported", ())]


@pytest.mark.parametrize("text", ["})", "| Flag | Meaning |\n|---|---|\n", "```js\n})\n```", "* * *"])
def test_marks_brackets_and_heads_of_tables_say_nothing(text):
    assert of_pages(f"{text}\n", ("Kite", CALLS)) == []


def test_name_that_only_the_heading_has_is_text():
    page = ("Options kite.port", "- **Default:** `5173`")
    assert of_pages("The default of `kite.port` is 5173 [1](/p).", page) == [("supported", ())]
    assert of_pages("The default of `kite.port` is 3000 [1](/p).", page) == [("unsupported", ("3000",))]


def test_any_cited_passage_supports_in_any_order():
    one, other = (
        ("Server", "Run `kite serve --port 80` now."),
        ("Build", "Run `kite build`, or `kite serve --port 80`."),
    )
    for pages in ((one, other), (other, one)):
        for cited in ("[1](/p)", "[2](/p)", "[1](/p) [2](/p)"):
            assert of_pages(f"Start it with `kite serve --port 80` {cited}.", *pages) == [("supported", ())]


def test_number_of_another_passage_is_no_support_where_the_cited_one_has_another():
    pages = ("Retries", "The worker retries a failed upload 3 times."), ("Limits", "A folder may hold 5 uploads.")
    assert of_pages("The worker retries a failed upload 3 times [1](/p).", *pages) == [("supported", ())]
    assert of_pages("The worker retries a failed upload 5 times [1](/p).", *pages) == [("unsupported", ("5",))]


def test_unit_that_the_text_names_is_the_numbers():
    page = ("Zip", "`minimum_size` - the smallest size in bytes. Defaults to `500`.")
    assert of_pages("Replies below 500 bytes are left alone (`minimum_size`) [1](/p).", page) == [("supported", ())]
    assert of_pages("Replies below 500 KB are left alone (`minimum_size`) [1](/p).", page) == [
        ("unsupported", ("500 KB",))
    ]


def test_contrary_of_one_word_is_marked():
    page = ("Zip", CALLS)
    assert of_pages("It does apply to folders [1](/p).", page) == [("unsupported", ("not",))]
    assert of_pages("It doesn't apply to folders [1](/p).", page) == [("supported", ())]


def test_citation_further_below_stands_for_what_cites_nothing():
    assert of_pages(
        "```py\napp.add(Zip, level=9)\n```\n\nThat is all that `app.add` needs [1](/p).", ("Kite", CALLS)
    ) == [
        ("supported", ()),
        ("supported", ()),
    ]


def test_names_that_code_defines_itself_may_be_anything():
    code = "```python\ndef run_it(pods):\n    waiting = get(pods)\n    return run_it(waiting)\n```\n"
    assert not checked(code).summary.marked


@pytest.mark.parametrize(
    "sentence",
    [
        "Hello!",
        "Here is how:",
        "Do you want 99 of them?",
        "The documentation does not say whether 99 are allowed.",
        "Let me know if you need `more`.",
        "Die Dokumentation sagt das nicht.",
        "### Set it to 99",
        "**Set it to 99** [1](/p)",
    ],
)
def test_sentences_without_claim_are_not_judged(sentence):
    assert checked(sentence).checks == ()


def test_sentence_that_cites_elsewhere_is_partly_supported():
    assert verdict("The probe is performed every 10 seconds [2](/c).") == ("partly", ())
    assert verdict("The probe is performed every 10 seconds.") == ("partly", ())


def test_citation_stands_for_its_paragraph():
    found = checked("A probe is performed every 10 seconds. It times out after 1 second [1](/p).").checks
    assert [check.status for check in found] == ["supported", "supported"]


def test_citation_of_a_title_stands_for_what_is_below():
    found = checked(
        "**Probes** [1](/p)\n\n> A probe is performed every 10 seconds.\n>\n> ```\n> port: 8080\n> ```\n"
    ).checks
    assert [(check.status, check.text) for check in found] == [
        ("supported", "A probe is performed every 10 seconds."),
        ("supported", "port: 8080"),
    ]


def test_verdict_names_passage_and_lines():
    (check,) = checked("- `timeoutSeconds`: one second [1](/p).").checks
    assert (check.passage, check.start_line, check.start) == (1, 24, 0)


def test_what_the_reader_said_is_not_marked():
    sentence = "With `shopper_id` in Magento, run `kubectl apply -f probe.yaml` [1](/p)."
    assert verdict(sentence)[0] == "unsupported"
    assert verdict(sentence, said=["How do I do that with shopper_id in Magento?"]) == ("supported", ())


@pytest.mark.parametrize("size", [1, 3, 17, 10_000])
def test_verdicts_do_not_depend_on_chunks(size):
    text = (
        "A probe runs every 10 seconds. [1](/p) It uses e.g. `httpGet`, v1.2.\nSoft wrap goes on [1](/p).\n\n1. One: "
        "`failureThreshold` is 44. [1](/p)\n2. Two.\n\n| a | b |\n|---|---|\n| `timeoutSeconds` | 9 |\n\n> ```yaml\n"
        "> port: 8080\n> ```\n\n```\nkubectl get pods --wide\n```\nLast 77"
    )
    assert checked(text, size=size).checks == checked(text).checks
    assert "".join(text[check.start :][:4] for check in checked(text).checks).startswith("A pr")


def test_marked_sentence_is_shown_as_readers_see_it():
    """In an answer ``<`` is written ``&lt;``; the pages that show the sentence escape it once more."""
    shown = [
        check.text
        for check in checked("Put &lt;b> and `&lt;` &amp; wait 77 seconds.\n\n```\n&lt;port 99\n```\n").checks
    ]
    assert shown == ["Put <b> and `&lt;` & wait 77 seconds.", "&lt;port 99"]


async def test_reply_ends_with_all_verdicts_and_records_the_marked():
    index, model = FakeSearchIndex(), ScriptedModel(["Connect it [1]. Wait ", "77 s [1].\n"])
    index.put("docs", {"deploy.md": "# Deploy\n\nTo deploy, connect it and wait 7 s.\n"})
    asked = Question("docs", "msg_1", "How do I deploy it?")
    events = [
        event async for event in answer(asked, index=index, model=model, settings=AnswerSettings(suggestions=False))
    ]
    *_, checked, done = events
    assert isinstance(checked, SentencesChecked)
    assert [one.status for one in checked.checks.sentences][-1] == "unsupported"
    assert [one.missing for one in done.checks.sentences] == [("77 s",)]
    assert done.checks.counts == checked.checks.counts


MODES = """\
The field `cache.mode` can be "Fast" or "Safe". "Safe" is the default value of the cache's mode.

Do not enable debug mode when deploying in production. Enable the cache in production.
"""


@pytest.mark.parametrize(
    ("sentence", "missing"),
    [
        ("The modes of the cache are `Fast` and `Safe`; `Safe` is what you get if you set nothing [1](/p).", ()),
        ("The modes of the cache are `Fast` and `Safe`; `Fast` is what you get if you set nothing [1](/p).", ("fast",)),
        ("Do not enable debug mode in production [1](/p).", ()),
        ("Do enable debug mode in production [1](/p).", ("not",)),
        ("Enable the cache in production [1](/p).", ()),
    ],
)
def test_contrary_of_a_default_or_ban_is_marked(sentence, missing):
    checker = SentenceChecker()
    checker.add_passages([GivenPassage(1, MODES)])
    (check,) = checker.judge([*checker.feed(sentence), *checker.finish()])
    assert (check.missing, check.status == "unsupported") == (missing, missing != ())


def test_passages_of_two_replies_do_not_mix():
    one, other = SentenceChecker(["Which port?"]), SentenceChecker(["Which port?"])
    page = "Kite listens on port 8080."
    one.add_passages([GivenPassage(1, page, start_line=3), GivenPassage(2, "Workers wait 30 seconds.")])
    other.add_passages([GivenPassage(1, "The queue holds 500 jobs."), GivenPassage(4, page, start_line=9)])
    claim = "Kite listens on port 8080 [1](/a). Workers wait 30 seconds [2](/b)."
    first, second = one.judge([*one.feed(claim), *one.finish()])
    assert (first.status, first.passage, first.start_line, second.status) == ("supported", 1, 3, "supported")
    first, second = other.judge([*other.feed(claim), *other.finish()])
    assert (first.status, first.passage, first.start_line, second.status) == ("partly", 4, 9, "unsupported")


@pytest.mark.parametrize("word", ["s\u0131x", "f\u0130ve"])
def test_number_word_with_turkish_letter_is_no_number(word):
    checker = SentenceChecker()
    checker.add_passages([GivenPassage(1, f"Workers wait {word} or ten seconds.")])
    (check,) = checker.judge([*checker.feed(f"Workers wait {word} or 10 seconds [1](/a)."), *checker.finish()])
    assert check.status == "supported"


@pytest.mark.parametrize(("text", "heading"), [("Kite reads files.\n\n```kitefile", ""), ("", "The kitefile")])
def test_passage_that_ends_at_a_fence_or_heading_is_read(text, heading):
    checker = SentenceChecker()
    checker.add_passages([GivenPassage(1, text, 1, heading)])
    (check,) = checker.judge([*checker.feed("Kite reads files of a `kitefile` [1](/a)."), *checker.finish()])
    assert (check.status, check.missing) == ("supported", ())


LANDING = """\
A kite is unpacked before the first flight, and its line is checked after each landing.

The `height` field is optional, while the `line` field is required. Some kites keep their logs for a week.

Each flight may use a second line. The line must not touch the ground. A log can hold at most 4 MB.

`kite land` takes precedence over `kite fly`. The left wing is called the heuristic wing, because its cloth bends.
"""


@pytest.mark.parametrize(
    ("true", "false"),
    [
        ("A kite is unpacked before its first flight.", "A kite is unpacked after its first flight."),
        ("The `height` field is optional.", "The `height` field is required."),
        ("Some kites keep their logs for a week.", "All kites keep their logs for a week."),
        ("A flight may use a second line.", "A flight must use a second line."),
        ("The line must not touch the ground.", "The line may touch the ground."),
        ("The line must not touch the ground.", "The line must touch the ground."),
        ("A log can hold at most 4 MB.", "A log can hold at least 4 MB."),
        ("`kite land` wins over `kite fly`.", "`kite fly` wins over `kite land`."),
        ("It is called the heuristic wing.", "It is called the floating wing by the ornithopter."),
        (
            "The cloth of the left wing bends.",
            "The wing is called so because sailors wanted cheaper harbour insurance contracts.",
        ),
    ],
)
def test_contrary_by_a_word_that_excludes_another_is_marked(true, false):
    assert [status for status, _ in of_pages(f"{true[:-1]} [1](/p).", ("Landing", LANDING))] == ["supported"]
    assert [status for status, _ in of_pages(f"{false[:-1]} [1](/p).", ("Landing", LANDING))] == ["unsupported"]


def test_number_of_a_list_item_is_no_source_of_a_size():
    page = ("Steps", "4. The kite sends its log, at most 2 MB.")
    assert of_pages("The kite sends its log, at most 4 MB [1](/p).", page) == [("unsupported", ("4 MB",))]


@pytest.mark.parametrize(
    ("sentence", "status"),
    [("Logs are off by default [1](/p).", "supported"), ("Logs are on by default [1](/p).", "unsupported")],
)
def test_default_that_is_switched_is_held_against_true_and_false(sentence, status):
    page = ("Logs", "`logs`: whether the kite has logs. Default is `false`.")
    assert [found for found, _ in of_pages(sentence, page)] == [status]
