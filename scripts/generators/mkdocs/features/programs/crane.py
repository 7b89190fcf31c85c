import steel


def hoist() -> None:
    # --8<-- [start:lift]
    load = steel.take()
    if load:
        # --8<-- [start:inner]
        load.raise_up()
        # --8<-- [end:inner]
    # --8<-- [end:lift]
