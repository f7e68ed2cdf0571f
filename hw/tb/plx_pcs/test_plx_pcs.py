"""plx_pcs: a lane between the XGMII of cocotbext-eth, looped by a line of bits with faults that last."""

import random

import baser
import cocotb
import cycles
from cocotb.triggers import ClockCycles, RisingEdge, Timer
from cocotb.utils import get_sim_time
from cocotbext.eth import XgmiiFrame, XgmiiSink, XgmiiSource
from xgmii import payload, with_fcs

from clocks import Clock

PARAMETERS = [{"SLIP_CYCLES": 3, "BER_WINDOW": 300}]
PERIOD = 6400
NOISE, SILENCE = (lambda block: random.getrandbits(66)), (lambda block: 0)
CLEAN = baser.Line().spoil
COUNTS = ("ber", "errored_blocks", "prbs31_errors", "deleted", "inserted", "overflow", "underflow", "tx_error")


class TB:
    def __init__(self, dut):
        self.dut, self.line = dut, baser.Line()
        self.counts, self.words = dict.fromkeys(COUNTS, 0), set()
        cocotb.start_soon(Clock(dut.clk_net, PERIOD, "ps").start())
        self.source = XgmiiSource(dut.xgmii_txd, dut.xgmii_txc, dut.clk_net, dut.rst_net)
        self.sink = XgmiiSink(dut.xgmii_rxd, dut.xgmii_rxc, dut.clk_net, dut.rst_net)
        for end in (self.source, self.sink):
            end.log.setLevel("ERROR")

    async def start(self, offset=7, phase=2900):
        dut = self.dut
        dut.rx_header.value = dut.rx_data.value = dut.cfg_prbs31_tx.value = dut.cfg_prbs31_rx.value = 0
        dut.rx_signal_ok.value, dut.rst_net.value = 1, 1
        self.line.put(0, offset)
        await Timer(phase, "ps")
        self.clock = cocotb.start_soon(Clock(dut.clk_rx_net, PERIOD, "ps").start())
        await ClockCycles(dut.clk_net, 8)
        dut.rst_net.value = 0
        for task in (self.transmit(), self.receive(), self.watch()):
            cocotb.start_soon(task)
        return self

    async def transmit(self):
        dut = self.dut
        while True:
            await RisingEdge(dut.clk_net)
            self.line.put(dut.tx_data.value.integer << 2 | dut.tx_header.value.integer)

    async def receive(self):
        dut = self.dut
        while True:
            await RisingEdge(dut.clk_rx_net)
            if dut.rx_slip.value == 1:
                self.line.drop()
            dut.rx_header.value, dut.rx_data.value = self.line.take()

    async def watch(self):
        dut = self.dut
        while True:
            await RisingEdge(dut.clk_net)
            if dut.rst_net.value == 0:
                for name in COUNTS:
                    self.counts[name] += getattr(dut, f"inc_{name}").value.integer
                self.word = dut.xgmii_rxd.value.integer, dut.xgmii_rxc.value.integer
                self.words.add(self.word)

    async def locks(self, within=4000):
        for _ in range(within):
            await RisingEdge(self.dut.clk_net)
            if self.dut.sts_block_lock.value == 1 and self.word == baser.IDLES:
                return
        raise AssertionError(f"no lock within {within} cycles")

    async def exchange(self, count=12, drain=80):
        """Sends frames, and returns them and those received: their bytes, and if they are free of errors."""
        sent = [with_fcs(payload(random.choice((60, 61, 63, 64, 66, 67, 120)))) for _ in range(count)]
        for data in sent:
            await self.source.send(XgmiiFrame.from_raw_payload(data))
        await self.source.wait()
        await ClockCycles(self.dut.clk_net, drain)
        return sent, self.received()

    def received(self):
        frames = []
        while not self.sink.empty():
            frame = self.sink.recv_nowait()
            whole = bytes(frame.data[:8]) == bytes([*[0x55] * 7, 0xD5]) and not any(frame.ctrl or [])
            frames.append((bytes(frame.data[8:]), whole))
        return frames

    async def works(self):
        """Frames pass, all of them."""
        sent, frames = await self.exchange()
        assert frames == [(data, True) for data in sent], (len(sent), len(frames))


