"""The samples of Hugo are read as Hugo built them: addresses, titles, order and words."""

import pytest

from scripts.oracle.compare import differences, read_sample, samples, written


@pytest.mark.parametrize("name", samples("hugo"))
def test_sample_is_read_as_hugo_built_it(name):
    assert list(differences(written("hugo", name), read_sample("hugo", name))) == []
