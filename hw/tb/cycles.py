"""The table of hw/docs/cycles.md, which latencies must equal to the cycle."""

import re
from pathlib import Path

TABLE = Path(__file__).resolve().parent.parent / "docs/cycles.md"


def check(name, measured):
    """Fails unless the row has `measured`, and that is within its budget."""
    row = re.search(rf"^\| `{name}` \|.*\| (\d+) \| (\d+) \|$", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    assert row, f"no row `{name}` in {TABLE}"
    budget, said = map(int, row.groups())
    assert measured == said, f"{name}: {measured} cycles, the table says {said}"
    assert measured <= budget, f"{name}: {measured} cycles, the budget is {budget}"
