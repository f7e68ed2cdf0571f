"""Rows of the port `pcap`, and of devices of DPDK that lead nowhere."""

import re

from lib.interop.side import testpmd
from lib.testbed import check, must, need


def to_program(program):
    def row(run, variant):
        need("tcpdump", program)
        file = run.file("pcapng" if "pcapng" in variant else "pcap")
        run.ours(variant, "send", "--port", f"pcap:tx={file}")
        if program == "tcpdump":
            read = must(f"tcpdump -nn -vv -r {file}")
            frames = len(re.findall(r"length \d+\)", read))
            wrong = read.count("bad udp cksum") + read.count("bad cksum")
        else:
            read = must(f"tshark -r {file} -o udp.check_checksum:TRUE -o ip.check_checksum:TRUE "
                        "-T fields -e ip.checksum.status -e udp.checksum.status")
            frames = len(read.splitlines())
            # 1: good; tshark prints the number or the word, by version.
            wrong = sum(line.split() not in (["1", "1"], ["Good", "Good"]) for line in read.splitlines())
        check(f"{program} reads {frames} frames, {wrong} of them wrong, of {run.count}",
              (frames, wrong) == (run.count, 0))
        return frames
    return row


def from_program(program):
    def row(run, variant):
        need(program)
        first, second = run.file("pcap"), run.file("pcap")
        run.ours(variant, "send", "--port", f"pcap:tx={first}")
        if program == "tcpdump":
            must(f"tcpdump -r {first} -w {second}")
        else:
            must(f"tshark -r {first} -F {variant.split()[0]} -w {second}")
        return run.ours(variant, "receive", "--port", f"pcap:rx={second}")["received"]
    return row


def net_pcap(run, variant):
    first, second = run.file("pcap"), run.file("pcap")
    run.ours(variant, "send", "--port", f"pcap:tx={first}")
    with testpmd([f"net_pcap0,rx_pcap={first},tx_pcap={second}"], variant) as peer:
        peer.until("net_pcap did not read all", lambda: peer.returned() == run.count)
    report = run.ours(variant, "receive", "--port", f"pcap:rx={second}")
    check(f"net_pcap read {peer.counters['RX-packets']} of {run.count}",
          peer.counters["RX-packets"] == run.count)
    return report["received"]


def has_counted(report, direction, count):
    """The device of DPDK has counted as much as our side."""
    seen = report["statistics"][f"{direction}_good_packets"]
    check(f"the device counts {seen} frames, {direction}, and our side {count}", seen == count)


def net_ring(run, variant):
    report = run.ours(variant, "echo", "--port", "dpdk:net_ring0")
    has_counted(report, "tx", report["tx_packets"])
    has_counted(report, "rx", report["from_wire"])
    return report["received"]


def net_null(run, variant):
    sent = run.ours(variant, "send", "--port", "dpdk:net_null0")
    has_counted(sent, "tx", sent["tx_packets"])
    came = run.ours(variant, "receive", "--port", "dpdk:net_null0", "--seconds", 1, may_fail=True)
    check(f"{came['foreign']} frames came from net_null", came["foreign"] > 0)
    has_counted(came, "rx", came["from_wire"])
    return sent["tx_packets"]


ROWS = [
    *(("pcap", program, f"{kind} written", to_program(program))
      for program in ("tcpdump", "tshark") for kind in ("pcap", "pcapng", "pcap jumbo")),
    ("pcap", "tcpdump", "read", from_program("tcpdump")),
    *(("pcap", "tshark", f"{kind} read", from_program("tshark"))
      for kind in ("pcap", "pcapng", "nsecpcap", "pcapng jumbo")),
    *(("pcap", "net_pcap", variant, net_pcap) for variant in ("", "jumbo")),
    ("dpdk", "net_null", "", net_null),
    *(("dpdk", "net_ring", variant, net_ring) for variant in ("", "jumbo", "2 queues")),
]
