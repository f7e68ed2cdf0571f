"""Configurations that `pollux rdma play` has to refuse, with what is allowed."""

import subprocess

from lib.rdma.rocepeer import Play, check, pattern
from lib.rxe.tee import Pcap

# What is replaced in a valid configuration, by what, and what the message has to say.
WRONG = {
    "an unknown field": ("[[qp]]", "[[qp]]\nretries = 3", ["retries", "rnr_retry"]),
    "an unknown table": ("[[post]]", "[[posts]]\nqp = 1\n[[post]]", ["posts"]),
    "a field that is missing": ("send_psn = 5000\n", "", ["send_psn"]),
    "a key twice": ("key = 0x11223302", "key = 0x11223301", ["11223301", "twice"]),
    "regions that overlap": ("address = 0x200000", "address = 0x100fff", ["11223302", "overlap", "11223301"]),
    "a region of nothing": ("bytes = 4096", "bytes = 0", ["bytes = 0"]),
    "a key of more than 32 bits": ("key = 0x11223302", "key = 0x111223302", ["key"]),
    "a right that there is not": ('"write"', '"execute"', ["execute", "read"]),
    "a file that is not there": ('file = "', 'file = "nowhere-', ["nowhere-", "No such file"]),
    "a region of more memory than there is": ("bytes = 4096", "bytes = 0x4000000000000000", ["11223301"]),
    "a negative offset": ("at = 0", "at = -1", ["at", "-1"]),
    "a request of more than 2^32 bytes": ("bytes = 100", "bytes = 4294967296", ["4294967296"]),
    "an address of the peer that is none": ('peer_ip = "10.0.0.2"', 'peer_ip = "10.0.0.256"', ["peer_ip"]),
    "an RNR timer that there is not": ("mtu = 256", "mtu = 256\nrnr_timer = 32", ["rnr_timer = 32", "31"]),
    "more retries than there can be": ("mtu = 256", "mtu = 256\nretry = 8", ["retry = 8", "7"]),
    "more RNR retries than there can be": ("mtu = 256", "mtu = 256\nrnr_retry = 8", ["rnr_retry = 8", "7"]),
    "receives of more memory than there is": ("receives = 0\nreceive_bytes = 1024",
                                              "receives = 4096\nreceive_bytes = 1073741824", ["receive"]),
    "an operation that there is not": ('op = "get"', 'op = "swap"', ["swap", "put"]),
    "something that is no TOML": ("[[qp]]", "[[qp", ["expected"]),
    "a file that is longer than its region": ("bytes = 4096", "bytes = 4095", [".in", "4095"]),
    "a queue pair twice": ("number = 273", "number = 272", ["272", "twice"]),
    "a number that is reserved": ("number = 273", "number = 1", ["1", "2 to"]),
    "a number of more than 24 bits": ("number = 273", "number = 16777216", ["16777216", "16777215"]),
    "a sequence number of more than 24 bits": ("recv_psn = 100", "recv_psn = 16777216", ["recv_psn", "16777215"]),
    "a kind that there is not": ('kind = "rc"', 'kind = "rd"', ["rd", "rc", "uc"]),
    "an MTU that there is not": ("mtu = 256", "mtu = 1500", ["1500", "1024", "2048"]),
    "a MAC address that is none": ('mac = "02:00:00:00:00:01"', 'mac = "02:00:00:00:00"', ["02:00:00:00:00", "MAC"]),
    "a time-out that there is not": ("mtu = 256", "mtu = 256\ntimeout = 32", ["timeout = 32", "31"]),
    "more receives than there can be": ("receives = 0", "receives = 4097", ["4097", "4096"]),
    "a request of no queue pair": ("[[post]]\nqp = 272", "[[post]]\nqp = 274", ["qp = 274"]),
    "a request for no region": ("region = 287453953", "region = 7", ["region = 7"]),
    "a request beyond its region": ("at = 0", "at = 4090", ["4090", "4096"]),
    "a GET of an unreliable queue pair": ('kind = "rc"', 'kind = "uc"', ["get", "rc"]),
    "a GET with an immediate": ('op = "get"', 'op = "get"\nimmediate = 1', ["immediate"]),
}


def valid(folder):
    """A configuration that names two regions, two queue pairs and a request."""
    play = Play()
    for _ in range(2):
        play.region(contents=pattern(4096))
    qp = play.qp()
    play.qp()
    qp.post("get", play.regions[0], 0, 100)
    return play.toml(folder)


def refuse(program, folder, name):
    """The configuration is refused with exit status 2, before anything is done."""
    old, new, words = WRONG[name]
    text = valid(folder)
    check(f"`{old}` is in the configuration", old in text)
    config, into, out = (folder / name for name in ("play.toml", "in.pcap", "out.pcapng"))
    config.write_text(text.replace(old, new, 1), encoding="utf8")
    Pcap(into).close()
    done = subprocess.run([program, "rdma", "play", "--config", config, "--port", f"pcap:rx={into},tx={out}",
                           "--memory-out", folder / "memory"],
                          capture_output=True, text=True, timeout=60, check=False)
    said = done.stderr.strip()
    check(f"exit status {done.returncode}: {said}", done.returncode == 2)
    lacks = [word for word in words if word not in said]
    check(f"the message lacks {lacks}: {said}", not lacks and "--config" in said)
