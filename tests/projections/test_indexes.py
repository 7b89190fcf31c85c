"""Lists of an organization are read from an index: what others have does not make them slower."""

import sqlite3
from contextlib import closing

import pytest

from service.projections.sites import SitesView


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM sites WHERE organization_id = ? AND domain > '' ORDER BY domain LIMIT 50",
        "SELECT domain FROM sites WHERE organization_id = ?",
        "SELECT count(*) FROM sites WHERE organization_id = ?",
    ],
)
def test_sites_of_an_organization_are_found_by_an_index(sql):
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SitesView.tables)
        ((*_, plan),) = db.execute(f"EXPLAIN QUERY PLAN {sql}", ("a",))
    assert "sites_by_organization" in plan
