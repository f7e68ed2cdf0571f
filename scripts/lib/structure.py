#!/usr/bin/env python3
"""Finds circles of imports between source files, and long files.

usage: scripts/lib/structure.py [--list] [FOLDER...]

Reads the Rust files of the workspace's packages, or of the packages in the folders given: their sources, tests, benches
and examples. Fails where files import each other in a circle or a file has more than 500 lines. With --list it prints
what it finds and does not fail.

An import is a path in a `use` or in the code that names an item of another file of the package. A re-export is followed
to the file that defines the item. `mod x;` is no import, a path from a parent into its child is one. Imports of unit
tests are not read: files and modules behind `cfg(test)` or `cfg(doctest)`, and files named tests.rs.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LONGEST = 500

# The targets of a package: its library and program, tests, benches and examples.
TARGETS = ("src/lib.rs", "src/main.rs", *(f"{folder}/{name}" for folder in ("tests", "benches", "examples")
                                          for name in ("*.rs", "*/main.rs")))

# Comments, strings, characters and lifetimes, which may hold words or brackets that are not syntax.
TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|\bb?r(?P<hashes>\#*)".*?"(?P=hashes)
                     |b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^'\n]*|[^\\\n'])'|'\w+""", re.DOTALL | re.VERBOSE)
TEST = re.compile(r"#\[cfg\((?!not\b)[^\]]*\b(?:doc)?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*")
MODULE = re.compile(r"(?:#\[path = (?P<path>\d+)\]\s*)?(?P<public>\bpub(?:\([^)]*\))?\s+)?\bmod\s+(?P<name>\w+)\s*(?P<end>[;{])")
USE = re.compile(r"\buse\s+([^;]*);")
ITEM = re.compile(r"\b(?:fn|struct|enum|union|trait|type|const|static|mod|macro_rules!)\s+(?:mut\s+)?(\w+)")
VISIBILITY = re.compile(r"\bpub\s*\([^)]*\)")
PATH = re.compile(r"(?<![\w:$])(?:::)?\w+(?:\s*::\s*\w+)+")


class Module:
    """A module: its file, its parent, its children, and its imports by name."""

    def __init__(self, path, parent, name):
        self.path, self.parent, self.name = path, parent, name
        self.children, self.names, self.globs, self.items = {}, {}, [], set()
        self.paths = []

    def root(self):
        return self.parent.root() if self.parent else self


def without_comments(text):
    """A text with blanks for comments and the contents of strings, so that offsets are unchanged."""
    return TOKEN.sub(lambda token: re.sub(r"[^\n]", " ", token[0]) if token[0][0] in "/'"
                     else '"' + re.sub(r"[^\n]", " ", token[0][1:-1]) + '"', text)


def closing(code, at):
    """Where the bracket closes that opens at `at`."""
    depth = 0
    for at in range(at, len(code)):
        depth += (code[at] in "([{") - (code[at] in ")]}")
        if depth == 0:
            return at
    return len(code)


def without_tests(code):
    """A code with blanks for the items that only a test has."""
    at = 0
    while found := TEST.search(code, at):
        end = found.end()
        # An item ends with a semicolon or a block, whichever is first outside of parentheses.
        while end < len(code) and code[end] not in ";{":
            end = closing(code, end) + 1 if code[end] in "([" else end + 1
        if re.match(r"(?:pub(?:\([^)]*\))?\s+)?use\b", code[found.end():]):
            end = code.find(";", end)
        elif code[end:end + 1] == "{":
            end = closing(code, end)
        code = code[:found.start()] + re.sub(r"[^\n]", " ", code[found.start():end + 1]) + code[end + 1:]
        at = found.start()
    return code


def tree(text):
    """The paths of a `use`, each with the name by which it is known; a glob has the name `*`."""
    text = re.sub(r"\s+", " ", text.strip())
    if "{" not in text:
        path, _, name = text.partition(" as ")
        path = [part.strip() for part in path.split("::")]
        name = name or (path[-2] if path[-1] == "self" and len(path) > 1 else path[-1])
        yield path, name
        return
    stem, rest = text.split("{", 1)
    rest, depth, begin = rest[:rest.rindex("}")] + ",", 0, 0
    for at, character in enumerate(rest):
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            if rest[begin:at].strip():
                yield from tree(stem + rest[begin:at].strip())
            begin = at + 1


