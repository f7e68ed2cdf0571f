"""What a script needs of the machine, and how it says that something is missing or wrong."""

import argparse
import shutil
from pathlib import Path

# Debian's packages, where they are not called like the program.
PACKAGES = {"apt-get": "apt", "busybox": "busybox-static", "depmod": "kmod", "dpdk-testpmd": "dpdk dpdk-dev",
            "ip": "iproute2", "qemu-system-x86_64": "qemu-system-x86", "yosys-smtbmc": "yosys"}


class Skip(Exception):
    """What is needed is not here."""


class Wrong(Exception):
    """Something is not as it must be."""


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skip(f"no {program}: apt-get install {PACKAGES.get(program, program)}")


def new_file(text):
    """A file of an option that is to be written at the end: there is a folder for it now."""
    if Path(text).is_dir() or not Path(text).absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text} cannot be written: a file in a folder that is there is wanted")
    return Path(text)