@cocotb.test()
async def frames_pass(dut):
    """Runts, long frames, each lane of the end, gaps by deficit idle count; from any boundary of blocks."""
    tb = await TB(dut).start()
    for offset, sizes in ((1, (*range(1, 24), *range(60, 72))), (65, (60, 4000, 60))):
        tb.line.put(0, offset)
        await ClockCycles(dut.clk_net, 60)
        await tb.locks()
        before = dict(tb.counts)
        sent = [payload(size) for size in sizes]
        random.shuffle(sent)
        for data in sent:
            await tb.source.send(XgmiiFrame.from_raw_payload(data))
        await tb.source.wait()
        await ClockCycles(dut.clk_net, 60)
        assert tb.received() == [(data, True) for data in sent]
        assert tb.counts == before


@cocotb.test()
async def ordered_sets_pass(dut):
    """A local and a remote fault of the MAC, and the idles behind them."""
    tb = await TB(dut).start()
    await tb.locks()
    for code in (1, 2):
        tb.source.set_seq_os(code)
        await ClockCycles(dut.clk_net, 60)
        assert tb.word == ((code << 24 | 0x9C) * 0x1_0000_0001, 0x11)
        # Sent at once, and no word of errors between.
        tb.source.set_os(None)
        await ClockCycles(dut.clk_net, 60)
        assert tb.word == baser.IDLES
    await tb.works()
    assert baser.ERRORS not in tb.words


@cocotb.test()
async def bit_errors_are_never_silent(dut):
    """For ever: each frame that arrives whole is one that was sent, in order, and what is lost is counted."""
    tb = await TB(dut).start()
    await tb.locks()

    before, headers = tb.counts["ber"], 0

    def spoil(block):
        nonlocal headers
        bit = random.randrange(66) if random.random() < 0.03 else 66
        headers += bit < 2
        return block ^ (1 << bit) % (1 << 66)

    tb.line.spoil = spoil
    sent, frames = await tb.exchange(80)
    good = [data for data, whole in frames if whole and with_fcs(data[:-4]) == data]
    order = iter(sent)
    assert 10 < len(good) < 70 and all(any(data == other for other in order) for data in good)
    assert tb.counts["ber"] - before == headers > 0 and tb.counts["errored_blocks"] > 5
    tb.line.spoil = CLEAN
    await tb.locks()
    await tb.works()


@cocotb.test()
async def slips_are_found(dut):
    """Bits that the line loses or adds in traffic: lock is lost, found, and frames pass."""
    tb = await TB(dut).start()
    await tb.locks()
    for slip in (lambda: tb.line.drop(), lambda: tb.line.put(1, 3)):
        sending = cocotb.start_soon(tb.exchange(30))
        await ClockCycles(dut.clk_net, 60)
        slip()
        for _ in range(2000):
            await RisingEdge(dut.clk_net)
            if dut.sts_block_lock.value == 0:
                break
        else:
            raise AssertionError("still locked")
        assert baser.FAULTS in tb.words or dut.sts_block_lock.value == 0
        await tb.locks()
        sent, frames = await sending
        assert all(data in sent for data, whole in frames if whole and with_fcs(data[:-4]) == data)
        tb.received()
        await tb.works()


@cocotb.test()
async def bad_lines_never_lock(dut):
    """Noise, silence, headers that are wrong time and again: faults for ever, at once locked when it ends."""
    tb = await TB(dut).start()
    for spoil in (NOISE, SILENCE, lambda block: block & ~3 if random.random() < 0.3 else block):
        tb.line.spoil = spoil
        await ClockCycles(dut.clk_net, 500)
        tb.words.clear()
        tb.received()
        await ClockCycles(dut.clk_net, 500)
        assert tb.words == {baser.FAULTS} and not tb.received()
        assert dut.sts_block_lock.value == 0
        tb.line.spoil = CLEAN
        await tb.locks()
    await tb.works()


@cocotb.test()
async def a_high_error_rate_is_shown(dut):
    """A wrong header in each 12: locked, and faults, until it ends."""
    tb = await TB(dut).start()
    await tb.locks()
    number = iter(range(10 ** 9))
    tb.line.spoil = lambda block: block if next(number) % 12 else block | 3
    await ClockCycles(dut.clk_net, 300)
    for _ in range(20):
        await ClockCycles(dut.clk_net, 50)
        assert dut.sts_block_lock.value == 1 and dut.sts_hi_ber.value == 1 and tb.word == baser.FAULTS
    tb.line.spoil = CLEAN
    await tb.locks()
    await tb.works()
    assert dut.sts_hi_ber.value == 0 and tb.counts["ber"] > 50


