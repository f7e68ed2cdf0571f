"""Virtual machines: Debian's kernel, their files, and QEMU."""

import hashlib
import json
import lzma
import os
import re
import select
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from lib.cargo import ROOT
from lib.needs import Skip, Failure, need

# First process of the machines that test drivers.
INIT = ROOT / "apps/rigs/guest/init"
# Modules of their kernel, besides built-in ones; with their dependencies.
MODULES = ["vfio-pci", "e1000e", "igb", "igbvf", "virtio_net", "virtio_pci", "af_packet"]


# What makes machines faster that are emulated, and changes nothing that a driver of ours meets. Their
# clock is the host's, and the same on both CPUs, which the kernel does not believe: by itself it
# would read a timer of the chipset. It need not test its cryptography, clear each page for fear of
# who reads it, or mind what a real CPU guesses.
FAST = "tsc=reliable cryptomgr.notests init_on_alloc=0 mitigations=off"
# Without the instructions that are fast at copying bytes: QEMU is not, and goes byte by byte.
CPU = "max,-erms,-fsrm"

# Kernel parameters for the IOMMU, and a device behind it.
IOMMU = "intel_iommu=on iommu.passthrough=0"
VIRTIO = "virtio-net-pci,disable-legacy=on,iommu_platform=on,ats=on,host_mtu=9000"


def must(words, otherwise=Failure, **options):
    """What a command prints, which must go well: `otherwise` says whether something is wrong, or this
    machine has not what it takes."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise otherwise(f"{' '.join(map(str, words))}: {done.stderr.strip()[-300:]}")
    return done.stdout


def need_programs():
    need("qemu-system-x86_64", "busybox", "cpio", "depmod", "dpkg", "apt-get")
    if '"igb"' not in must(["qemu-system-x86_64", "-device", "help"]):
        raise Skip("QEMU is older than 8.0: apt-get install -t bookworm-backports qemu-system-x86")


class Kernel:
    """A kernel, unpacked: nothing is installed."""

    def __init__(self, folder, version):
        self.folder, self.version = folder, version
        self.image = folder / "boot" / "vmlinux"

    @classmethod
    def debian(cls, parent):
        """Debian's own."""
        depends = must(["apt-cache", "depends", "linux-image-amd64"], Skip)
        found = re.search(r"Depends: (linux-image-([\w.-]+))", depends)
        if not found:
            raise Skip("no package linux-image-amd64: apt-get update, on Debian")
        package, version = found.groups()

        def fetch(place):
            # The list of packages may be older than the archive.
            try:
                must(["apt-get", "download", package], Skip, cwd=place)
            except Skip:
                must(["apt-get", "update"], Skip)
                must(["apt-get", "download", package], Skip, cwd=place)
        return cls(parent / package, version).unpacked(fetch)

    @classmethod
    def ubuntu(cls, parent):
        """Ubuntu's of 24.04. It has what Debian's kernels are built without, later ones too: devices
        with files of their own behind /dev/iommu, and VFIO without an IOMMU."""
        need("zstd")
        version = "6.8.0-31-generic"

        def fetch(place):
            archive = ubuntu_archive()
            for file, digest in UBUNTU.items():
                download(f"{archive}/pool/main/l/{file}", place / Path(file).name, digest)
        return cls(parent / f"ubuntu-{version}", version).unpacked(fetch)

    def unpacked(self, fetch):
        """Itself, unpacked from the packages that `fetch` gets, if it has not been."""
        if not self.folder.exists():
            with tempfile.TemporaryDirectory(dir=self.folder.parent) as temp:
                fetch(Path(temp))
                root = Path(temp) / "unpacked"
                for package in Path(temp).glob("*.deb"):
                    must(["dpkg", "-x", package, root])
                must(["depmod", "-b", root, self.version])
                root.rename(self.folder)
        if not self.image.exists():
            part = self.image.with_suffix(".part")
            part.write_bytes(payload(self.image.with_name(f"vmlinuz-{self.version}")))
            part.rename(self.image)
        return self

    def modules(self, names):
        """Files of these modules, each after its dependencies."""
        files = []
        for module in names:
            said = must(["modprobe", "-d", self.folder, "-S", self.version, "--show-depends",
                         "--ignore-install", module])
            files += re.findall(r"^insmod (\S+)", said, re.MULTILINE)
        return [Path(file) for file in dict.fromkeys(files)]


