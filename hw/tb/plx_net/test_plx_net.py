"""plx_net: a port that answers ARP and pings, resolves neighbours, and sends and receives at once."""

import random
from collections import Counter

import cocotb
import cycles
from clocks import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from frames import (BROADCAST, IP_ADDRESS, MAC, PEER, PEER_IP, Payload, Settings, arp, fate, integer, kept, ones_sum,
                    pad, ping, some, udp)
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import ARP, Dot1Q, Ether
from sending import Frames, Packets, cycle, judge, meta

# Small enough for the time that a test has; defaults are in net_loop.
ENTRIES = 64
PARAMETERS = [{"ARP_ENTRIES": 64, "ARP_TICK_BITS": 9, "ECHO_WORDS": 256}]
COUNTS = ("drop_address", "drop_malformed", "drop_checksum", "drop_fragment", "drop_unsupported", "drop_miss",
          "drop_answer", "arp_frames", "echo_frames", "tx_unresolved")
TICK = 1 << 9
WAIT, RETRY = 900, 8
NOTHING, ASKED, KNOWN, FIXED = 0, 1, 2, 4


def place(ip):
    """The set of the cache that a neighbour belongs to."""
    return (integer(ip) ^ integer(ip) >> 8) % (ENTRIES // 4)


class TB:
    """The bench: a MAC at both ends, a host, and the registers of the cache."""

    def __init__(self, dut):
        self.dut, self.counts, self.payloads, self.fates, self.lost = dut, Counter(), [], [], []
        self.packets, self.sent = Packets(dut), Frames(dut)
        cocotb.start_soon(Clock(dut.clk, 6400, "ps").start())

    async def start(self, **settings):
        dut = self.dut
        self.settings = Settings(**settings)
        self.settings.write(dut)
        for signal in ("tvalid", "tdata", "tkeep", "tlast", "tuser", "cycle_ts", "timestamp_ns", "timestamp_valid"):
            getattr(dut, f"s_axis_rx_{signal}").value = 0
        dut.now_cycle_ts.value = dut.arp_flush.value = dut.discard.value = 0
        dut.cfg_destination_ip.value, dut.cfg_destination_port.value, dut.cfg_source_port.value = 0, 1, 2
        dut.cfg_ttl.value, dut.cfg_tos.value = 64, 0
        dut.cfg_arp_wait_cycles.value, dut.cfg_arp_retry.value, dut.cfg_arp_expiry.value = WAIT, RETRY, 0
        for signal in ("valid", "write", "addr", "wdata", "wstrb"):
            getattr(dut, f"win_{signal}").value = 0
        dut.rst.value = 1
        await ClockCycles(dut.clk, 3)
        dut.rst.value = 0
        cocotb.start_soon(self.sent.run())
        cocotb.start_soon(self.watch())
        # The cache clears itself.
        await ClockCycles(dut.clk, ENTRIES + 4)
        return self

    async def watch(self):
        dut, data = self.dut, b""
        signals = [(name, getattr(dut, f"inc_{name}")) for name in COUNTS]
        while True:
            await RisingEdge(dut.clk)
            for name, signal in signals:
                if signal.value == 1:
                    self.counts[name] += 1
            if dut.m_lost_valid.value == 1:
                self.lost.append(dut.m_lost_cookie.value.integer)
            if dut.m_axis_payload_tvalid.value == 1:
                count = dut.m_axis_payload_tkeep.value.integer.bit_length()
                data += kept(dut.m_axis_payload_tdata, count)
                if dut.m_axis_payload_tlast.value == 1:
                    if dut.m_axis_payload_tuser.value == 0:
                        self.payloads.append(data)
                    data = b""

    async def receive(self, *frames, gap=2):
        """Frames from the wire; a MAC leaves at least two words between them."""
        dut = self.dut
        for frame in frames:
            self.fates.append(fate(frame, self.settings))
            for at in range(0, len(frame), 8):
                word = frame[at:at + 8]
                dut.s_axis_rx_tvalid.value, dut.s_axis_rx_tlast.value = 1, at + 8 >= len(frame)
                dut.s_axis_rx_tdata.value = int.from_bytes(word.ljust(8, b"\0"), "little")
                dut.s_axis_rx_tkeep.value = (1 << len(word)) - 1
                await RisingEdge(dut.clk)
            dut.s_axis_rx_tvalid.value = 0
            for _ in range(gap):
                await RisingEdge(dut.clk)

    async def transmit(self, *packets):
        offering = cocotb.start_soon(self.packets.metadata(packets))
        await self.packets.words(packets)
        await offering

    async def quiet(self):
        """Waits until the module is idle, and returns the frames sent since."""
        still = 0
        while still < 20:
            await RisingEdge(self.dut.clk)
            still = 0 if self.dut.tx_busy.value == 1 or self.dut.rx_busy.value == 1 else still + 1
        frames, self.sent.frames = self.sent.frames, []
        return frames

    def balance(self):
        """Every frame is a payload, an answer, consumed, or lost for one cause."""
        expected = Counter(what for what in self.fates if isinstance(what, str))
        payloads = [what.data for what in self.fates if isinstance(what, Payload)]
        assert self.payloads == payloads
        answered = self.counts["arp_frames"] + self.counts["echo_frames"] + self.counts["drop_answer"]
        assert answered == expected.pop("arp", 0) + expected.pop("echo", 0)
        lost = {name.removeprefix("drop_"): count for name, count in self.counts.items()
                if name.startswith("drop_") and name != "drop_answer" and count}
        assert lost == expected, (lost, expected)

    async def register(self, at, value=None, strobe=15):
        dut = self.dut
        dut.win_valid.value, dut.win_write.value, dut.win_addr.value = 1, value is not None, at
        dut.win_wdata.value, dut.win_wstrb.value = value or 0, strobe
        await RisingEdge(dut.clk)
        while dut.win_ready.value != 1:
            await RisingEdge(dut.clk)
        dut.win_valid.value = 0
        return dut.win_rdata.value.integer if value is None else None

    async def entry(self, ip):
        """The cache entry of an address: address, neighbour, state; zeros if there is none."""
        found = []
        for way in range(4):
            at = 64 * place(ip) + 16 * way
            address, low, high = [await self.register(at + word) for word in (0, 8, 12)]
            if address == integer(ip) and high >> 16:
                found.append((address, low | (high & 0xFFFF) << 32, high >> 16))
        assert len(found) <= 1, "an address is in two places"
        return found[0] if found else (0, 0, NOTHING)

    async def fix(self, ip, mac, way=0):
        at, neighbour = 64 * place(ip) + 16 * way, integer(mac)
        await self.register(at, integer(ip))
        await self.register(at + 8, neighbour & 0xFFFFFFFF)
        await self.register(at + 12, neighbour >> 32 | (KNOWN | FIXED) << 16)


def asks(frame):
    return Ether(frame)[ARP].op == 1


def is_request(frame, ip):
    query = Ether(frame)[ARP]
    assert (query.op, query.hwsrc, query.psrc, query.pdst) == (1, MAC, IP_ADDRESS, ip), query.summary()
    assert Ether(frame).dst == BROADCAST and len(frame) == 42
    return True


def is_reply(frame, mac=PEER, ip=PEER_IP, vlan=None):
    ether = Ether(frame)
    reply = ether[ARP]
    assert (ether.dst, ether.src, reply.op) == (mac, MAC, 2)
    assert (reply.hwsrc, reply.psrc, reply.hwdst, reply.pdst) == (MAC, IP_ADDRESS, mac, ip)
    assert (reply.hwtype, reply.ptype, reply.hwlen, reply.plen) == (1, 0x0800, 6, 4)
    assert len(frame) == (42 if vlan is None else 46) and (vlan is None or ether[Dot1Q].vlan == vlan)
    return True


def is_answer(frame, request):
    """scapy: the reply to that ping, all checksums correct, the same data."""
    reply, asked = Ether(frame), Ether(request)
    assert (reply.dst, reply.src) == (asked.src, MAC)
    assert (reply[IP].src, reply[IP].dst, reply[IP].ttl) == (IP_ADDRESS, asked[IP].src, 64)
    assert (reply[ICMP].type, reply[ICMP].code) == (0, 0)
    assert (reply[ICMP].id, reply[ICMP].seq) == (asked[ICMP].id, asked[ICMP].seq)
    assert (Dot1Q in reply) == (Dot1Q in asked) and (Dot1Q not in reply or reply[Dot1Q].vlan == asked[Dot1Q].vlan)
    at = 18 if Dot1Q in asked else 14
    assert ones_sum(frame[at:at + 20]) == 0xFFFF and ones_sum(frame[at + 20:at + asked[IP].len]) == 0xFFFF
    assert frame[at + 24:] == request[at + 24:] and len(frame) == len(request)
    return True


@cocotb.test()
async def arp_is_always_answered(dut):
    """daqiri#205: with streams set up or not; requests for others are not, a probe is."""
    tb = await TB(dut).start()
    await tb.receive(arp(), gap=12)
    await tb.receive(arp(vlan=0x123), gap=12)
    await tb.receive(arp(psrc="0.0.0.0"), arp(dst=MAC), gap=12)
    await tb.receive(arp(pdst="10.0.0.7"), arp(op=2), arp(hwsrc="03:00:00:00:00:01"), arp(hwsrc=MAC), arp(plen=6))
    frames = await tb.quiet()
    assert len(frames) == 4
    assert is_reply(frames[0]) and is_reply(frames[1], vlan=0x123)
    assert is_reply(frames[2], ip="0.0.0.0") and is_reply(frames[3])
    tb.balance()
    assert tb.counts["arp_frames"] == 8 and tb.counts["drop_answer"] == 0


@cocotb.test()
async def pings_are_answered(dut):
    """All lengths of the last word; tags; values whose checksums wrap; nothing else is."""
    tb = await TB(dut).start()
    requests = [ping(some(size), vlan=vlan) for size in (0, 1, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 56, 1000)
                for vlan in (None, 9)]
    requests += [ping(some(40), id=word, seq=0, ip={"ttl": ttl, "id": word}) for word, ttl in
                 ((0, 0), (0xFFFF, 255), (0xF7FF, 64), (0xF800, 1), (0xC000, 65))]
    # The field that may be written in two ways, from a sender that writes it the other way.
    for answer_zero in (b"\xf7\xff\x00\x00", b"\x00\x00\xf7\xff"):
        requests.append(pad(bytes(Ether(src=PEER, dst=MAC) / IP(src=PEER_IP, dst=IP_ADDRESS)
                                  / ICMP(type=8, id=int.from_bytes(answer_zero[:2], "big"),
                                         seq=int.from_bytes(answer_zero[2:], "big")))))
    for request in requests:
        await tb.receive(request)
        frame, = await tb.quiet()
        assert is_answer(frame, request)
    others = [ping(chksum=9), ping(type=0), ping(ip={"dst": "10.0.0.2"}), ping(dst=BROADCAST), ping(some(20))[:55],
              ping(ip={"flags": "MF"})]
    await tb.receive(*others)
    assert await tb.quiet() == []
    tb.balance()
    assert tb.counts["echo_frames"] == len(requests)


@cocotb.test()
async def no_room_to_answer(dut):
    """Requests that cannot be answered in time are counted, and answers are complete."""
    tb = await TB(dut).start()
    tb.sent.busy = 1.0
    # Five requests find a place: one is being sent, four wait. Of 256 words one of the pings has 100.
    await tb.receive(*[arp()] * 8, *[ping(bytes(758))] * 4, ping(bytes(2100)), *[arp(op=2)] * 2)
    await ClockCycles(dut.clk, 10)
    assert tb.counts["drop_answer"] == 3 + 3 and tb.counts["arp_frames"] == 7
    tb.sent.busy = 0.3
    frames = await tb.quiet()
    assert Counter(Ether(frame).type for frame in frames) == {0x0806: 5, 0x0800: 2}
    tb.balance()
    # And there is room again.
    await tb.receive(arp(), ping(some(100)))
    assert len(await tb.quiet()) == 2


@cocotb.test()
async def latency(dut):
    """From the first payload word accepted to the first word of the frame, with the neighbour known."""
    tb = await TB(dut).start()
    await tb.receive(arp(op=2, dst=MAC))
    await tb.quiet()
    for size in (0, 18, 64, 1024):
        measured = []
        # The cache ages a set every 32 cycles here (every 16384 on the card); that takes one of them. It is not looked
        # for with each size.
        phases = 32 if size == 64 else 4
        for phase in range(phases):
            tb.packets.taken, tb.sent.first = [], []
            while cycle() % 32 != phase:
                await RisingEdge(dut.clk)
            await tb.transmit((some(size), meta(size)))
            await tb.quiet()
            measured.append(tb.sent.first[0] - tb.packets.taken[0])
        cycles.check("udp_tx", min(measured))
        late = [one - min(measured) for one in measured if one > min(measured)]
        assert late == [1] or phases < 32 and not late, measured


@cocotb.test()
async def a_neighbour_is_asked_for_once(dut):
    """A packet waits for it; then it is known, and known to software."""
    tb = await TB(dut).start()
    assert await tb.entry(PEER_IP) == (0, 0, NOTHING)
    sending = cocotb.start_soon(tb.transmit(*[(some(size), meta(size)) for size in (200, 3, 50)]))
    await ClockCycles(dut.clk, 60)
    assert is_request(*tb.sent.frames, PEER_IP)
    assert await tb.entry(PEER_IP) == (integer(PEER_IP), 0, ASKED)
    # Others talk meanwhile.
    await tb.receive(arp(psrc="10.0.0.9", hwsrc="02:00:00:00:00:09"), arp(op=2, dst=MAC))
    await sending
    frames = await tb.quiet()
    assert is_request(frames[0], PEER_IP) and is_reply(frames[1], "02:00:00:00:00:09", "10.0.0.9")
    for frame in frames[2:]:
        judge(frame, frame[42:], checksum=0)
    assert [len(frame) - 42 for frame in frames[2:]] == [200, 3, 50]
    assert await tb.entry(PEER_IP) == (integer(PEER_IP), integer(PEER), KNOWN)
    assert await tb.entry("10.0.0.9") == (integer("10.0.0.9"), integer("02:00:00:00:00:09"), KNOWN)
    # It has a new MAC address (RFC 826); one that never talked to this port is not kept.
    await tb.receive(arp(pdst="10.0.0.8", hwsrc="02:00:00:00:00:77"), arp(pdst="10.0.0.8", psrc="10.0.0.7"))
    await ClockCycles(dut.clk, 10)
    assert (await tb.entry(PEER_IP))[1] == integer("02:00:00:00:00:77")
    assert await tb.entry("10.0.0.7") == (0, 0, NOTHING)
    tb.balance()


@cocotb.test()
async def a_silent_address_delays_one_packet(dut):
    """It is requested once, and its packet lost after the set wait; later ones are lost at once, until it expires."""
    tb = await TB(dut).start()
    await tb.receive(arp(op=2, dst=MAC))
    data, silent = some(100), "10.0.0.40"

    async def lose(cookie):
        """Sends to the silent address, then to the peer: requests that leave, cycles to the peer's frame."""
        tb.packets.taken, tb.sent.first = [], []
        await tb.transmit((some(100), meta(100, silent, cookie=cookie, told=1)), (data, meta(100, told=1)))
        *requests, frame = await tb.quiet()
        assert all(is_request(request, silent) for request in requests)
        judge(frame, data, checksum=0)
        assert tb.lost.pop() == cookie and not tb.lost
        return len(requests), tb.sent.first[-1] - tb.packets.taken[0]

    requests, late = await lose(7)
    assert requests == 1 and WAIT <= late < WAIT + 40, (requests, late)
    assert await tb.entry(silent) == (integer(silent), 0, ASKED)
    for cookie in (8, 9):
        requests, late = await lose(cookie)
        assert requests == 0 and late < 40, (requests, late)
    assert tb.counts["tx_unresolved"] == 3
    await ClockCycles(dut.clk, (RETRY + 1) * TICK)
    assert (await tb.entry(silent))[2] == NOTHING
    assert (await lose(10))[0] == 1
    # Its answer is late, but counts for the next packet.
    await tb.receive(arp(op=2, dst=MAC, psrc=silent), gap=12)
    await tb.transmit((data, meta(100, silent)))
    frame, = await tb.quiet()
    judge(frame, data, silent, checksum=0)
    # At the last moment it is in time.
    sending = cocotb.start_soon(tb.transmit((data, meta(100, "10.0.0.41"))))
    await ClockCycles(dut.clk, WAIT - 20)
    await tb.receive(arp(op=2, dst=MAC, psrc="10.0.0.41"))
    await sending
    request, frame = await tb.quiet()
    assert is_request(request, "10.0.0.41") and tb.counts["tx_unresolved"] == 4
    judge(frame, data, "10.0.0.41", checksum=0)
    # No wait: the request leaves.
    dut.cfg_arp_wait_cycles.value = 0
    await tb.transmit((data, meta(100, "10.0.0.42")))
    assert is_request(*await tb.quiet(), "10.0.0.42") and tb.counts["tx_unresolved"] == 5 and not tb.lost
    tb.balance()


@cocotb.test()
async def a_request_waits_behind_one_answer(dut):
    """And does not count as one of them: it leaves, and the wait begins when it has left."""
    tb = await TB(dut).start()
    dut.cfg_arp_wait_cycles.value = 0
    tb.sent.busy = 1.0
    await tb.receive(arp(), arp(), arp())
    sending = cocotb.start_soon(tb.transmit((b"late", meta(4, "10.0.0.60")), (b"later", meta(5, "10.0.0.61"))))
    await ClockCycles(dut.clk, 30)
    assert tb.counts["tx_unresolved"] == 0
    tb.sent.busy = 0
    await sending
    frames = await tb.quiet()
    assert len(frames) == 5 and is_reply(frames[0]) and is_request(frames[1], "10.0.0.60")
    other, = [frame for frame in frames[2:] if asks(frame)]
    assert is_request(other, "10.0.0.61") and all(is_reply(frame) for frame in frames[2:] if frame != other)
    assert tb.counts["tx_unresolved"] == 2


@cocotb.test()
async def a_pause_longer_than_the_wait_costs_no_packet(dut):
    """The wait is the neighbour's, and begins when it can know of the request."""
    tb = await TB(dut).start()
    tb.sent.busy = 1.0
    data = some(100)
    sending = cocotb.start_soon(tb.transmit(*[(data, meta(100, cookie=n, told=1)) for n in range(3)]))
    await ClockCycles(dut.clk, 2 * WAIT)
    assert not tb.sent.frames and tb.counts["tx_unresolved"] == 0
    tb.sent.busy = 0.0
    await ClockCycles(dut.clk, WAIT - 50)
    await tb.receive(arp(op=2, dst=MAC))
    await sending
    request, *frames = await tb.quiet()
    assert is_request(request, PEER_IP) and len(frames) == 3
    for frame in frames:
        judge(frame, data, checksum=0)
    assert tb.counts["tx_unresolved"] == 0 and not tb.lost


@cocotb.test()
async def a_flood_of_requests_keeps_no_own_back(dut):
    """More than the MAC has room to answer; the port's own request leaves in its turn, and its packet too."""
    tb = await TB(dut).start()
    tb.sent.busy, ending = 0.43, []

    async def flood():
        while not ending:
            await tb.receive(arp(psrc="10.0.0.99", hwsrc="02:00:00:00:00:99"))

    flooding = cocotb.start_soon(flood())
    await ClockCycles(dut.clk, 200)
    sending = cocotb.start_soon(tb.transmit((some(100), meta(100, "10.0.0.40"))))
    await ClockCycles(dut.clk, 200)
    assert tb.counts["drop_answer"]
    assert sum(is_request(frame, "10.0.0.40") for frame in tb.sent.frames if asks(frame)) == 1
    ending.append(True)
    await flooding
    await tb.receive(arp(op=2, dst=MAC, psrc="10.0.0.40"))
    await sending
    await tb.quiet()
    assert tb.counts["tx_unresolved"] == 0
    tb.balance()


@cocotb.test()
async def a_static_neighbour_wins_over_a_learnt_one(dut):
    """In any row beside it, and what the other announces later changes nothing."""
    tb = await TB(dut).start()
    router, learnt, static = "10.0.0.60", "02:00:00:00:12:34", "02:00:00:00:56:78"
    await tb.receive(arp(psrc=router, hwsrc=learnt), gap=12)
    await tb.quiet()
    await tb.fix(router, static, way=3)
    data = some(100)
    for _ in range(2):
        await tb.transmit((data, meta(100, router)))
        frame, = await tb.quiet()
        judge(frame, data, router, neighbour=static, checksum=0)
        await tb.receive(arp(psrc=router, hwsrc="02:00:00:00:9a:bc"), gap=12)
        await tb.quiet()
    # The one beside it is as it was.
    row = 64 * place(router)
    assert await tb.register(row) == integer(router) and await tb.register(row + 8) & 0xFFFF_FFFF == 0x1234


@cocotb.test()
async def groups_need_no_neighbour(dut):
    """Broadcast, and multicast by RFC 1112 section 6.4."""
    tb = await TB(dut).start()
    targets = (("255.255.255.255", BROADCAST), ("224.0.0.1", "01:00:5e:00:00:01"),
               ("239.255.129.3", "01:00:5e:7f:81:03"))
    await tb.transmit(*[(b"hello", meta(5, ip)) for ip, _ in targets])
    for frame, (ip, mac) in zip(await tb.quiet(), targets, strict=True):
        judge(frame, b"hello", ip, neighbour=mac, checksum=0)


@cocotb.test()
async def entries_expire(dut):
    """After the set time without a frame; static ones never."""
    tb = await TB(dut).start()
    dut.cfg_arp_expiry.value = 3
    await tb.fix("10.0.0.50", "02:00:00:00:00:50")
    await tb.receive(arp(op=2, dst=MAC), arp(op=2, dst=MAC, psrc="10.0.0.51"))
    await ClockCycles(dut.clk, 2 * TICK - 100)
    assert (await tb.entry(PEER_IP))[2] == KNOWN
    await tb.receive(arp(op=2, dst=MAC))
    await ClockCycles(dut.clk, TICK + 200)
    assert (await tb.entry(PEER_IP))[2] == KNOWN and (await tb.entry("10.0.0.51"))[2] == NOTHING
    await ClockCycles(dut.clk, 2 * TICK)
    assert (await tb.entry(PEER_IP))[2] == NOTHING
    assert await tb.entry("10.0.0.50") == (integer("10.0.0.50"), integer("02:00:00:00:00:50"), KNOWN | FIXED)


@cocotb.test()
async def sets_hold_four_and_keep_static_ones(dut):
    """A fifth address of a set takes the place of a silent one, else of each in turn, never of a static one."""
    tb = await TB(dut).start()
    stranger = "02:00:00:00:00:98"
    rivals = [ip for ip in (f"10.0.{net}.{last}" for net in (1, 2) for last in range(256))
              if place(ip) == place(PEER_IP)][:8]

    async def meet(*ips):
        for ip in ips:
            await tb.receive(arp(op=2, dst=MAC, psrc=ip, hwsrc=stranger), gap=12)

    async def states():
        return [(await tb.entry(ip))[2] for ip in rivals]

    await meet(*rivals[:3])
    # Nobody answers: it is stored as requested, and the next neighbour takes its place.
    await tb.transmit((b"lost", meta(4, rivals[3])))
    assert is_request(*await tb.quiet(), rivals[3]) and (await states())[:4] == [KNOWN] * 3 + [ASKED]
    await meet(rivals[4])
    assert (await states())[:5] == [KNOWN] * 3 + [NOTHING, KNOWN]
    # Each in turn: after four others none of the first is left.
    await meet(rivals[5], rivals[6])
    assert (await states()).count(KNOWN) == 4 and (await states())[5:7] == [KNOWN] * 2
    await meet(rivals[7], rivals[3])
    assert await states() == [NOTHING] * 3 + [KNOWN, NOTHING, KNOWN, KNOWN, KNOWN]
    # Static ones stay, and learn nothing.
    for way, ip in enumerate(rivals[:3]):
        await tb.fix(ip, "02:00:00:00:00:aa", way)
    await meet(*rivals)
    for ip in rivals[:3]:
        assert await tb.entry(ip) == (integer(ip), integer("02:00:00:00:00:aa"), KNOWN | FIXED)
    assert await states() == [KNOWN | FIXED] * 3 + [NOTHING] * 4 + [KNOWN]
    # With four of them a fifth is resolved for each packet.
    await tb.fix(PEER_IP, "02:00:00:00:00:ab", 3)
    for _ in range(2):
        sending = cocotb.start_soon(tb.transmit((b"one", meta(3)), (b"two", meta(3, rivals[7]))))
        await ClockCycles(dut.clk, 50)
        await meet(rivals[7])
        await sending
        one, request, two = await tb.quiet()
        judge(one, b"one", neighbour="02:00:00:00:00:ab", checksum=0)
        judge(two, b"two", rivals[7], neighbour=stranger, checksum=0)
        assert is_request(request, rivals[7])
    # Writes of less than a register do nothing; a flush forgets all.
    await tb.register(64 * place(PEER_IP) + 48 + 12, 0, strobe=3)
    assert (await tb.entry(PEER_IP))[2] == KNOWN | FIXED
    dut.arp_flush.value = 1
    await RisingEdge(dut.clk)
    dut.arp_flush.value = 0
    assert await tb.entry(PEER_IP) == (0, 0, NOTHING) and await states() == [NOTHING] * 8


@cocotb.test()
async def everything_at_once(dut):
    """fmad100_issues#1: random load in both directions; no starvation, nothing lost without a count."""
    tb = await TB(dut).start(catch_udp=1)
    await tb.fix(PEER_IP, PEER)
    tb.sent.busy = 0.3
    packets = [(data, meta(len(data))) for data in (some(random.choice((0, 18, 64, 200))) for _ in range(60))]
    sending = cocotb.start_soon(tb.transmit(*packets))
    frames = [random.choice((arp(), ping(some(random.randrange(200))), udp(some(random.randrange(200))),
                             udp(some(30), 5003), udp(some(9), 9), udp(some(9), chksum=1), arp(pdst="10.0.0.3")))
              for _ in range(60)]
    for frame in frames:
        await tb.receive(frame, gap=random.choice((2, 3, 30)))
    await sending
    sent = await tb.quiet()
    tb.balance()
    kinds = {"udp": [], "arp": 0, "echo": 0}
    for frame in sent:
        if Ether(frame).type == 0x0806:
            kinds["arp"] += is_reply(frame)
        elif frame[23] == 1:
            kinds["echo"] += 1
        else:
            kinds["udp"].append(frame)
    for frame, (data, _) in zip(kinds["udp"], packets, strict=True):
        judge(frame, data, checksum=0)
    answers = [frame for frame in frames
               if fate(frame, tb.settings) in ("arp", "echo") and frame != arp(pdst="10.0.0.3")]
    assert kinds["arp"] + kinds["echo"] + tb.counts["drop_answer"] == len(answers)
    assert kinds["echo"] == tb.counts["echo_frames"]


@cocotb.test()
async def a_packet_of_a_port_in_reset_waits_for_no_neighbour(dut):
    """However long it might; no other is requested, and none is counted or told to a ring."""
    tb = await TB(dut).start()
    dut.cfg_arp_wait_cycles.value = 0xFFFFFFFF
    await tb.transmit((b"one", meta(3, told=1)))
    await ClockCycles(dut.clk, 60)
    assert dut.ring_busy.value == 1
    dut.discard.value = 1
    await ClockCycles(dut.clk, 12)
    assert dut.tx_busy.value == 0 and dut.ring_busy.value == 0
    request, = await tb.quiet()
    assert is_request(request, PEER_IP)
    await tb.transmit((b"two", meta(3, "10.0.0.99", told=1)), (b"three", meta(5, told=1)))
    assert not await tb.quiet() and (await tb.entry("10.0.0.99"))[2] == NOTHING
    assert tb.counts["tx_unresolved"] == 0 and not tb.lost
    dut.discard.value = 0
    await tb.fix(PEER_IP, PEER)
    await tb.transmit((b"four", meta(4)))
    frame, = await tb.quiet()
    judge(frame, b"four", checksum=0)
