"""Proofs of hw/formal that hold: hw/formal/proved.txt."""

import hashlib
import re
import subprocess
from functools import cached_property
from pathlib import Path

HEAD = """\
# Proofs that hold, and whose mutants are refuted, as `scripts/gateware formal` has found them: a digest of all
# that the result depends on. `scripts/gateware` proves those whose digest differs.
"""
# A name in front of parameters, of an instance, or of a member of a package.
USE = re.compile(r"\b(\w+)(?=\s*#\s*\(|\s+\w+\s*(?:\[[^]]*\]\s*)?\(|::)")
ABSTRACT = re.compile(r"^// formal: abstract (\w+)$", re.MULTILINE)


def abstractions(file):
    """The files of modules that a proof has in place of those of hw/rtl."""
    return [file.parent / "abstract" / f"{name}.sv" for name in ABSTRACT.findall(file.read_text(encoding="utf-8"))]


class Proved:
    """The record; if `fresh`, no proof counts as done, and what is found goes to the record."""

    def __init__(self, folder, files, fresh):
        self.folder, self.fresh, self.file, self.found = folder, fresh, folder / "proved.txt", False
        self.texts = {file.stem: file.read_text(encoding="utf-8") for file in files}
        lines = self.file.read_text(encoding="utf-8").splitlines() if self.file.exists() else []
        self.rows = dict(line.split() for line in lines if line and not line.startswith("#"))

    @cached_property
    def common(self):
        """Of every proof: what translates and asks, and the modules of proofs that several have."""
        tools = [subprocess.run(words, capture_output=True, text=True, check=True).stdout
                 for words in (["yosys", "-V"], ["z3", "--version"])]
        shared = [Path(__file__).with_name("proof.py"), *self.folder.glob("*.v"),
                  *(file for file in self.folder.glob("*.sv") if not file.stem.endswith("_formal"))]
        return [*tools, *(file.read_text(encoding="utf-8") for file in sorted(shared))]

    def digest(self, file):
        """Of a proof: its file, the modules and packages that it uses, and those that they use."""
        own = file.read_text(encoding="utf-8")
        texts = {**self.texts, **{one.stem: one.read_text(encoding="utf-8") for one in abstractions(file)}}
        wait, inside = [own], {}
        while wait:
            for name in set(USE.findall(re.sub("//.*", "", wait.pop()))) & set(texts) - set(inside):
                inside[name] = texts[name]
                wait.append(inside[name])
        words = [*self.common, own, *(inside[name] for name in sorted(inside))]
        return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]

    def holds(self, file):
        return not self.fresh and self.rows.get(file.stem) == self.digest(file)

    def add(self, file, holds):
        self.found = True
        self.rows[file.stem] = self.digest(file) if holds else ""

    def write(self):
        """Writes what was found; rows of proofs that are gone, or that no longer hold, are left out."""
        if self.fresh and self.found:
            rows = [f"{name} {digest}\n" for name, digest in sorted(self.rows.items())
                    if digest and (self.folder / f"{name}.sv").exists()]
            self.file.write_text(HEAD + "".join(rows), encoding="utf-8")
