"""Rows of the ports that are an interface of the kernel: `af_packet`, `af_xdp`, `tap`, and
`dpdk:net_af_packet`."""

import json

from lib.interop.side import (
    FORWARDED, REPLY, SWAPPED, Cannot, Echo, await_traffic, came_back, echo_against_socket,
    echo_against_testpmd, has_echoed, mtu, queues, settled, testpmd,
)
from lib.testbed import MAC_A, MAC_B, Namespace, Process, check, must, need, veth

PLAIN = ["", "jumbo", "2 queues"]
XDP = ["native", "skb", "native, jumbo", "native, 2 queues"]
IP_A, IP_B = "10.77.0.2", "10.77.0.1"
# A MAC address that differs from all other runs': late frames of earlier runs are not counted.
OTHER = ("--near", f"{MAC_A}/{IP_A}:50000")


def spec(driver):
    def port(interface, variant):
        mode = next((word for word in ("native", "skb") if word in variant.replace(",", " ").split()), None)
        return f"{driver}:{interface}" + (f",attach={mode}" if mode else "")
    return port


def af_packet_vdev(interface, variant):
    frames = "framesz=16384,blocksz=65536,framecnt=512" if "jumbo" in variant else "framecnt=512"
    return f"net_af_packet0,iface={interface},qpairs={queues(variant)},{frames}"


def af_xdp_vdev(interface, variant):
    if "jumbo" in variant:
        raise Cannot("net_af_xdp takes no frame that is longer than its buffers, of one page at most")
    if interface == "vb" and queues(variant) > 1:
        raise Cannot("net_af_xdp counts combined channels alone, and a veth has none: one queue to it")
    return f"net_af_xdp0,iface={interface},start_queue=0,queue_count={queues(variant)}"


def dpdk_af_packet(interface, variant):
    return "dpdk:" + af_packet_vdev(interface, variant).replace(",", ";")


VDEVS = {"net_af_packet": af_packet_vdev, "net_af_xdp": af_xdp_vdev}


def as_kernel_end(space, device):
    """Gives an interface an address, and Pollux's MAC address as its neighbour."""
    space.ip(f"address add {IP_B}/24 dev {device}")
    space.ip(f"neighbour add {IP_A} lladdr {MAC_A} dev {device} nud permanent")
    if device == "vb":
        # A virtual link needs no checksums, and XDP receives frames before they are computed.
        need("ethtool")
        must([*space.inside, *"ethtool -K vb tx off".split()])


def with_kernel(driver):
    def row(run, variant):
        with veth(mtu(variant), queues(variant)) as (here, there):
            as_kernel_end(there, "vb")
            return echo_against_socket(run, driver("va", variant), variant, here, there)
    return row


def with_testpmd_on_veth(driver, vdev, mode="io", ours=()):
    def row(run, variant):
        vdevs = [vdev("vb", variant)]
        with veth(mtu(variant), queues(variant)) as (here, there):
            peer = testpmd(vdevs, variant, mode, prefix=there.inside)
            return echo_against_testpmd(run, driver("va", variant), peer, variant, ours, here.inside)
    return row


def with_net_tap(driver):
    """testpmd in csum mode at the other side of a tap interface: net_tap checks checksums itself,
    so that testpmd counts wrong ones; net_af_packet does not."""
    def row(run, variant):
        with Namespace() as space:
            peer = testpmd(["net_tap0,iface=pol0"], variant, "csum", prefix=space.inside,
                           options=["--enable-rx-cksum"])
            port = driver("pol0", variant)
            return echo_against_testpmd(run, port, peer, variant, FORWARDED, space.inside)
    return row


def flowgen(run, _):
    """Frames that testpmd makes are right in our parser's eyes, and are as many as it counted."""
    with veth() as (here, there):
        # Pollux's side first: it would miss frames sent before it listens.
        with Process([*here.inside, run.binaries / "pollux", "streams", "--port", "af_packet:va",
                      "--json"]) as listener:
            listener.until("our side does not listen", lambda: "streams" in listener.threads())
            with testpmd(["net_af_packet0,iface=vb"], "", "flowgen", prefix=there.inside,
                         options=["--txpkts=128", "--burst=4"]) as peer:
                await_traffic(peer)
            listener.interrupt()
            check("our side did not end: " + listener.complained(), listener.wait() == 0)
        report = json.loads(listener.said())
    counted = sum(stream["packets"] for stream in report["streams"])
    # Frames that Pollux's side dropped, and frames that it had not polled at its end.
    passed_over = sum(report["dropped"].get(cause, 0) for cause in ("kernel-drop", "aborted"))
    check(f"testpmd sent {peer.counters['TX-packets']}, of which came {report['from_wire']} and "
          f"were right {counted}: {report['dropped']}",
          0 < counted == report["from_wire"] - passed_over
          and report["from_wire"] == peer.counters["TX-packets"])
    return counted


def on_tap(row):
    """A tap interface in a namespace, whose other side is the kernel's."""
    def in_namespace(run, variant):
        with Namespace() as space:
            space.ip("tuntap add pol0 mode tap multi_queue")
            space.ip(f"link set pol0 up mtu {mtu(variant)} address {MAC_B}")
            return row(run, variant, space)
    return in_namespace


@on_tap
def tap_with_kernel(run, variant, space):
    as_kernel_end(space, "pol0")
    return echo_against_socket(run, "tap:pol0", variant, space, space)


