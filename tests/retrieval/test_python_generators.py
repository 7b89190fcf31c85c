"""The samples of MkDocs and Sphinx are read as these built them: addresses, titles, order, anchors and words."""

import pytest

from scripts.oracle.compare import differences, read_sample, samples, written

SAMPLES = [(name, sample) for name in ("mkdocs", "sphinx") for sample in samples(name)]


@pytest.mark.parametrize(("name", "sample"), SAMPLES)
def test_sample_is_read_as_its_generator_built_it(name, sample):
    assert list(differences(written(name, sample), read_sample(name, sample))) == []
