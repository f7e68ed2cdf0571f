"""The table of hw/docs/cycles.md, which latencies must equal to the cycle. They are added to the file POLLUX_CYCLES."""

import os
import re
from pathlib import Path

TABLE = Path(__file__).resolve().parent.parent / "docs/cycles.md"


def check(name, measured):
    """Fails unless the row has `measured`, and that is within its budget."""
    row = re.search(rf"^\| `{name}` \|.*\| (\d+) \| (\d+) \|$", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    assert row, f"no row `{name}` in {TABLE}"
    if file := os.environ.get("POLLUX_CYCLES"):
        with open(file, "a", encoding="utf-8") as out:
            out.write(f"{name} {measured}\n")
    budget, said = map(int, row.groups())
    assert measured == said, f"{name}: {measured} cycles, the table says {said}"
    assert measured <= budget, f"{name}: {measured} cycles, the budget is {budget}"