def tap_is_open(ours, space):
    """The interface has the queues that the port has opened."""
    ours.until("tap:pol0 was not opened", lambda: "LOWER_UP" in space.ip("link show pol0"))


def tap_with_testpmd(vdev):
    def row(run, variant, space):
        vdevs = [vdev("pol0", variant)]
        words = run.words(variant, "echo", "--port", "tap:pol0", "--hold")
        with Process([*space.inside, *words]) as ours:
            tap_is_open(ours, space)
            with testpmd(vdevs, variant, prefix=space.inside) as peer:
                ours.say("")
                report = run.report(ours)
        has_echoed(peer, run.count)
        return report["received"]
    return on_tap(row)


def each_side_killed(run, variant, port, here, make_peer, returned):
    """First the peer is killed in the middle of traffic, and started again: traffic goes on, and
    nothing is lost from then on. Then our side is, which opens its port again at once, and of what
    it sends then nothing is lost either."""
    def ours(*words):
        return Process([*here.inside, *words])

    endless = run.endless(variant, "--port", port, *returned)
    with ours(*endless) as first:
        if port.startswith("tap:"):
            tap_is_open(first, here)
        with make_peer() as peer:
            await_traffic(peer)
            peer.kill()
        peer = make_peer()
        with peer:
            await_traffic(peer)
            first.interrupt()
            report = run.report(first)
            came_back(report, peer)
            with ours(*endless) as second:
                await_traffic(peer)
                second.kill()
            words = run.words(variant, "echo", "--port", port, *returned, *OTHER, "--hold")
            with ours(*words) as third:
                # Frames in flight when Pollux's side was killed.
                before = settled(peer)
                third.say("")
                report = run.report(third)
            echoed = peer.returned() - before
            check(f"the peer echoed {echoed} of {run.count}", echoed == run.count)
    return report["received"]


def killed_with_kernel(driver):
    def row(run, variant):
        with veth(mtu(variant), queues(variant)) as (here, there):
            as_kernel_end(there, "vb")
            return each_side_killed(run, variant, driver("va", variant), here,
                                    lambda: Echo(there.inside), REPLY)
    return row


def killed_with_testpmd(driver, vdev):
    def row(run, variant):
        with veth(mtu(variant), queues(variant)) as (here, there):
            def peer():
                return testpmd([vdev("vb", variant)], variant, prefix=there.inside)
            return each_side_killed(run, variant, driver("va", variant), here, peer, ())
    return row


@on_tap
def tap_killed_with_kernel(run, variant, space):
    as_kernel_end(space, "pol0")
    return each_side_killed(run, variant, "tap:pol0", space, lambda: Echo(space.inside), REPLY)


@on_tap
def tap_killed_with_testpmd(run, variant, space):
    def peer():
        return testpmd([af_packet_vdev("pol0", variant)], variant, prefix=space.inside)
    return each_side_killed(run, variant, "tap:pol0", space, peer, ())


ROWS = [
    *(("af_packet", "kernel socket", variant, with_kernel(spec("af_packet"))) for variant in PLAIN),
    *(("af_packet", peer, variant, with_testpmd_on_veth(spec("af_packet"), vdev))
      for peer, vdev in VDEVS.items() for variant in PLAIN),
    *(("af_xdp", "kernel socket", variant, with_kernel(spec("af_xdp"))) for variant in XDP),
    *(("af_xdp", peer, variant, with_testpmd_on_veth(spec("af_xdp"), vdev))
      for peer, vdev in VDEVS.items() for variant in XDP),
    *(("tap", "kernel socket", variant, tap_with_kernel) for variant in PLAIN),
    *(("tap", peer, variant, tap_with_testpmd(vdev))
      for peer, vdev in VDEVS.items() for variant in PLAIN),
    *((port, "kernel socket", f"{variant}each side killed and restarted",
       killed_with_kernel(spec(port)))
      for port, variant in (("af_packet", ""), ("af_xdp", "native, "), ("af_xdp", "skb, "))),
    *((port, peer, f"{variant}each side killed and restarted", killed_with_testpmd(spec(port), vdev))
      for port, peer, variant, vdev in (
          ("af_packet", "net_af_packet", "", af_packet_vdev),
          ("af_xdp", "net_af_xdp", "native, ", af_xdp_vdev),
          ("af_xdp", "net_af_packet", "native, 2 queues, ", af_packet_vdev))),
    ("tap", "kernel socket", "each side killed and restarted", tap_killed_with_kernel),
    ("tap", "net_af_packet", "each side killed and restarted", tap_killed_with_testpmd),
    *(("dpdk", "net_af_packet on a veth, kernel socket", variant, with_kernel(dpdk_af_packet))
      for variant in PLAIN),
    *((port, f"testpmd {mode}", variant,
       with_testpmd_on_veth(spec(port), af_packet_vdev, mode, ours))
      for mode, ours in (("csum", FORWARDED), ("5tswap", SWAPPED),
                         ("icmpecho", (*REPLY, "--kind", "ping")))
      for port, variant in (("af_packet", ""), ("af_packet", "jumbo"), ("af_xdp", "native"))
      if (mode, variant) != ("icmpecho", "jumbo")),
    *((port, "testpmd csum over net_tap", variant, with_net_tap(spec(port)))
      for port, variant in (("af_packet", ""), ("af_packet", "2 queues"), ("af_xdp", "skb"))),
    ("af_packet", "testpmd flowgen", "", flowgen),
]
