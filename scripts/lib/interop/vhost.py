"""Rows of the port `vhost-user`, either end."""

from lib.interop.side import (
    FORWARDED, SWAPPED, await_traffic, came_back, echo_against_testpmd, has_echoed, mtu, queues,
    testpmd,
)
from lib.testbed import MAC_B, Process

RINGS = ["split", "split mergeable", "split in-order", "split in-order mergeable", "packed",
         "packed mergeable", "packed in-order", "packed in-order mergeable", "split, 2 queues",
         "packed in-order, 2 queues", "split mergeable, jumbo", "split in-order mergeable, jumbo",
         "packed mergeable, jumbo", "packed in-order mergeable, jumbo"]
KINDS = ["split", "split mergeable", "packed in-order", "packed in-order mergeable",
         "split, 2 queues", "packed in-order, 2 queues"]
SERVER = ",role=device,server=on"


def ring_options(variant):
    words = variant.replace(",", " ").split()
    switches = ",".join(f"{option}={'on' if option in words else 'off'}"
                        for option in ("packed", "in-order", "mergeable"))
    return f"{switches},queues={queues(variant)},mtu={mtu(variant)}"


def net_vhost(socket, variant, mode="io"):
    return testpmd([f"net_vhost0,iface={socket},queues={queues(variant)}"], variant, mode)


def net_virtio_user(socket, variant, mode="io"):
    words = variant.replace(",", " ").split()
    vdev = (f"net_virtio_user0,path={socket},queues={queues(variant)},queue_size=512,"
            f"packed_vq={int('packed' in words)},in_order={int('in-order' in words)},"
            f"mrg_rxbuf={int('mergeable' in words)},mac={MAC_B}")
    return testpmd([vdev], variant, mode, eal=["--single-file-segments"])


def front_end(mode="io", ours=()):
    def row(run, variant):
        socket = run.file("sock")
        port = f"vhost-user:{socket},{ring_options(variant)}"
        return echo_against_testpmd(run, port, net_vhost(socket, variant, mode), variant, ours)
    return row


def back_end(mode="io", ours=()):
    def row(run, variant):
        socket = run.file("sock")
        port = f"vhost-user:{socket},{ring_options(variant)}{SERVER}"
        with Process(run.words(variant, "echo", *ours, "--port", port, "--hold")) as side:
            side.until("no socket was made", socket.exists)
            with net_virtio_user(socket, variant, mode) as peer:
                # testpmd drops the frames that arrive before it forwards, as soon as its buffers are
                # posted.
                side.say("")
                report = run.report(side)
        has_echoed(peer, run.count)
        return report["received"]
    return row


def both_ends(run, variant):
    """Our front end sends from its first poll on, whatever the link is: nothing may be lost."""
    socket = run.file("sock")
    device = f"vhost-user:{socket},{ring_options(variant)}{SERVER}"
    driver = f"vhost-user:{socket},{ring_options(variant)}"
    with Process(run.words(variant, "echo", "--port", driver, "--at-once")) as ours:
        with Process([run.binaries / "pollux", "forward", device, "--queues", queues(variant)]):
            return run.report(ours)["received"]


def restarted(role, make_peer):
    """The peer is killed in the middle of traffic and started again: traffic goes on."""
    def row(run, variant):
        socket = run.file("sock")
        port = f"vhost-user:{socket},{ring_options(variant)}{role}"
        with Process(run.endless(variant, "--port", port)) as ours:
            if role:
                ours.until("no socket was made", socket.exists)
            with make_peer(socket, variant) as peer:
                await_traffic(peer)
                peer.kill()
            if not role:
                socket.unlink(missing_ok=True)
            with make_peer(socket, variant) as peer:
                await_traffic(peer)
                ours.interrupt()
                report = run.report(ours)
                came_back(report, peer)
        return report["received"]
    return row


ROWS = [
    *(("vhost-user front end", "net_vhost", variant, front_end()) for variant in RINGS),
    *(("vhost-user back end", "net_virtio_user", variant, back_end()) for variant in RINGS),
    *(("vhost-user front end", "our back end", f"{variant}, at once", both_ends) for variant in RINGS),
    *(("vhost-user front end", "net_vhost", f"{kind}, killed and restarted", restarted("", net_vhost))
      for kind in KINDS),
    *(("vhost-user back end", "net_virtio_user", f"{kind}, killed and restarted",
       restarted(SERVER, net_virtio_user)) for kind in KINDS),
    *((f"vhost-user {end}", f"testpmd {mode} over {peer}", variant, row(mode, ours))
      for mode, ours in (("csum", FORWARDED), ("5tswap", SWAPPED))
      for end, peer, variant, row in (
          ("front end", "net_vhost", "packed in-order mergeable", front_end),
          ("back end", "net_virtio_user", "split mergeable, jumbo", back_end))),
]
