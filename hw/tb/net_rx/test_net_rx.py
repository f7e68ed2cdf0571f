"""parse, demux, plx_udp_rx: outcomes of frames, and complaints of users of UDP cores."""

import random
from collections import Counter

import cocotb
import cycles
from clocks import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotb.utils import get_sim_time
from frames import (BROADCAST, DEFAULT_LIST, HITS, PAYLOAD, WHOLE, Payload, Settings, arp, fate, kept, ping, recorded,
                    some, udp)

PERIOD = 6400
CAUSES = ("address", "malformed", "checksum", "fragment", "unsupported", "miss", "arp")
META = {"timestamp_ns": (0, 64), "cycle_ts_mac": (64, 32), "cycle_ts_parsed": (96, 32), "length": (128, 16),
        "source_port": (144, 16), "stream": (160, 5), "delivery_mode": (165, 2), "length_known": (167, 1),
        "timestamp_valid": (168, 1)}


class TB:
    """The bench: frames in, with random idle; output, and counts."""

    def __init__(self, dut):
        self.dut = dut
        self.out, self.bad, self.echoes, self.counts, self.meta = [], [], [], Counter(), []
        self.first_in, self.first_out, self.last_in, self.last_out = [], [], [], []
        cocotb.start_soon(Clock(dut.clk, PERIOD, "ps").start())
        cocotb.start_soon(self.watch())

    @property
    def cycle(self):
        return int(get_sim_time("ps")) // PERIOD

    async def start(self, **settings):
        dut = self.dut
        self.settings = Settings(**settings)
        self.settings.write(dut)
        for signal in ("tvalid", "tdata", "tkeep", "tlast", "tuser", "cycle_ts", "timestamp_ns", "timestamp_valid"):
            getattr(dut, f"s_axis_rx_{signal}").value = 0
        dut.rst.value = 1
        await ClockCycles(dut.clk, 3)
        dut.rst.value = 0
        await RisingEdge(dut.clk)
        return self

    async def watch(self):
        dut, data = self.dut, {}
        while True:
            await RisingEdge(dut.clk)
            dut.now_cycle_ts.value = self.cycle + 1
            if dut.rst.value == 1:
                continue
            if counts := dut.counts.value.integer:
                assert counts & (counts - 1) == 0, "two causes at once"
                self.counts[CAUSES[counts.bit_length() - 1]] += 1
            payload, echo = dut.m_axis_payload_tvalid.value == 1, dut.m_echo_valid.value == 1
            assert (dut.m_axis_meta_tvalid.value == 1) == (payload and not data), "metadata belong to the first word"
            if payload or echo:
                assert payload != echo
                if not data:
                    data = {"bytes": b"", "echo": echo}
                    self.first_out.append(self.cycle)
                    if payload:
                        self.take_meta(dut.m_axis_meta_tdata.value.integer)
                assert data["echo"] == echo, "a frame within a frame"
                keep, last = dut.m_axis_payload_tkeep.value.integer, dut.m_axis_payload_tlast.value == 1
                count = keep.bit_length()
                assert keep == (1 << count) - 1 and (last or count == 8), f"tkeep {keep:08b}"
                assert count or not data["bytes"], "a word of no bytes behind others"
                data["bytes"] += kept(dut.m_axis_payload_tdata, count)
                if last:
                    self.last_out.append(self.cycle)
                    self.put_out(data["bytes"], echo, dut.m_axis_payload_tuser.value == 1)
                    data = {}

    def take_meta(self, word):
        meta = {name: word >> at & (1 << bits) - 1 for name, (at, bits) in META.items()}
        assert meta["cycle_ts_parsed"] == self.cycle
        self.meta.append(meta)

    def put_out(self, data, echo, bad):
        if bad:
            self.bad.append(data)
            if not echo:
                meta = self.meta.pop()
                assert len(data) <= meta["length"], "more than was announced"
        elif echo:
            self.echoes.append(data)
        else:
            meta = self.meta.pop()
            assert meta["length_known"] == (meta["delivery_mode"] != WHOLE)
            assert meta["length"] == (self.settings.max_frame if meta["delivery_mode"] == WHOLE else len(data))
            self.out.append(Payload(data, meta["stream"], meta["delivery_mode"], meta["source_port"]))

    async def send(self, frames, idle=0.0, gap=0, broken=()):
        """Frames with idle cycles at this rate, and `gap` words between; `broken`: marked bad by the MAC."""
        dut = self.dut
        for number, frame in enumerate(frames):
            dut.s_axis_rx_cycle_ts.value = self.cycle
            dut.s_axis_rx_timestamp_ns.value, dut.s_axis_rx_timestamp_valid.value = self.cycle * 64 // 10, number & 1
            for at in range(0, len(frame), 8):
                while random.random() < idle:
                    await RisingEdge(dut.clk)
                word, last = frame[at:at + 8], at + 8 >= len(frame)
                dut.s_axis_rx_tvalid.value, dut.s_axis_rx_tlast.value = 1, last
                dut.s_axis_rx_tdata.value = int.from_bytes(word.ljust(8, b"\xdd"), "little")
                dut.s_axis_rx_tkeep.value = (1 << len(word)) - 1
                dut.s_axis_rx_tuser.value = last and number in broken
                # The edge at which it is taken.
                if at == 0:
                    self.first_in.append(self.cycle + 1)
                if last:
                    self.last_in.append(self.cycle + 1)
                await RisingEdge(dut.clk)
                dut.s_axis_rx_tvalid.value = 0
            for _ in range(gap):
                await RisingEdge(dut.clk)

    async def settle(self, frames, broken=()):
        """Each frame has its required result, in order, and is counted once."""
        await ClockCycles(self.dut.clk, 20)
        fates = [fate(frame, self.settings) for i, frame in enumerate(frames) if i not in broken]
        counts = Counter(what for what in fates if isinstance(what, str) and what != "echo")
        assert self.counts == counts, (self.counts, counts)
        echoes = [frame for i, frame in enumerate(frames)
                  if i not in broken and fate(frame, self.settings) == "echo"]
        expected = [what for what in fates if isinstance(what, Payload)]
        for got, want in zip(self.out, expected):
            assert got == want, f"{got}\nis not\n{want}"
        assert len(self.out) == len(expected), (len(self.out), len(expected))
        assert self.echoes == echoes
        assert self.dut.busy.value == 0
        self.out, self.bad, self.echoes, self.counts, self.meta = [], [], [], Counter(), []

    async def expect(self, frames, **how):
        await self.send(frames, **how)
        await self.settle(frames, how.get("broken", ()))


