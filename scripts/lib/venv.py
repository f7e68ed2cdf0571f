"""Virtual environments of Python for the tests."""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

from lib.needs import Skip


def images(target):
    """The Python that has others' software for images."""
    return environment(target, "images")


def environment(target, name, listed=None):
    """A Python of the virtual environment NAME/venv of the target directory, with the packages of a list, or of
    scripts/lib/NAME/requirements.txt: installed once, and again when the list changes."""
    listed = listed or Path(__file__).resolve().parent / name / "requirements.txt"
    venv = Path(target, name, "venv")
    venv.parent.mkdir(parents=True, exist_ok=True)
    # Of two that want it at once, one waits.
    with open(venv.with_suffix(".lock"), "w", encoding="utf8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = venv / listed.name
        if not stamp.exists() or stamp.read_bytes() != listed.read_bytes():
            install(venv, listed)
            shutil.copy(listed, stamp)
    return venv / "bin/python"


def install(venv, listed):
    """Makes a virtual environment anew."""
    shutil.rmtree(venv, ignore_errors=True)
    # What is imported is compiled then: a small part of the packages.
    for words in ([sys.executable, "-m", "venv", venv],
                  [venv / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "-r", listed]):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = (done.stdout + done.stderr).strip().splitlines()[-2:]
            raise Skip(f"no Python packages (python3-venv and a package index are needed): {' | '.join(said)}")