@cocotb.test()
async def a_cable_is_pulled_and_put_back(dut):
    """No signal, and a received clock that stands, in traffic: the other clock goes on, and tells of faults."""
    tb = await TB(dut).start()
    await tb.locks()
    for stands in (False, True, True):
        sending = cocotb.start_soon(tb.exchange(40))
        await ClockCycles(dut.clk_net, 50)
        tb.line.spoil, dut.rx_signal_ok.value = SILENCE, 0
        if stands:
            tb.clock.kill()
        await ClockCycles(dut.clk_net, 100)
        assert tb.word == baser.FAULTS and dut.sts_block_lock.value == 0 and dut.sts_signal_ok.value == 0
        if stands:
            # A reset meanwhile hangs nothing.
            dut.rst_net.value = random.getrandbits(1)
            await ClockCycles(dut.clk_net, 3)
            dut.rst_net.value = 0
            await Timer(random.randrange(PERIOD), "ps")
            tb.line.drop(tb.line.count - tb.line.DELAY)
            tb.clock = cocotb.start_soon(Clock(dut.clk_rx_net, PERIOD, "ps").start())
        tb.line.spoil, dut.rx_signal_ok.value = CLEAN, 1
        await tb.locks()
        await sending
        await ClockCycles(dut.clk_net, 40)
        tb.received()
        await tb.works()


@cocotb.test()
async def a_reset_while_the_received_clock_stands_adds_no_counts(dut):
    """It is seen there when the clock is back; until then nothing is counted, and nothing twice."""
    tb = await TB(dut).start()
    await tb.locks()
    before, wrong = dict(tb.counts), iter(range(10 ** 9))
    tb.line.spoil = lambda block: block | 3 if next(wrong) in (20, 40, 60, 80, 100) else block
    await ClockCycles(dut.clk_net, 160)
    assert tb.counts == {**before, "ber": before["ber"] + 5, "errored_blocks": before["errored_blocks"] + 5}
    tb.clock.kill()
    await ClockCycles(dut.clk_net, 20)
    dut.rst_net.value = 1
    await ClockCycles(dut.clk_net, 3)
    before, dut.rst_net.value = dict(tb.counts), 0
    await ClockCycles(dut.clk_net, 60)
    # The source of XGMII sends no legal words in its own reset.
    assert tb.counts == {**before, "tx_error": tb.counts["tx_error"]} and dut.sts_block_lock.value == 0
    tb.line.spoil = CLEAN
    tb.line.drop(tb.line.count - tb.line.DELAY)
    tb.clock = cocotb.start_soon(Clock(dut.clk_rx_net, PERIOD, "ps").start())
    await tb.locks()
    await tb.works()


@cocotb.test()
async def prbs31_finds_each_bit(dut):
    """No error on a clean line, three for a wrong bit, many on a line that stands; and blocks again."""
    tb = await TB(dut).start()
    await tb.locks()

    async def measure(cycles_, spoil):
        tb.line.spoil = spoil
        await ClockCycles(dut.clk_net, 40)
        before = tb.counts["prbs31_errors"]
        dut.cfg_prbs31_rx.value = 1
        await ClockCycles(dut.clk_net, cycles_)
        assert tb.word == baser.FAULTS and dut.rx_slip.value == 0, tb.word
        dut.cfg_prbs31_rx.value = 0
        await ClockCycles(dut.clk_net, 20)
        return tb.counts["prbs31_errors"] - before

    dut.cfg_prbs31_tx.value = 1
    found = await measure(300, CLEAN)
    assert found == 0, found
    flips = iter(range(10 ** 9))
    found = await measure(300, lambda block: block ^ (next(flips) % 50 == 49) << random.randrange(66))
    assert found == 18, found
    assert await measure(100, lambda block: (1 << 66) - 1) > 90 * 66
    assert await measure(100, SILENCE) > 90 * 66
    dut.cfg_prbs31_tx.value, tb.line.spoil = 0, CLEAN
    await tb.locks()
    await tb.works()


@cocotb.test()
async def latency(dut):
    """The elastic buffer, from a word in its clock to the word in the other, at one phase of them."""
    tb = await TB(dut).start()
    await tb.locks()
    await tb.source.send(XgmiiFrame.from_raw_payload(payload(60)))
    times = []
    for clock, word in ((dut.clk_rx_net, dut.word), (dut.clk_net, dut.xgmii_rxd)):
        while word.value.integer & 0xFF != baser.START:
            await RisingEdge(clock)
        times.append(get_sim_time("ps"))
    cycles.check("elastic", -int((times[0] - times[1]) // PERIOD))