# The release's own packages, which stay as they are for as long as the release is kept.
UBUNTU = {
    "linux-signed/linux-image-6.8.0-31-generic_6.8.0-31.31_amd64.deb":
        "fd2ed023c84163e62c73d3b7b613a9b004bd31e335641c23d42bd249e489fbe6",
    "linux/linux-modules-6.8.0-31-generic_6.8.0-31.31_amd64.deb":
        "3f17f2c279257eb50e40da44390bdf8272c440ca078831c348773d1314b5c2fe",
}


# Ubuntu's script of Debian's debootstrap.
DEBOOTSTRAP = Path("/usr/share/debootstrap/scripts/gutsy")


def ubuntu_archive():
    """Where Ubuntu's archive is: as the environment says, or the sources of apt, or else debootstrap,
    which has it for PCs as the default of its first list."""
    if said := os.environ.get("POLLUX_UBUNTU_ARCHIVE"):
        return said.rstrip("/")
    known = must(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages",
                  "Component: main", "Origin: Ubuntu"], Skip).split()
    if DEBOOTSTRAP.exists():
        known += re.findall(r"\*\)\s+default_mirror (\S+)", DEBOOTSTRAP.read_text(encoding="utf8"))
    # Others (mirror+file:, cdrom:) are for apt alone.
    for archive in known:
        if re.match("https?://", archive):
            return archive.rstrip("/")
    raise Skip("no archive of Ubuntu is known: apt-get install debootstrap, or say POLLUX_UBUNTU_ARCHIVE=URL")


def download(address, file, digest):
    """Gets a file that is known by its SHA-256."""
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            got = answer.read()
    except (urllib.error.URLError, OSError) as error:
        raise Skip(f"{address}: {error}") from error
    if hashlib.sha256(got).hexdigest() != digest:
        raise Skip(f"{address}: it is not the file that is known: its SHA-256 is another")
    file.write_bytes(got)


def payload(file):
    """The kernel that is packed in a bzImage: QEMU starts it as it is, where the machine would take
    seconds to unpack it. Sections are those of Documentation/arch/x86/boot.rst of Linux 6.1."""
    image = file.read_bytes()
    # "Details of Header Fields": setup_sects, payload_offset and payload_length.
    (sectors,) = struct.unpack_from("<B", image, 0x1f1)
    offset, length = struct.unpack_from("<II", image, 0x248)
    # "Loading The Rest of The Kernel": behind the boot sector and those of the setup. The last four
    # bytes say how long it is when it is unpacked.
    start = 512 * (1 + sectors) + offset
    packed = image[start:start + length - 4]
    if packed.startswith(b"\xfd7zXZ\0"):
        return lzma.decompress(packed)
    return subprocess.run(["zstd", "-dqc"], input=packed, stdout=subprocess.PIPE, check=True).stdout


def libraries(programs):
    """The shared libraries that programs need, and their loader (ld.so)."""
    said = must(["ldd", *programs])
    if "not found" in said:
        raise Failure(f"a library is missing: {said}")
    return sorted(set(re.findall(r"(/\S+) \(0x", said)))


