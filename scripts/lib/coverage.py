"""Reads Verilator's coverage of the lines of the RTL."""

import re
from collections import defaultdict
from pathlib import Path

# Why the whole card does not reach all of a module.
REASONS = {
    "plx_crc32": "a function that is evaluated when the card is elaborated",
    "plx_crc32_back": "a function that is evaluated when the card is elaborated",
}


def by_module(files):
    """A table: lines reached of each module by any of some cards, the worst first. A line is reached where each of its
    points is, in one instance at least."""
    points = defaultdict(int)
    for entry in (entry for file in files for entry in file.read_text(encoding="latin-1").splitlines()):
        found = re.match(r"C '(.*)' (\d+)$", entry)
        if found:
            fields = dict(part.split("\x02", 1) for part in found[1].split("\x01") if "\x02" in part)
            key = (Path(fields["f"]).stem, int(fields["l"]), fields.get("n"), fields.get("o"))
            points[key] += int(found[2])
    lines = defaultdict(lambda: True)
    for (module, line, _, _), count in points.items():
        lines[module, line] &= count > 0
    modules = defaultdict(lambda: [0, 0])
    for (module, _), reached in lines.items():
        modules[module][0] += reached
        modules[module][1] += 1
    table = ["| module | lines | reached | not reached | |", "| --- | --- | --- | --- | --- |"]
    for module, (reached, total) in sorted(modules.items(), key=lambda item: item[1][0] / item[1][1]):
        missing = sorted(line for (name, line), was in lines.items() if name == module and not was)
        table.append(f"| `{module}` | {total} | {100 * reached / total:.0f} % | {' '.join(map(str, missing))} "
                     f"| {REASONS.get(module, '') if missing else ''} |")
    return "\n".join(table)
