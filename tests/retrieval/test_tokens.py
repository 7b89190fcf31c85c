"""The estimate of tokens, beside what real tokenizers count."""

import pytest

from service.domain.texts.tokens import tokens_in

ENGLISH = "The server answers within ten seconds, or the request is tried again by the next instance in the list."
CODE = 'def main(path: str, *, depth: int = 0) -> None:\n    for name in os.listdir(path):\n        print(f"{name}")\n'
CHINESE = "服务器会在十秒钟之内作出回答、否则请求将由列表中的下一个实例再次尝试。"
JAPANESE = "サーバーは十秒以内に応答します。応答がない場合は、次のインスタンスが再試行します。"


@pytest.mark.parametrize(
    ("text", "cl100k", "claude"), [(ENGLISH, 21, 21), (CODE, 31, 35), (CHINESE, 32, 29), (JAPANESE, 41, 40)]
)
def test_estimate_is_near_what_tokenizers_count(text, cl100k, claude):
    assert 0.75 * min(cl100k, claude) <= tokens_in(text) <= 1.5 * max(cl100k, claude)


def test_any_text_has_an_estimate():
    assert tokens_in("") == 1
    assert tokens_in("\ud800") >= 1
