"""A fresh root of this machine's release of Debian, in which packages are tried."""

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

from lib.guest import must
from lib.needs import Skip, need

# Mounts that a program finds on every machine; they end with the process that is the first there.
ENTER = """mount --make-rprivate / && mount -t proc proc "$1/proc" && mount --rbind /sys "$1/sys" &&
    mount -t tmpfs tmpfs "$1/run" && root=$1 && shift && exec chroot "$root" env -i LANG=C.UTF-8 LC_ALL=C.UTF-8 \\
    HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@" """


def need_programs():
    need("mmdebstrap", "unshare", "tar")
    if os.geteuid() != 0:
        raise Skip("a root of Debian needs root")


def sources():
    """The machine's own sources of apt."""
    place = Path("/etc/apt")
    listed = [place / "sources.list", *sorted((place / "sources.list.d").glob("*"))]
    return [file for file in listed if file.suffix in (".list", ".sources") and file.is_file()]


def archive(folder, packages):
    """A root with these packages as a tar archive: made once for each list of packages and sources."""
    release = platform.freedesktop_os_release()
    if release.get("ID") != "debian":
        raise Skip(f"packages are for Debian, and this is {release.get('PRETTY_NAME', 'another system')}")
    known = hashlib.sha256("\n".join([*packages, *(file.read_text(encoding="utf8") for file in sources())]).encode())
    made = folder / f"{release['VERSION_CODENAME']}-{known.hexdigest()[:16]}.tar"
    if not made.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.tar"):
            old.unlink()
        with tempfile.TemporaryDirectory(dir=folder) as temp:
            new = Path(temp) / "root.tar"
            # What is not kept need not be on the disk before it is used; apt's own user may be kept from
            # the devices of a container.
            must(["mmdebstrap", "--variant=apt", "--dpkgopt=force-unsafe-io", '--aptopt=APT::Sandbox::User "root"',
                  f"--include={','.join(packages)}", release["VERSION_CODENAME"], new, *sources()], Skip,
                 env={**os.environ, "TMPDIR": temp})
            new.rename(made)
    return made


class Root:
    """The folder of a root."""

    def __init__(self, folder):
        self.folder = folder

    def run(self, *words):
        """What a command prints in the root, which must go well: without a network, in namespaces of its own."""
        return must(["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "sh", "-c", ENTER, "sh",
                     self.folder, *words])

    def files(self):
        """All files and folders, but for what programs of Debian keep about their work."""
        kept = ("var/cache", "var/lib/dpkg", "var/lib/apt", "var/log")
        return {path for path in (str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))
                if not path.startswith(kept)}


@contextmanager
def fresh(folder, packages):
    """A new root with these packages, which is removed at the end."""
    packed = archive(folder, packages)
    place = Path(tempfile.mkdtemp(dir=folder))
    try:
        subprocess.run(["tar", "-xf", packed, "-C", place, "--numeric-owner"], check=True)
        yield Root(place)
    finally:
        shutil.rmtree(place)