class Package:
    """The modules of one target of a package."""

    def __init__(self, root_file):
        self.files, self.modules = set(), []
        self.read(Module(root_file, None, "crate"), root_file.parent)

    def read(self, module, folder):
        """Reads the file of a module, whose children are in the folder."""
        self.files.add(module.path)
        text = module.path.read_text(encoding="utf-8")
        code = without_tests(without_comments(text))
        self.scan(module, code, folder)

    def scan(self, module, code, folder):
        """Reads the code of a module."""
        self.modules.append(module)
        at, own = 0, []
        while found := MODULE.search(code, at):
            own.append(code[at:found.start()])
            at, name = found.end(), found["name"]
            if found["end"] == "{":
                at = closing(code, found.end() - 1)
                child = Module(module.path, module, name)
                module.children[name] = child
                self.scan(child, code[found.end():at], folder / name)
                at += 1
                continue
            for path in (folder / f"{name}.rs", folder / name / "mod.rs"):
                if path.exists() and name != "tests":
                    child = Module(path, module, name)
                    module.children[name] = child
                    self.read(child, folder / name)
        own = "".join(own) + code[at:]
        for use in USE.finditer(own):
            for path, name in tree(use[1]):
                if path[-1] == "*":
                    module.globs.append(path[:-1])
                elif name != "_":
                    module.names[name] = path
                module.paths.append(path)
        own = VISIBILITY.sub("", USE.sub("", own))
        module.items = {item[1] for item in ITEM.finditer(own)}
        module.paths += [re.sub(r"\s", "", path[0]).split("::") for path in PATH.finditer(own)]

    def file(self, module, path, seen=()):
        """The file that defines the item of a path, or `None` for another package."""
        here, rest = module, list(path)
        if (id(module), tuple(rest)) in seen or not rest or not rest[0]:
            return None
        seen = (*seen, (id(module), tuple(rest)))
        if rest[0] in ("crate", "self", "super"):
            while rest and rest[0] in ("crate", "self", "super"):
                word = rest.pop(0)
                here = here.root() if word == "crate" else here.parent or here if word == "super" else here
        elif rest[0] not in here.children and rest[0] not in here.names:
            return self.through_globs(here, rest, seen) if rest[0] not in here.items else None
        while rest:
            name = rest[0]
            if name in ("self", "*"):
                break
            # A name may be a module and an item (a function, say): the last part is the item.
            if name in here.children and not (len(rest) == 1 and name in here.names and here.names[name] != [name]):
                here = here.children[name]
                rest.pop(0)
            elif name in here.names:
                # A crate of the same name (`use anyhow::anyhow`).
                return None if here.names[name][0] == name else self.file(here, here.names[name] + rest[1:], seen)
            elif name in here.items:
                break
            else:
                return self.through_globs(here, rest, seen) or here.path
        return here.path

    def through_globs(self, module, rest, seen):
        """The file that defines a name among a module's glob imports."""
        for glob in module.globs:
            if self.defines(module, glob, rest[0], seen):
                return self.file(module, glob + rest, seen)
        return None

    def defines(self, module, path, name, seen):
        """Whether the module that a path names has a name."""
        here = module
        for word in path:
            here = {"crate": here.root(), "self": here, "super": here.parent}.get(word) or here.children.get(word)
            if here is None:
                return False
        return name in here.items or name in here.names or name in here.children

    def imports(self):
        """Which file imports from which others."""
        found = {path: {} for path in self.files}
        for module in self.modules:
            for path in module.paths:
                target = self.file(module, path)
                if target and target != module.path:
                    found[module.path].setdefault(target, set()).add(path[-1])
        return found


def circles(imports):
    """Strongly connected components of more than one file (Tarjan's algorithm)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in imports.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            members = []
            while not members or members[-1] != node:
                members.append(stack.pop())
            if len(members) > 1:
                found.append(sorted(members))

    for node in sorted(imports):
        if node not in index:
            visit(node)
    return sorted(found)


def tracked(folders):
    """The files of the repository in the folders, new ones among them."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *folders],
                            cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted(path for name in set(listed.splitlines()) if (path := ROOT / name).exists())


def sources(folders):
    """The Rust files in the folders."""
    return [path for path in tracked(folders) if path.suffix == ".rs"]


def packages(folders):
    """The targets of the packages in the folders."""
    for manifest in tracked(folders):
        if manifest.name == "Cargo.toml":
            for pattern in TARGETS:
                for path in sorted(manifest.parent.glob(pattern)):
                    yield Package(path)


def main(arguments):
    sys.setrecursionlimit(10000)
    only_list = "--list" in arguments
    folders = [argument for argument in arguments if argument != "--list"]
    if any(argument.startswith("-") for argument in folders):
        print(__doc__.split("\n\n")[1])
        return 2
    wrong = count = 0
    for package in packages(folders or ["."]):
        count += len(package.files)
        imports = package.imports()
        for circle in circles(imports):
            wrong += 1
            print(f"a circle of {len(circle)} files:")
            for path in circle:
                for other in sorted(imports[path]):
                    if other in circle:
                        names = ", ".join(sorted(imports[path][other]))
                        print(f"  {path.relative_to(ROOT)} -> {other.relative_to(ROOT)}: {names}")
    for path in sources(folders or ["."]):
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST:
            wrong += 1
            print(f"{path.relative_to(ROOT)}: {lines} lines, more than {LONGEST}")
    if only_list or not wrong:
        print(f"{count} files, {wrong} findings")
        return 0
    print(f"{wrong} findings: move the items that both files need into a file that imports neither; split a long file at a "
          "seam")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
