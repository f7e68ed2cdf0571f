"""Cargo commands of the scripts."""

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

# For maturin: with it the Python package of a test is built as the tests are.
AS_TESTS = {"CARGO": str(ROOT / "scripts/lib/python/cargo")}


def target_directory():
    """CARGO_TARGET_DIR, the setting of a configuration file, or target/, from cargo."""
    metadata = subprocess.run(["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"],
                              cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return Path(json.loads(metadata)["target_directory"])


def features():
    """Words for cargo: the features that this machine has the libraries for, as `scripts/test` has them."""
    said = subprocess.run([ROOT / "scripts/lib/features"], check=True, capture_output=True, text=True).stdout
    return said.split()


def release(*arguments):
    """Builds optimised; returns the folder of the programs."""
    subprocess.run(["cargo", "build", "--locked", "--release", *arguments], cwd=ROOT, check=True)
    return target_directory() / "release"


def debug(*arguments):
    """Builds programs as `cargo test --workspace` does; their folder. With one test among the
    targets, dependencies have the same features as there, and are not compiled again."""
    subprocess.run(["cargo", "build", "--locked", "--workspace", *arguments, "--test", "guard"],
                   cwd=ROOT, check=True)
    return target_directory() / "debug"


def out_of_tree(crate):
    """Builds the programs of a crate of scripts/out-of-tree.d; their folder."""
    subprocess.run([ROOT / "scripts/out-of-tree", "--build", crate], check=True)
    return target_directory() / "debug"


def unit_tests(library, *arguments):
    """Builds the tests of a library as `cargo test --workspace` does; their program."""
    said = subprocess.run(["cargo", "test", "--locked", "--workspace", *arguments, "--lib", "--no-run",
                           "--message-format", "json"], cwd=ROOT, check=True, stdout=subprocess.PIPE,
                          text=True).stdout
    for message in map(json.loads, said.splitlines()):
        if message.get("executable") and message["target"]["name"] == library:
            return Path(message["executable"])
    raise KeyError(f"no tests of a library {library}")
