"""A wire between two ends that send Ethernet frames as datagrams: it records what they send, and can
lose, double, delay and corrupt RoCE packets on the way, as its seed determines."""

import random
import selectors
import socket
import struct
import threading
import time
from typing import NamedTuple

# The UDP port of RoCEv2 (annex A17).
ROCE = 4791


class Faults(NamedTuple):
    """Probabilities for each packet."""
    loss: float = 0
    reorder: float = 0
    duplicate: float = 0
    corrupt: float = 0


class Pcap:
    """A capture file with time in nanoseconds (pcap-savefile(5))."""

    def __init__(self, path):
        self.file = open(path, "wb")
        self.file.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 1 << 18, 1))

    def add(self, frame, time_ns=None):
        time_ns = time.time_ns() if time_ns is None else time_ns
        self.file.write(struct.pack("<IIII", *divmod(time_ns, 10**9), len(frame), len(frame)) + frame)

    def close(self):
        self.file.close()


def is_roce(frame):
    """Whether a frame is an IPv4 packet without options to the UDP port of RoCEv2."""
    return (len(frame) >= 58 and frame[12:15] == b"\x08\x00\x45" and frame[23] == 17
            and int.from_bytes(frame[36:38], "big") == ROCE)


class Tee:
    """The wire. `ends` are two pairs of paths: the socket at which an end of the wire listens, and
    that of the machine or program at that end. Runs in a thread, until it is closed."""

    # Seconds for which a delayed packet waits for others to overtake it.
    DELAY = 0.002

    def __init__(self, ends, capture, faults=Faults(), seed=1):
        self.paths, self.targets = zip(*ends)
        self.sockets = []
        self.faults, self.random = faults, random.Random(seed)
        self.capture, self.delayed, self.done = Pcap(capture), [], threading.Event()
        self.packets = self.harmed = 0
        for path in self.paths:
            end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            end.bind(str(path))
            end.setblocking(False)
            self.sockets.append(end)
        self.thread = threading.Thread(target=self.loop)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()
        self.capture.close()
        for path, end in zip(self.paths, self.sockets):
            end.close()
            path.unlink()

    def loop(self):
        with selectors.DefaultSelector() as selector:
            for number, end in enumerate(self.sockets):
                selector.register(end, selectors.EVENT_READ, number)
            while not self.done.is_set():
                for key, _ in selector.select(self.DELAY if self.delayed else 0.1):
                    # A few at a time, so that both ways take turns.
                    for _ in range(32):
                        try:
                            frame = key.fileobj.recv(1 << 16)
                        except BlockingIOError:
                            break
                        self.take(key.data, frame)
                self.release()

    def take(self, number, frame):
        self.capture.add(frame)
        if not is_roce(frame):
            self.send(number, frame)
            return
        self.packets += 1
        chosen = [self.random.random() < chance for chance in self.faults]
        self.harmed += any(chosen)
        lost, delayed, doubled, corrupt = chosen
        if lost:
            return
        if corrupt:
            # Behind the headers of Ethernet and IP, whose errors are not for the ICRC to find.
            place = self.random.randrange(42, len(frame))
            frame = frame[:place] + bytes([frame[place] ^ 1 << self.random.randrange(8)]) + frame[place + 1:]
        if delayed:
            self.delayed.append((time.monotonic() + self.DELAY, number, frame))
            return
        for _ in range(1 + doubled):
            self.send(number, frame)

    def release(self):
        now = time.monotonic()
        while self.delayed and self.delayed[0][0] <= now:
            _, number, frame = self.delayed.pop(0)
            self.send(number, frame)

    def send(self, number, frame):
        """To the other end; a wire has no end that it waits for, but a full queue is waited for."""
        other = 1 - number
        limit = time.monotonic() + 1
        while not self.done.is_set():
            try:
                self.sockets[other].sendto(frame, str(self.targets[other]))
                return
            except BlockingIOError:
                if time.monotonic() > limit:
                    return
                time.sleep(0.0001)
            except OSError:
                return
