"""Licences of the crates that the programs and libraries contain."""

import json
import re
import subprocess
from pathlib import Path

from lib import cargo

FILES = re.compile(r"(licen[sc]e|copying|copyright|notice)", re.IGNORECASE)
# Folders of a crate, and of a library of C in it, whose code is not linked.
ASIDE = {"benches", "contrib", "doc", "docs", "examples", "fuzz", "packaging", "programs", "test", "tests", "tools"}
# The licence and how to apply it. It is on every Debian, in /usr/share/common-licenses.
APACHE = re.compile(r"Apache License\s+Version 2\.0, January 2004.*?(?:END OF TERMS AND CONDITIONS|\Z)"
                    r"(?:\s*APPENDIX: How to apply.*?limitations under the License\.)?", re.DOTALL)


def crates(roots):
    """The crates of others that these packages of the workspace are linked with, as cargo describes them."""
    words = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features",
             "--filter-platform", "x86_64-unknown-linux-gnu"]
    metadata = json.loads(subprocess.run(words, cwd=cargo.ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    links = {node["id"]: [link["pkg"] for link in node["deps"] if any(kind["kind"] is None for kind in link["dep_kinds"])]
             for node in metadata["resolve"]["nodes"]}
    members = set(metadata["workspace_members"])
    waiting = [member for member in members if packages[member]["name"] in roots]
    found = set(waiting)
    while waiting:
        new = set(links[waiting.pop()]) - found
        found |= new
        waiting += new
    return sorted((packages[crate] for crate in found - members), key=lambda crate: (crate["name"], crate["version"]))


def texts(crate):
    """What a crate's files say of its licence, but for what every Debian has."""
    folder = Path(crate["manifest_path"]).parent
    for file in sorted(folder.rglob("*")):
        if FILES.match(file.name) and file.is_file() and ASIDE.isdisjoint(file.relative_to(folder).parts[:-1]):
            text = file.read_text(encoding="utf8", errors="replace")
            if text := APACHE.sub("", text).strip():
                yield "\n".join(line.rstrip() for line in text.splitlines())


def summary(roots):
    """The crates with their licences, then each text with the crates that have it."""
    lines, users = [], {}
    for crate in crates(roots):
        name = f"{crate['name']} {crate['version']}"
        lines.append(f"  {name}: {crate['license'] or 'see its text'}")
        for text in texts(crate):
            users.setdefault(text, []).append(name)
    parts = ["\n".join(lines)]
    parts += (f"{'-' * 79}\n{', '.join(names)}:\n\n{text}" for text, names in users.items())
    return "\n\n".join(parts)
