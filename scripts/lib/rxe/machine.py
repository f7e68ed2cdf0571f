"""Virtual machines whose kernel is an RDMA endpoint over Ethernet (rdma_rxe)."""

import base64
import select
import shutil
import time
from pathlib import Path
from typing import NamedTuple

from lib.guest import Guest, Kernel, initramfs, need_programs
from lib.needs import Failure, Skip, need

INIT = Path(__file__).resolve().parent / "init"
MODULES = ["virtio_pci", "virtio_net", "ib_uverbs", "rdma_ucm", "rdma_rxe", "crc32_generic", "crc32_pclmul"]
# By Debian's package.
TOOLS = {
    "ibverbs-utils": ["ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_devinfo"],
    "perftest": ["ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_read_lat"],
    "rdmacm-utils": ["rping"],
    "iproute2": ["ip", "rdma"],
}
# The part of libibverbs that it loads by itself, and the file that names it. So is the library of gcc
# that a thread of rping needs at its end.
PROVIDER = Path("/usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so")
DRIVER = Path("/etc/libibverbs.d/rxe.driver")
LOADED = Path("/lib/x86_64-linux-gnu/libgcc_s.so.1")

# Seconds in which a machine has to be ready.
BOOT = 120


class Done(NamedTuple):
    """The end of a command: 137 is the status of one that ran past its time."""
    status: int
    output: str


def image(folder, temp, programs=(), modules=()):
    """A kernel, and the files of such a machine, with programs of Pollux, by name, and more modules."""
    need_programs()
    for package, tools in TOOLS.items():
        try:
            need(*tools)
        except Skip as why:
            raise Skip(f"{str(why).split(':', maxsplit=1)[0]}: apt-get install {package}") from why
    if not PROVIDER.exists() or not DRIVER.exists():
        raise Skip(f"no {PROVIDER.name}: apt-get install ibverbs-providers")
    found = [Path(shutil.which(name)) for names in TOOLS.values() for name in names]
    kernel = Kernel.debian(folder)
    files = initramfs(kernel, dict(programs), temp, [*found, PROVIDER, LOADED], [DRIVER],
                      [*MODULES, *modules], INIT)
    return kernel, files


def wire(name, local, remote):
    """Arguments of QEMU for a wire whose frames are datagrams between two sockets."""
    ends = f"local.type=unix,local.path={local},remote.type=unix,remote.path={remote}"
    return ["-netdev", f"dgram,id={name},{ends}"]


class Machine:
    """A running machine. Its RoCE packets are the datagrams between the sockets `local`, which QEMU
    binds, and `remote`. Its TCP reaches the host at 10.0.2.2, and is reached by the host's ports of
    `forwards`: {port of the host: port of the machine}. More devices are arguments of QEMU."""

    def __init__(self, log, system, local, remote, mac, address, forwards=None, devices=(), parameters=""):
        forwards = "".join(f",hostfwd=tcp:127.0.0.1:{ours}-:{its}" for ours, its in (forwards or {}).items())
        kernel, files = system
        self.answers, self.count = {}, 0
        self.guest = Guest(log, kernel, files, [
            *wire("roce", local, remote), "-device", f"virtio-net-pci,netdev=roce,mac={mac},host_mtu=9000",
            "-netdev", f"user,id=tcp{forwards}", "-device", "virtio-net-pci,netdev=tcp", *devices],
            f"{parameters} -- {mac} {address}/24")

    def __enter__(self):
        try:
            self.wait("ready", BOOT)
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        self.guest.end()

    def start(self, words, seconds=60):
        """Starts a program, which is killed after so many seconds; its number."""
        self.count += 1
        self.guest.control.send(f"{self.count} {seconds} {words}")
        return f"{self.count}"

    def finish(self, number, seconds=90):
        """Waits for a program's end."""
        status, output = self.wait(number, seconds)
        return Done(int(status), base64.b64decode(output).decode(errors="replace"))

    def run(self, words, seconds=60):
        return self.finish(self.start(words, seconds), seconds + 30)

    def must(self, words, seconds=60):
        """What a program prints, which must go well."""
        done = self.run(words, seconds)
        if done.status != 0:
            raise Failure(f"{words}: status {done.status}: {done.output.strip()[-300:]}")
        return done.output

    def wait(self, number, seconds):
        """The answer to a command, or `ready`."""
        limit = time.monotonic() + seconds
        while number not in self.answers:
            left = limit - time.monotonic()
            if left <= 0 or not select.select([self.guest.control], [], [], left)[0]:
                raise Failure(f"no answer of the machine in {seconds} s: {self.guest.last_words()}")
            lines = self.guest.control.receive()
            if lines is None:
                raise Failure(f"the machine has ended: {self.guest.last_words()}")
            for first, *rest in map(str.split, filter(None, lines)):
                # Without output the last word is empty.
                self.answers[first] = (*rest, "")[:2]
        return self.answers.pop(number)
