"""Packages of Debian, made by debhelper from scripts/debian."""

import os
import shutil
import subprocess
from datetime import datetime, timezone
from email.utils import format_datetime

from lib import cargo, licences
from lib.needs import Skip, need

# Control files of the packages.
CONTROL = cargo.ROOT / "scripts/debian"


def said(*words):
    """What a command prints."""
    return subprocess.run(words, cwd=cargo.ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def epoch():
    """The time of the packages: SOURCE_DATE_EPOCH, or that of the last commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        return int(given or said("git", "log", "-1", "--format=%ct"))
    except (ValueError, OSError, subprocess.CalledProcessError) as error:
        raise Skip("the time of the packages is unknown: this is no git repository with a commit, and "
                   f"SOURCE_DATE_EPOCH has no number of seconds ({error})") from error


def need_programs():
    """Whether this machine can make packages."""
    need("dh", "dpkg-deb", "dpkg-architecture")


class Packages:
    """The packages: `tree` is filled by others, then they are made."""

    def __init__(self, folder, time):
        self._folder, self._time = folder, datetime.fromtimestamp(time, timezone.utc)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(CONTROL, folder / "debian")
        self.tree = folder / "tree"
        # Libraries of several architectures can be installed beside each other.
        self.libdir = f"lib/{said('dpkg-architecture', '-qDEB_HOST_MULTIARCH')}"

    def _version(self):
        """That of the workspace, with the time of the commit, so that a later build is an upgrade."""
        manifest = (cargo.ROOT / "Cargo.toml").read_text(encoding="utf8")
        version = manifest.split("[workspace.package]\nversion = \"")[1].split('"')[0]
        return f"{version}+{self._time:%Y%m%d%H%M%S}"

    def _changelog(self):
        control = (CONTROL / "control").read_text(encoding="utf8")
        maintainer = next(line.split(": ")[1] for line in control.splitlines() if line.startswith("Maintainer: "))
        return (f"pollux ({self._version()}) stable; urgency=medium\n\n"
                "  * Built from the sources of this time.\n\n"
                f" -- {maintainer}  {format_datetime(self._time)}\n")

    def licences(self, linked):
        """Writes the licences of Pollux and of what these packages of the workspace are linked with."""
        text = (CONTROL / "copyright").read_text(encoding="utf8") + (cargo.ROOT / "LICENSE-MIT").read_text(encoding="utf8")
        text += ("\nThe programs and libraries contain the standard library of Rust (MIT OR Apache-2.0, Copyright The Rust\n"
                 f"Project Contributors) and these crates:\n\n{licences.summary(linked)}\n")
        (self._folder / "debian/copyright").write_text(text, encoding="utf8")

    def make(self, folder, quick):
        """Makes the packages; their files. `quick`: compressed less."""
        (self._folder / "debian/changelog").write_text(self._changelog(), encoding="utf8")
        variables = {**os.environ, "SOURCE_DATE_EPOCH": str(int(self._time.timestamp())),
                     # What Rules-Requires-Root says, which debhelper does not read: any user can make packages.
                     "DEB_RULES_REQUIRES_ROOT": "no",
                     # Debug information is in no package.
                     "DEB_BUILD_OPTIONS": "noautodbgsym", "COMPRESSION": "-Zxz -z0" if quick else "-Zxz"}
        made = self._folder / "made"
        made.mkdir()
        subprocess.run(["debian/rules", "binary"], cwd=self._folder, env=variables, check=True, stdout=subprocess.DEVNULL)
        folder.mkdir(parents=True, exist_ok=True)
        return [shutil.copy(package, folder / package.name) for package in sorted(made.glob("*.deb"))]