def mixed(count, longest=200):
    """Frames of all kinds, one after another."""
    makers = [lambda size: udp(some(size)), lambda size: udp(some(size), 5003), lambda size: udp(some(size), 5015),
              lambda size: udp(some(size), vlan=7), lambda size: udp(some(size), 5003, nops=random.randrange(11)),
              lambda size: udp(some(size), nops=random.randrange(11), vlan=random.choice((None, 5))),
              lambda size: udp(some(size), 9), lambda size: ping(some(size)), lambda size: arp(),
              lambda size: udp(some(size), chksum=0), lambda size: udp(some(size), chksum=7),
              lambda size: udp(some(size), ip={"dst": "10.0.0.2"}), lambda size: some(max(60, size))]
    return [random.choice(makers)(random.choice((0, 1, 18, 19, random.randrange(longest)))) for _ in range(count)]


@cocotb.test()
async def empty_udp(dut):
    """liteeth#128: an empty datagram is an empty payload, and the next frame is unaffected."""
    tb = await TB(dut).start(streams={0: (5000, PAYLOAD), 1: (5001, HITS), 3: (5003, WHOLE)})
    frames = [udp(b"", port, nops=nops, vlan=vlan) for port in (5000, 5001, 5003) for nops in (0, 1)
              for vlan in (None, 1)]
    frames = [frame for empty in frames for frame in (empty, udp(some(30)))]
    await tb.expect(frames)
    await tb.expect(frames, idle=0.4)
    # Not padded: as short as it can be. No MAC lets that through, and it is whole nevertheless.
    await tb.expect([frame[:42] for frame in frames if fate(frame, tb.settings).data == b"" and len(frame) == 60][:1])


@cocotb.test()
async def no_ghost_packet_of_no_length(dut):
    """mlib_devel#8: exactly one packet is output for one datagram, for any length of its padding."""
    tb = await TB(dut).start()
    for size in range(0, 19):
        await tb.send([udp(some(size))], gap=12)
        assert len(tb.out) == 1 and len(tb.out[0].data) == size, tb.out
        tb.out = []


