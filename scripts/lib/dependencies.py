#!/usr/bin/env python3
"""Finds dependencies that a package does not use.

usage: scripts/lib/dependencies.py

Each package of the repository is read, inside the workspace and out of it: a crate that its Cargo.toml names has to be
named in its Rust files, those of its build script, tests, benches and examples among them. (A name that is also a word
of the code or a comment, such as `bytes`, is not told from it.) Exit status: 0 if each is.
"""

import re
import sys
import tomllib

sys.dont_write_bytecode = True

from structure import ROOT, tracked

KINDS = ("dependencies", "dev-dependencies", "build-dependencies")


def unused(manifest, inner):
    """The dependencies that no file of a package names; `inner`: folders of packages inside of it."""
    package = tomllib.loads(manifest.read_text(encoding="utf8"))
    tables = [package, *package.get("target", {}).values()]
    named = {name for table in tables for kind in KINDS for name in table.get(kind, {})}
    code = "\n".join(path.read_text(encoding="utf8") for path in tracked([f"{manifest.parent.relative_to(ROOT)}/*.rs"])
                     if not any(path.is_relative_to(folder) for folder in inner))
    return sorted(name for name in named if not re.search(rf"\b{name.replace('-', '_')}\b", code))


def main():
    if sys.argv[1:]:
        print(__doc__.split("\n\n")[1])
        return 2
    manifests = tracked(["*Cargo.toml"])
    folders = {manifest.parent for manifest in manifests}
    wrong = 0
    for manifest in manifests:
        inner = [folder for folder in folders if folder != manifest.parent and folder.is_relative_to(manifest.parent)]
        for name in unused(manifest, inner):
            wrong += 1
            print(f"{manifest.relative_to(ROOT)}: no file of the package names {name}")
    print(f"{len(manifests)} packages, {wrong} findings")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
