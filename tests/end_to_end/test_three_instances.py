"""Tests of one instance that three of them pass as well, behind a round robin: each request goes to another one.

With DOCSMITH_TESTS_INSTANCES all end-to-end tests run like this.
"""

import pytest

from tests.end_to_end.test_job_api import (  # noqa: F401 - to be run here, too
    test_a_job_goes_on_in_the_same_pull_request,
    test_jobs_are_listed_newest_first_page_by_page,
    test_message_with_a_key_is_recorded_once,
    test_of_many_at_once_with_one_key_one_becomes_a_job,
    test_waiting_ends_with_the_job,
)
from tests.end_to_end.test_jobs import (  # noqa: F401
    test_a_merge_is_recorded_and_indexed,
    test_an_instruction_becomes_a_pull_request,
    test_the_events_go_on_from_the_last_one_that_was_seen,
)
from tests.end_to_end.test_search_api import (  # noqa: F401
    post,
    test_a_page_is_read_whole_by_any_of_its_names,
    test_sections_are_found_best_first_with_their_address,
)
from tests.end_to_end.test_threads import (  # noqa: F401
    test_a_follow_up_joins_its_thread,
    test_recorded_reply_equals_the_sent_one,
)
from tests.instances import instances_in
from tests.service_process import INSTANCES, write_docs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(INSTANCES), reason="all tests run against several instances already"),
]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("three")
    with instances_in(folder, {}, count=3) as service:
        service.set_up(write_docs(folder / "docs"))
        service.start()
        yield service