def install(file, root):
    """Puts a file at its place below `root`. A link stays a link: a file that is loaded by two
    names must be one file."""
    real = file.resolve()
    for path in dict.fromkeys((real, file)):
        place = root / path.relative_to("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_symlink() or place.exists():
            continue
        if path == real:
            shutil.copy(real, place)
        else:
            place.symlink_to(real)


def add_module(file, folder):
    """Puts a module into a folder, as it is to be loaded; its name there."""
    if file.suffix == ".zst":
        must(["zstd", "-dq", file, "-o", folder / file.stem])
        return file.stem
    shutil.copy(file, folder)
    return file.name


def initramfs(kernel, programs, temp, others=(), files=(), modules=MODULES, init=INIT):
    """All files of the machine: Pollux's programs, by name, other programs and libraries with the
    libraries that they need, files as they are, modules, and its first process."""
    root = temp / "root"
    for name in ("bin", "dev", "proc", "sys", "tmp", "modules"):
        (root / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin")
    shutil.copy(init, root / "init")
    shutil.copy(ROOT / "scripts/bind", root / "bin")
    for name, program in programs.items():
        must(["strip", "--strip-debug", "-o", root / "bin" / name, program])
    for file in dict.fromkeys(map(Path, [*others, *files, *libraries([*programs.values(), *others])])):
        install(file, root)
    names = [add_module(module, root / "modules") for module in kernel.modules(modules)]
    (root / "modules/order").write_text("".join(f"{name}\n" for name in names), encoding="utf8")
    # Not compressed: the machine would take longer to unpack it.
    names = "".join(f"{path.relative_to(root)}\n" for path in root.rglob("*"))
    image = temp / "initramfs"
    with open(image, "wb") as out:
        subprocess.run(["cpio", "--quiet", "-o", "-H", "newc"], input=names.encode(), stdout=out,
                       cwd=root, check=True)
    return image


class Lines:
    """A socket to QEMU, by lines."""

    def __init__(self):
        self.socket, self.other = socket.socketpair()
        self.rest = b""

    def fileno(self):
        return self.socket.fileno()

    def send(self, text):
        self.socket.sendall(text.encode() + b"\n")

    def receive(self):
        """The lines received since the last call; none if the other end is closed."""
        try:
            more = self.socket.recv(65536)
        except ConnectionResetError:
            more = b""
        if not more:
            return None
        *lines, self.rest = (self.rest + more).split(b"\n")
        return [line.decode(errors="replace").strip() for line in lines]


class Monitor(Lines):
    """QEMU's machine protocol."""

    def __init__(self):
        super().__init__()
        self.count = 0
        self.send('{"execute": "qmp_capabilities"}')

    def ask(self, command):
        """Has QEMU do this; `ok`, or why not."""
        self.count += 1
        self.send(json.dumps({**command, "id": self.count}))
        limit = time.monotonic() + 20
        while select.select([self], [], [], max(0, limit - time.monotonic()))[0]:
            for answer in map(json.loads, self.receive() or ['{"gone": true}']):
                if "gone" in answer:
                    return "error: QEMU is gone"
                if answer.get("id") == self.count:
                    return "error: " + answer["error"]["desc"] if "error" in answer else "ok"
        return "error: no answer"


class Guest:
    """A running machine: its console goes to a file, its second serial port is `control`. `within`
    are the words of a command that has another as its last words; `memory` is in MiB."""

    def __init__(self, log, kernel, image, arguments, append, within=(), memory=1024):
        self.log = log
        self.control, self.monitor = Lines(), Monitor()
        sockets = {"control": self.control.other, "monitor": self.monitor.other}
        chardevs = [word for name, end in sockets.items()
                    for word in ("-chardev", f"socket,id={name},fd={end.fileno()}")]
        # One thread for both CPUs: with more, QEMU 10.0 looks at entries of a CPU's translation
        # buffer that another may have freed while it waited for its lock (do_st_mmio_leN), and
        # writes of registers hit the guest's memory.
        words = [
            *within, "qemu-system-x86_64", "-accel", "tcg,thread=single", "-machine", "q35", "-cpu", CPU,
            "-smp", "2", "-m", memory,
            "-nodefaults", "-display", "none", "-no-reboot",
            "-kernel", kernel.image, "-initrd", image,
            # On a busy host its timer's first ticks are late.
            "-append", f"console=ttyS0 quiet panic=-1 no_timer_check {FAST} {append}",
            # Nothing to boot from: the programs that NICs have for that need not run.
            "-global", "pci-device.romfile=",
            "-serial", f"file:{log}", *chardevs, "-serial", "chardev:control",
            "-mon", "chardev=monitor,mode=control",
            "-device", "intel-iommu,intremap=on,caching-mode=on,device-iotlb=on", *arguments]
        self.stderr = tempfile.TemporaryFile()
        # A separate session: signals of the terminal are for this script only.
        self.child = subprocess.Popen(
            [str(word) for word in words], stdin=subprocess.DEVNULL, stdout=self.stderr, stderr=self.stderr,
            pass_fds=[end.fileno() for end in sockets.values()], start_new_session=True)
        # So that the sockets end when QEMU does.
        for end in sockets.values():
            end.close()

    def last_words(self):
        said = self.log.read_text(errors="replace").strip().splitlines()[-3:] if self.log.exists() else []
        self.stderr.seek(0)
        errors = self.stderr.read().decode(errors="replace").strip()[-300:]
        return " | ".join([*said, errors]).strip(" |")

    def end(self):
        """There is nothing in it to save."""
        self.child.kill()
        self.child.wait()
        for end in (self.control.socket, self.monitor.socket, self.stderr):
            end.close()
