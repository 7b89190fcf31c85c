"""Code in text that is still being written."""

from service.markup.streaming.code import MAX_SPAN, CodeLexer


def test_span_that_never_ends_is_text():
    lexer = CodeLexer()
    lexer.run("`", "")
    assert lexer.ticks == 1
    lexer.text(MAX_SPAN - 10)
    assert lexer.ticks == 1
    lexer.run("``", "x")  # of another length: it does not end the span, and counts
    lexer.run("~" * 8, "x")
    assert (lexer.ticks, lexer.in_span) == (1, MAX_SPAN)
    lexer.run("``", "x")
    assert lexer.ticks == 0
