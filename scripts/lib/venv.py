"""The Python that has others' software for images."""

import shutil
import subprocess
import sys
from pathlib import Path

from lib.needs import Skip

LISTED = Path(__file__).resolve().parent / "images/requirements.txt"


def images(target):
    """A Python of the virtual environment images/venv of the target directory, with the packages of
    scripts/lib/images/requirements.txt: installed once, and again when the list changes."""
    venv = Path(target, "images/venv")
    stamp = venv / LISTED.name
    if not stamp.exists() or stamp.read_bytes() != LISTED.read_bytes():
        shutil.rmtree(venv, ignore_errors=True)
        venv.parent.mkdir(parents=True, exist_ok=True)
        for words in ([sys.executable, "-m", "venv", venv],
                      [venv / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "-r", LISTED]):
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                said = (done.stdout + done.stderr).strip().splitlines()[-2:]
                raise Skip(f"no Python packages (python3-venv and a package index are needed): {' | '.join(said)}")
        shutil.copy(LISTED, stamp)
    return venv / "bin/python"
