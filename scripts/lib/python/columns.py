#!/usr/bin/env python3
"""Loops that scripts/compare-python measures.

usage: columns.py pcap SPEC SECONDS    three columns and one field of each batch of a recording, as
                                       apps/bindings/embed/examples/rates.rs takes them
       columns.py port ROUNDS          of batches from af_packet:va, where frames from vb wait
       columns.py socket ROUNDS        recvfrom_into on a UDP socket at 10.0.0.1, where such datagrams wait

Prints the number of datagrams, and the seconds.
"""

import socket
import struct
import sys
import time

# Datagrams that wait when a round begins: fewer than a ring has slots.
WAITING = 900


def columns(batch):
    return batch.dst_port, batch.length, batch.wire_ns, batch.field(8, "<u8")


def recording(spec, seconds):
    import pollux

    count, started = 0, time.perf_counter()
    with pollux.open(spec, data_room=2048) as port:
        for batch in port:
            found = columns(batch)
            count += len(batch)
            if time.perf_counter() - started > seconds:
                break
        elapsed = time.perf_counter() - started
    assert all(len(column) for column in found)
    return count, elapsed


def sender():
    """A function that sends datagrams of 64 B from vb to port 7502 of va."""
    with open("/sys/class/net/va/address", encoding="ascii") as file:
        mac = bytes.fromhex(file.read().strip().replace(":", ""))
    addresses = socket.inet_aton("10.0.0.2") + socket.inet_aton("10.0.0.1")
    header = struct.pack("!BBHHHBBH", 0x45, 0, 92, 1, 0, 64, 17, 0) + addresses
    total = sum(struct.unpack("!10H", header))
    total = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    # Without a checksum of UDP, which RFC 768 allows.
    udp = struct.pack("!HHHH", 4000, 7502, 72, 0)
    frame = mac + mac + b"\x08\0" + header[:10] + struct.pack("!H", total) + addresses + udp + bytes(64)
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    raw.bind(("vb", 0))
    return lambda: [raw.send(frame) for _ in range(WAITING)]


def port(rounds):
    import pollux

    send, count, elapsed = sender(), 0, 0
    with pollux.open("af_packet:va", streams=[7502]) as opened:
        for _ in range(rounds):
            send()
            left, started = WAITING, time.perf_counter()
            while left > 0:
                batch = opened.poll()
                if batch is not None:
                    columns(batch)
                    left -= len(batch)
            elapsed += time.perf_counter() - started
            count += WAITING
    assert opened.ledger()["delivered"] == count, opened.ledger()
    return count, elapsed


def datagrams(rounds):
    send, count, elapsed, buffer = sender(), 0, 0, bytearray(2048)
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE
    receiver.bind(("10.0.0.1", 7502))
    receiver.settimeout(5)
    for _ in range(rounds):
        send()
        started = time.perf_counter()
        for _ in range(WAITING):
            receiver.recvfrom_into(buffer)
        elapsed += time.perf_counter() - started
        count += WAITING
    return count, elapsed


if __name__ == "__main__":
    mode, *words = sys.argv[1:]
    if mode == "pcap":
        print(*recording(words[0], float(words[1])))
    else:
        print(*{"port": port, "socket": datagrams}[mode](int(words[0])))