@cocotb.test()
async def sizes(dut):
    """Every position of the last byte, with and without tag and options."""
    tb = await TB(dut).start()
    frames = [udp(some(size), port, vlan=vlan) for size in range(75) for port, vlan in
              random.sample([(5000, None), (5000, 0xFFF), (5003, None), (5015, 3)], 2)]
    frames += [udp(some(size), port, nops=nops, vlan=vlan) for nops in range(1, 11) for size in (1, 6, 7, 14, 40)
               for port, vlan in ((random.choice((5000, 5003)), random.choice((None, 2))),)]
    await tb.expect(frames)


@cocotb.test()
async def of_1472_bytes_and_more(dut):
    """liteeth#128: the longest without fragments at an MTU of 1500, and up to 9 KB."""
    tb = await TB(dut).start()
    await tb.expect([udp(some(size), port) for size in (1471, 1472, 1473, 1474, 9000)
                     for port in (5000, 5003)[:1 if size > 8000 else 2]])


@cocotb.test()
async def back_to_back_frames(dut):
    """surf PR#785: frames without a single word between them, of all kinds, are all there."""
    tb = await TB(dut).start(catch_other=1)
    await tb.expect(mixed(200))


@cocotb.test()
async def the_latest_verdicts(dut):
    """Whole frames with the longest headers are read latest, and are not overrun by the next ones."""
    tb = await TB(dut).start(streams={0: (5000, PAYLOAD), 3: (5003, WHOLE)})
    longest = [udp(some(size), 5003, nops=10, vlan=1) for size in (0, 1, 200)]
    await tb.expect([frame for late in longest
                     for frame in (late, late, udp(some(18)), late, udp(some(18), 5003), arp())])


@cocotb.test()
async def with_gaps(dut):
    """As output by a MAC that is slower than its clock."""
    tb = await TB(dut).start(catch_udp=1)
    for idle in (0.1, 0.5, 0.9):
        await tb.expect(mixed(40, 60), idle=idle)


@cocotb.test()
async def corrupted_headers(dut):
    """Each field that may be wrong has its counter; the datagrams before and after it arrive."""
    tb = await TB(dut).start()
    good = udp(some(40))
    cases = {
        "checksum": [udp(some(40), ip={"chksum": 1}), udp(some(40), chksum=1), ping(some(9), chksum=1),
                     udp(some(41), chksum=0xFFFF), ping(some(9), ip={"chksum": 0xFFFF})],
        "malformed": [udp(some(40), ip={"version": 5}), udp(some(40), ip={"version": 6}), udp(some(40), ip={"ihl": 4}),
                      udp(some(40), ip={"ihl": 0}), udp(some(40), ip={"len": 19}), udp(some(40), ip={"len": 27}),
                      udp(some(40), ip={"len": 69}), udp(some(40), ip={"len": 1000}), udp(some(40), ip={"len": 65535}),
                      udp(some(40), len=7), udp(some(40), len=0), udp(some(40), len=49), udp(some(40), len=65535),
                      udp(some(40), 5003, len=7), ping(some(40), ip={"len": 27}), ping(some(40), ip={"len": 100}),
                      arp(hwtype=2), arp(ptype=0x86DD), arp(hwlen=8), arp(plen=16), good[:59], good[:80],
                      udp(some(40), 5003)[:80], udp(some(40), nops=10, ip={"len": 40})[:60]],
        "fragment": [udp(some(40), ip={"flags": "MF"}), udp(some(40), ip={"frag": 1}),
                     udp(some(40), ip={"frag": 0x1FFF}), udp(some(40), ip={"frag": 0x1000, "flags": "MF"}),
                     ping(some(9), ip={"flags": "MF"})],
        "address": [udp(some(40), dst="02:00:4c:4f:4c:02"), udp(some(40), dst="01:00:5e:00:00:01"),
                    udp(some(40), ip={"dst": "10.0.0.2"}), udp(some(40), ip={"dst": "224.0.0.1"}),
                    arp(dst="02:00:4c:4f:4c:02"), ping(dst="00:00:00:00:00:00"), ping(ip={"dst": "10.0.1.1"})],
        "unsupported": [ping(type=0), ping(code=1), ping(dst=BROADCAST), udp(some(40), ip={"proto": 6}),
                        good[:12] + b"\x86\xdd" + good[14:], good[:12] + b"\0\x2e" + good[14:],
                        good[:12] + b"\x81\0\0\1\x81\0\0\2" + good[12:], good[:12] + b"\x88\xa8\0\1" + good[12:]],
        "miss": [udp(some(40), 4999), udp(some(40), 5001), udp(some(40), 0), udp(some(40), 65535)],
    }
    for cause, frames in cases.items():
        for frame in frames:
            fated = fate(frame, tb.settings)
            assert fated == cause, (cause, fated, frame.hex())
        await tb.expect([good, *[frame for pair in zip(frames, [good] * len(frames)) for frame in pair]])
        await tb.expect([good, *frames, good], idle=0.3)


