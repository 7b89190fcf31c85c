"""How a benchmark prints its figures: a table for people, or one JSON document."""

import json
from typing import Any


def report(bench: str, rows: list[dict[str, Any]], goals: list[dict[str, Any]], *, as_json: bool) -> None:
    """``goals``: name, goal (as words), measured, met. What was not met is shown like the rest."""
    if as_json:
        print(json.dumps({"bench": bench, "rows": rows, "goals": goals}))
        return
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [columns, *([str(row.get(column, "")) for column in columns] for row in rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(columns))]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print()
    for goal in goals:
        print(f"{'met   ' if goal['met'] else 'MISSED'}  {goal['name']}: {goal['measured']} (goal: {goal['goal']})")
