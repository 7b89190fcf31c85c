"""What to do about a damaged file of the data folder."""

from pathlib import Path


def next_step(says: str, data: Path) -> str:
    """To follow a message of the event store about one of its files, whose name begins it; empty if there is none."""
    if not any(word in says for word in ("malformed", "damaged", "not a database", "corrupt")):
        return ""
    match says.partition(":")[0]:
        case "views.db":
            return (
                "; docsmith serve makes this file anew when it starts. If it does not, delete it and start again: "
                f"rm {data / 'views.db'}*"
            )
        case "keys.db":
            return (
                "; without it nobody can read what people typed. Restore a backup and its vault into a new folder: "
                f"docsmith restore BACKUP --vault VAULT --data {data}-2"
            )
        case "events.db":
            return (
                f"; docsmith audit verify --data {data} says where. Restore a backup into a new folder: docsmith "
                f"restore BACKUP --vault VAULT --data {data}-2"
            )
        case _:
            return f"; docsmith doctor --data {data} says what is wrong with it"
