import pytest

from service.markup.mentions import mentions


@pytest.mark.parametrize(
    ("text", "is_mentioned"),
    [
        ("@docsmith please shorten this", True),
        ("Could you look, @Docsmith?", True),
        ("- one\n- @docsmith two", True),
        ("@docsmith[bot] go on", True),
        ("docsmith is a tool", False),
        ("mail me@docsmith.example", False),
        ("@docsmiths are many", False),
        ("@docsmith-team look", False),
        ("> @docsmith shorten it\n\nWhy?", False),
        ("> a quotation\n\n@docsmith explain this", True),
        ("Write `@docsmith` to ask it.", False),
        ("```\n@docsmith\n```\nThat is how.", False),
        ("```\ncode\n```\n@docsmith mend it", True),
        ("<!-- @docsmith -->\nnothing", False),
    ],
)
def test_mention_is_the_name_in_own_words(text, is_mentioned):
    assert mentions(text, "docsmith") == is_mentioned
