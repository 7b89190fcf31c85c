import soil
import water


def prune(branch: object) -> None:
    soil.drop(branch)


def grow() -> None:
    water.give()
