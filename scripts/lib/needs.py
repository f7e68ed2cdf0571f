"""What a script needs of the machine, and how it says that something is missing or wrong."""

import shutil

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
