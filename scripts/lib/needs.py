"""Requirements of a script, and the reports of missing programs and errors."""

import argparse
import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path

# Debian's packages, where they are not called like the program.
PACKAGES = {"apt-get": "apt", "busybox": "busybox-static", "cc": "gcc", "depmod": "kmod", "dh": "debhelper",
            "dpdk-testpmd": "dpdk dpdk-dev", "dpkg-architecture": "dpkg-dev", "ip": "iproute2", "man": "man-db",
            "qemu-system-x86_64": "qemu-system-x86", "tclsh": "tcl", "unshare": "util-linux",
            "yosys-smtbmc": "yosys"}


class Skip(Exception):
    """A requirement is missing."""


class Failure(Exception):
    """A check has failed."""


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skip(f"no {program}: apt-get install {PACKAGES.get(program, program)}")


def new_file(text):
    """A file of an option that is to be written at the end: there is a folder for it now."""
    file, folder = Path(text), Path(text).absolute().parent
    if file.is_dir() or not folder.is_dir() or not os.access(file if file.exists() else folder, os.W_OK):
        raise argparse.ArgumentTypeError(
            f"{text} cannot be written: a file in a folder that is there, and can be written, is wanted")
    return file


@contextmanager
def report(file):
    """The results of a comparison: {"rows": [...]}, filled while the block lasts and then written as
    JSON, if there is a file for it. If a requirement is missing, the report has the reason under
    "skipped", which is printed, and its rows are those measured before."""
    found = {"rows": []}
    try:
        yield found
    except Skip as why:
        found["skipped"] = str(why)
        print(f"skipped: {why}")
    if file:
        file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf8")