@cocotb.test()
async def any_flipped_bit(dut):
    """Of the headers and after: as in the model, and never a payload that was not sent."""
    tb = await TB(dut).start(catch_udp=1, streams={0: (5000, PAYLOAD)})
    frames = []
    for frame, bits in ((udp(some(20)), 42 * 8), (udp(some(5), vlan=9, nops=1), 50 * 8), (ping(some(20)), 42 * 8),
                        (arp(), 42 * 8)):
        for bit in random.sample(range(bits), 80):
            flipped = bytearray(frame)
            flipped[bit // 8] ^= 1 << bit % 8
            frames.append(bytes(flipped))
    await tb.expect(frames)


@cocotb.test()
async def checksum_over_the_stream(dut):
    """All lengths and values; a wrong byte anywhere is detected, if the sender made a checksum."""
    tb = TB(dut)
    await tb.start()
    frames = []
    for size in (*range(0, 20), 64, 65, 500):
        for content in (bytes(size), b"\xff" * size, some(size)):
            frames += [udp(content, 5003 if size % 3 else 5000), udp(content, chksum=0)]
            if size:
                wrong = bytearray(udp(content))
                wrong[42 + random.randrange(size)] ^= 0x80
                frames.append(bytes(wrong))
    await tb.expect(frames)
    # A sum of zero is sent as ones (RFC 768).
    zero = udp(bytes(2))
    field = int.from_bytes(zero[40:42], "big")
    ones = udp(field.to_bytes(2, "big"), chksum=0xFFFF)
    assert isinstance(fate(ones, tb.settings), Payload)
    await tb.expect([ones])
    await tb.start(checksum=0)
    await tb.expect([udp(some(40), chksum=1), udp(some(40), 5003, chksum=2), ping(some(3), chksum=3), udp(some(3))])


@cocotb.test()
async def bad_frames_are_taken_back(dut):
    """A frame that the MAC marks bad ends bad, with any other error, and is not counted again."""
    tb = await TB(dut).start(catch_other=1)
    frames = [udp(some(100)), udp(some(3)), udp(some(3), 5003), udp(b""), udp(some(30), chksum=1), udp(some(40))[:70],
              ping(some(30)), some(64), some(1), some(8), some(15), some(33), arp(), arp()[:20], udp(some(9), 6)]
    broken = range(0, 2 * len(frames), 2)
    # Between them good ones; twice over, as what is known at the end differs with the gaps.
    for idle in (0, 0.5):
        await tb.expect([part for frame in frames for part in (frame, udp(some(26)))], idle=idle, broken=broken)
    opened = [udp(some(100)), udp(some(100), 5003), udp(some(2)), ping(some(5)), udp(some(100))[:70]]
    await tb.send(opened, broken=range(5))
    await ClockCycles(dut.clk, 20)
    assert len(tb.bad) == 5 and not tb.out and not tb.counts and not tb.echoes


@cocotb.test()
async def frames_of_one_word(dut):
    """Too short for any protocol: malformed, each of them, also in every cycle."""
    tb = await TB(dut).start(catch_other=1, promiscuous=1)
    await tb.expect([some(size) for size in (*range(1, 9), *[3] * 20, *range(9, 32))])


@cocotb.test()
async def streams_and_default_list(dut):
    """The lowest enabled stream wins; the default list accepts the enabled kinds."""
    tb = TB(dut)
    streams = {2: (700, HITS), 5: (700, WHOLE), 0: (701, PAYLOAD), 15: (0, PAYLOAD)}
    others = [ping(type=13), some(60), udp(some(6), ip={"proto": 6}), arp()]
    frames = [udp(some(9), port) for port in (700, 701, 702, 0, 5000)] + [ping(), *others[::2], arp()]
    for catch_udp, catch_other in ((0, 0), (1, 0), (0, 1), (1, 1)):
        await tb.start(streams=streams, catch_udp=catch_udp, catch_other=catch_other)
        await tb.expect(frames)
        assert fate(frames[0], tb.settings).stream == 2
    # A port without answers of its own is a card without streams.
    await tb.start(streams={}, catch_udp=1, catch_other=1, arp=0, echo=0)
    await tb.expect(frames)
    assert all(fate(frame, tb.settings) == Payload(frame, DEFAULT_LIST, WHOLE, sport)
               for frame, sport in ((ping(), 0), (arp(), 0), (udp(sport=3), 3)))


@cocotb.test()
async def addresses(dut):
    """Broadcast; groups and other neighbours only if enabled."""
    tb = TB(dut)
    frames = [udp(some(9), dst=dst, ip={"dst": ip}) for dst in ("02:00:4c:4f:4c:01", BROADCAST, "01:00:5e:01:02:03",
              "02:00:00:00:00:05") for ip in ("10.0.0.1", "255.255.255.255", "239.1.2.3", "10.0.0.9")]
    frames += [arp(dst="01:00:5e:01:02:03"), arp(pdst="10.0.0.77"), ping(dst="02:00:00:00:00:05")]
    for promiscuous, multicast in ((0, 0), (0, 1), (1, 0)):
        await tb.start(promiscuous=promiscuous, multicast=multicast)
        await tb.expect(frames)


@cocotb.test()
async def metadata(dut):
    """Time of the start word, ports, stamps."""
    tb = await TB(dut).start()
    seen = []
    take = tb.take_meta
    tb.take_meta = lambda word: (take(word), seen.append(tb.meta[-1]))
    frames = [udp(some(size), 5000, sport) for size, sport in ((64, 1), (64, 65535), (0, 77), (18, 9))]
    await tb.send(frames)
    await ClockCycles(dut.clk, 20)
    assert [meta["source_port"] for meta in seen] == [1, 65535, 77, 9]
    assert [meta["timestamp_valid"] for meta in seen] == [0, 1, 0, 1]
    # `send` has set them one cycle before the first word is taken.
    assert [meta["cycle_ts_mac"] for meta in seen] == [cycle - 1 for cycle in tb.first_in]
    assert [meta["timestamp_ns"] for meta in seen] == [(cycle - 1) * 64 // 10 for cycle in tb.first_in]


@cocotb.test()
async def latency(dut):
    """From a frame's first word to its payload's; from the last to the last."""
    tb = await TB(dut).start()

    async def measure(frame):
        tb.first_in, tb.first_out, tb.last_in, tb.last_out = [], [], [], []
        await tb.send([frame], gap=25)
        return tb.first_out[0] - tb.first_in[0], tb.last_out[0] - tb.last_in[0]

    # The last word of 1024 B and its 42 bytes of headers has two bytes; the payload's needs a word more.
    for size, last in ((64, 4), (1024, 4), (1028, 4), (1030, 4)):
        first, end = await measure(udp(some(size)))
        cycles.check("udp_rx", first)
        assert end == last, (size, end)
    for frame in (udp(some(64), vlan=5), udp(some(64), nops=1), udp(some(64), 5003, vlan=5)):
        cycles.check("udp_rx", (await measure(frame))[0])
    for frame in (udp(some(64), 5003), ping(some(64))):
        cycles.check("udp_rx_whole", (await measure(frame))[0])
    # Padded: known to be good with the last word of the frame, the eighth.
    assert (await measure(udp(some(8))))[0] == 11


@cocotb.test()
async def recorded_traffic(dut):
    """Frames of real detectors, to any address."""
    tb = TB(dut)
    frames = list(recorded(4, 3000))
    if not frames:
        dut._log.info("skipped: no recorded data")
        return
    await tb.start(promiscuous=1, catch_udp=1, catch_other=1)
    await tb.expect(frames)
    ports = {int.from_bytes(frame[36:38], "big") for frame in frames if frame[12:14] == b"\x08\0" and frame[23] == 17}
    await tb.start(promiscuous=1, streams={i: (port, PAYLOAD) for i, port in enumerate(sorted(ports)[:16])})
    await tb.expect(frames, idle=0.05)
    cocotb.log.info("%d frames, UDP ports %s", len(frames), sorted(ports))


@cocotb.test()
async def soak(dut):
    """All kinds, some of them marked bad by the MAC, with random gaps."""
    tb = await TB(dut).start(catch_udp=1, multicast=1)
    for idle in (0, 0, 0.2):
        frames = mixed(90)
        broken = set(random.sample(range(90), 15))
        await tb.expect(frames, idle=idle, gap=random.choice((0, 0, 1, 2)), broken=broken)
