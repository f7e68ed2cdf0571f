"""What the scripts ask of cargo."""

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def target_directory():
    """CARGO_TARGET_DIR, what a configuration file says, or target/: cargo knows."""
    metadata = subprocess.run(["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"],
                              cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return Path(json.loads(metadata)["target_directory"])


def features():
    """Words for cargo: the features that this machine has the libraries for, as `scripts/test` has them."""
    said = subprocess.run([ROOT / "scripts/lib/features"], check=True, capture_output=True, text=True).stdout
    return said.split()


def release(*arguments):
    """Builds optimised; the folder of what was built."""
    subprocess.run(["cargo", "build", "--locked", "--release", *arguments], cwd=ROOT, check=True)
    return target_directory() / "release"


def debug(*arguments):
    """Builds programs as `cargo test --workspace` does; their folder. With one test among what is
    asked for, dependencies have the features that they have there, and are not compiled once more."""
    subprocess.run(["cargo", "build", "--locked", "--workspace", *arguments, "--test", "controls"],
                   cwd=ROOT, check=True)
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
