"""The samples of MkDocs are read as MkDocs built them: addresses, titles, order and words."""

import pytest

from scripts.generators_compare import differences, read_sample, samples, written


@pytest.mark.parametrize("name", samples("mkdocs"))
def test_sample_is_read_as_mkdocs_built_it(name):
    assert list(differences(written("mkdocs", name), read_sample("mkdocs", name))) == []
