#!/usr/bin/env python3
"""Whether the files and folders that the pages name exist.

usage: scripts/lib/paths.py

Reads README.md, docs/ and hw/ for paths in backquotes that begin with a folder of the repository, and fails
where there is no such file. `*`, and a word in capital letters, stand for any name.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
NAMED = re.compile(r"`((?:apps|benches|docs|hw|mempool|pipelines|pmd|scripts)/[\w./*-]+)")
ANY = re.compile(r"\b[A-Z]{4,}(?=[/_.]|$)(?!\.md)")
# What the step-by-step pages have the reader create.
EXAMPLES = {"pmd/fuzz/fuzz_targets/x.rs", "hw/rtl/waivers.vlt"}


def main():
    if sys.argv[1:]:
        sys.exit(__doc__)
    pages = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    missing, named = [], 0
    for page in pages.stdout.split():
        for path in NAMED.findall((ROOT / page).read_text()):
            named += 1
            if path not in EXAMPLES and not any(ROOT.glob(ANY.sub("*", path.rstrip("/.")))):
                missing.append(f"{page}: there is no {path}")
    print("\n".join(missing), file=sys.stderr)
    print(f"{named} paths, {len(missing)} of them missing")
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main())
