"""Rows of scripts/compare-rdma that need no virtual machine: between two cores of this host."""

from contextlib import contextmanager

from lib import testbed
from lib.rdma.compare import Bar, Row, background, run

# Addresses of the ends of the veth pair, and the ports of the peers.
IPS = ("10.77.0.1", "10.77.0.2")
PORT = 5077
# Jumbo frames; segments of TCP are larger still, by the offload of the device.
MTU = 9000


def rows():
    return [
        Row("put_shm", 65536, "GB/s", "memcpy between the same buffers", Bar(0.9), put_shm),
        Row("put_shm", 1048576, "GB/s", "memcpy between the same buffers", Bar(0.9), put_shm),
        Row("nap_shm", 8, "ns", "a cache line to and fro", Bar(3, at_most=True), nap_shm),
        Row("write_roce", 1048576, "Gb/s", "the same frames without protocol", Bar(0.7, wanted=40), write_roce),
        Row("write_roce_tcp", 1048576, "Gb/s", "TCP over veth", Bar(1.5), write_roce_tcp),
        Row("nap_roce", 64, "ns", "UDP sockets over veth, spinning", Bar(0.3, at_most=True), nap_roce),
    ]


def put_shm(setup, size):
    found = run(*setup.peer(size, "put-shm", "--rounds", setup.rounds))
    return found["ours"], found["peer"]


def nap(setup, size, *port):
    row = setup.bench(*port, "--operation", "send", "--measure", "latency", "--bytes", size)
    return row["latency_ns"]["p50"]


def nap_shm(setup, size):
    return setup.turns(lambda: nap(setup, size), lambda: run(*setup.peer(size, "line")))


def write(setup, size):
    row = setup.bench("loopback", "--operation", "put", "--measure", "rate", "--bytes", size, "--mtu", 4096)
    return row["gigabytes_per_second"] * 8


def write_roce(setup, size):
    return setup.turns(lambda: write(setup, size), lambda: run(*setup.peer(size, "frames")))


def write_roce_tcp(setup, size):
    with cable() as (here, there):
        def peer():
            at = f"{IPS[1]}:{PORT}"
            receiver = setup.peer(size, "tcp-receive", at, prefix=there.inside, cores=setup.cores[::-1])
            sender = setup.peer(size, "tcp-send", at, prefix=here.inside)
            with background(receiver) as received, background(sender):
                return received()

        return setup.turns(lambda: write(setup, size), peer)


def nap_roce(setup, size):
    with cable() as (here, there):
        def peer():
            at = f"{IPS[1]}:{PORT}"
            answers = setup.peer(size, "udp-answer", at, prefix=there.inside, cores=setup.cores[::-1])
            with background(answers):
                return run(*setup.peer(size, "udp-ask", at, prefix=here.inside))

        return setup.turns(lambda: nap(setup, size, "loopback"), peer)


@contextmanager
def cable():
    """Two namespaces with a veth pair between them, with addresses."""
    with testbed.veth(mtu=MTU) as ends:
        for end, device, address in zip(ends, ("va", "vb"), IPS):
            end.ip(f"addr add {address}/24 dev {device}")
        yield ends
