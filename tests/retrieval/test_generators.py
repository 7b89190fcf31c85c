"""Samples of sites, read as their real generators build them (scripts/generator-oracle)."""

import pytest

from scripts.oracle.compare import SAMPLES, differences, read_sample, samples, written

ALL = [(folder.name, sample) for folder in sorted(SAMPLES.iterdir()) for sample in samples(folder.name)]


@pytest.mark.parametrize(("generator", "sample"), ALL)
def test_sample_is_read_as_its_generator_builds_it(generator, sample):
    expected = written(generator, sample)
    reading = read_sample(generator, sample, expected.docs_folder)
    assert reading.layout.kind == generator
    found = differences(expected, reading)
    assert [one for one in found if generator != "hugo" or " words " not in one] == []  # of Hugo: test_hugo_built


def test_documents_beside_the_site_are_found_from_their_folder():
    expected = written("docusaurus", "beside")
    reading = read_sample("docusaurus", "beside", "docs")
    assert {path: page.url for path, page in reading.site.pages.items()} == {
        path: page.url.rstrip("/") for path, page in expected.pages.items()
    }
