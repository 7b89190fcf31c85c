"""The sample documentation: the manual, as a folder that stays where it is."""

import shutil
from pathlib import Path

from service.runtime.scratch import scratch_folder
from service.runtime.system import program_file

MANUAL = Path(__file__).parents[1] / "manual"


def sample_folder(data: Path) -> Path:
    """Return the manual's folder: for the single binary, which unpacks into folders that go away, a copy of its own."""
    if program_file() is None:
        return MANUAL
    copy = data / "manual"
    if not copy.is_dir():
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        with scratch_folder(data, ".manual-") as unfinished:
            shutil.copytree(MANUAL, unfinished / "manual")
            (unfinished / "manual").rename(copy)
    return copy
