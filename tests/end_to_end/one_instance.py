"""Tests that cannot apply to several instances behind a round robin, and why. Each entry is a test, or one case of it.

``conftest`` skips them where DOCSMITH_TESTS_INSTANCES is set.
"""

VAULT_FILE = "the vault is a database here, and has no file that could be moved away or put back"
VERSION = "the log and the vault are databases here, without a file's version; test_schema_versions has the like"
DISK = "the log is in PostgreSQL here, not on the disk that is full or read-only; test_log_away has the like"
SUPERVISED = "a supervisor talks to one process, and these would share its socket"
LOCK = "locks the file of the log against a start; in PostgreSQL a start waits for nobody"
OWNER = "the log, whose owner is looked at, is a database here"

REASONS = {
    "test_faults.py::test_a_log_without_its_vault_is_not_given_a_new_one": VAULT_FILE,
    "test_faults.py::test_a_folder_of_a_newer_program_is_refused[events.db]": VERSION,
    "test_faults.py::test_a_folder_of_a_newer_program_is_refused[keys.db]": VERSION,
    "test_faults.py::test_full_disk_refuses_what_it_cannot_keep_and_heals_itself": DISK,
    "test_erasure.py::test_a_vault_that_was_put_back_forgets_again": VAULT_FILE,
    "test_unwritable_data.py::test_full_disk_is_reported_until_there_is_space": DISK,
    "test_unwritable_data.py::test_search_goes_on_from_a_start_on_a_full_disk": DISK,
    "test_unwritable_data.py::test_search_goes_on_from_a_start_on_a_read_only_disk": DISK,
    "test_unwritable_data.py::test_limit_that_no_look_finds_is_reported_once_it_is_met": DISK,
    "test_operations.py::test_supervisor_is_notified_how_it_goes": SUPERVISED,
    "test_operations.py::test_a_service_that_still_starts_can_be_stopped": LOCK,
    "test_operations.py::test_root_leaves_nothing_in_the_folder_of_another_user": OWNER,
}


def reason_for(node: str) -> str | None:
    """Return why a test, named as pytest does, cannot apply; None where it can."""
    name = node.rpartition("/")[2]
    return REASONS.get(name) or REASONS.get(name.partition("[")[0])
