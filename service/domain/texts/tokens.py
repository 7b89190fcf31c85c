"""An estimate of the tokens of a text, without the tokenizer of its model.

Tokenizers differ from model to model, and loading one takes time or a network. ``tokens_in`` counts letters,
other ASCII characters (digits, punctuation, line ends) and the bytes of all others apart. Compared with the tokenizers
of GPT-4 (cl100k), GPT-4o and Claude on eleven documentation sites, code, and one site in twelve languages, the estimate
was, per site and language:

- English prose and code: 0.9 to 1.1 of the real number;
- Chinese, Japanese and Korean: 0.9 to 1.3;
- other languages: from 0.7 (Turkish, Polish, Dutch), too little, to 1.6 (Russian), too much.

So a limit that must hold needs ``SAFETY`` beside it, and a second try for the languages that it is not enough for. The
rule of four characters per token is 0.4 on Chinese.
"""

SAFETY = 0.8
"""The part of a model's window that an estimate may fill."""
PER_LETTER, PER_SIGN, PER_WIDE_BYTE = 0.21, 0.5, 0.37

_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ "


def tokens_in(text: str) -> int:
    """Return the estimated number of tokens: a few microseconds for a thousand characters."""
    return int(estimated(text)) + 1


def estimated(text: str) -> float:
    """Return the estimate before it is rounded: those of the pieces of a text add up to that of the text."""
    data = text.encode("utf-8", "replace")
    others = len(data.translate(None, _LETTERS))
    wide = 0 if text.isascii() else len(data) - len(text.encode("ascii", "ignore"))
    return (len(data) - others) * PER_LETTER + (others - wide) * PER_SIGN + wide * PER_WIDE_BYTE
