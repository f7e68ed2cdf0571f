"""What the benches of pcie_host share: host memory, requests that arrive at the root complex, traffic."""

import random

import cocotb
from cocotb.triggers import with_timeout
from cocotbext.pcie.core.caps import PciCapId
from cocotbext.pcie.core.tlp import Tlp, TlpType
from cocotbext.pcie.core.utils import PcieId
from host_bus import enabled
from pcie import HOST, TB

# Device Control, in its capability, and its bit that enables extended tags.
CONTROL, EXTENDED = 8, 1 << 8
# Cycles from a change of the bit to the last read that does not know of it: the rest between two reads of the register,
# the read itself, and the way of a request through the shim.
KNOWN = 64 + 16


class Requests:
    """What arrives at the root complex, before it answers."""

    def __init__(self, rc, payload, read):
        self.rc, self.payload, self.read, self.writes, self.reads, self.held = rc, payload, read, [], [], None
        # The bytes that each write enables: address and number.
        self.bytes = []
        self.answer = rc.handle_mem_read_tlp
        # Who may: asserted of each request.
        self.allows = lambda tlp: True
        for kind in (TlpType.MEM_WRITE, TlpType.MEM_WRITE_64):
            rc.register_rx_tlp_handler(kind, self.write)
        for kind in (TlpType.MEM_READ, TlpType.MEM_READ_64):
            rc.register_rx_tlp_handler(kind, self.take)

    async def write(self, tlp):
        assert self.allows(tlp), tlp
        assert tlp.length * 4 <= self.payload and tlp.address % 4096 + tlp.length * 4 <= 4096
        written = enabled(tlp.first_be, tlp.last_be, tlp.length)
        first, count = written.index(True), sum(written)
        assert all(written[first:first + count]) and (tlp.length > 1 or not tlp.last_be), tlp
        self.writes.append((tlp.address, tlp.length * 4))
        self.bytes.append((tlp.address + first, count))
        await self.rc.handle_mem_write_tlp(tlp)

    async def take(self, tlp):
        assert self.allows(tlp), tlp
        assert tlp.length * 4 <= self.read and tlp.address % 4096 + tlp.length * 4 <= 4096
        self.reads.append(tlp)
        if self.held is None:
            await self.answer(tlp)
        else:
            self.held.append(tlp)


def request(tb, kind, address, dws=1, first_be=15, data=b""):
    """A request of the host, as it is on the link."""
    tlp = Tlp()
    tlp.fmt_type, tlp.requester_id, tlp.address, tlp.length = kind, PcieId(0, 0, 0), address, dws
    tlp.first_be, tlp.last_be = first_be, 15 if dws > 1 else 0
    if data:
        tlp.set_data(data)
    return tlp


async def answer(tb, tlp):
    return (await with_timeout(tb.rc.perform_nonposted_operation(tlp), 20, "us"))[0]


async def ready(dut, **settings):
    """The bench, its requests, and 64 KiB of memory."""
    tb = TB(dut, **settings)
    payload, read = 128 << settings.get("payload", 1), 128 << settings.get("read", 2)
    tb.requests = Requests(tb.rc, payload, read)
    tb.base, tb.memory = tb.rc.alloc_region(1 << 16)
    tb.memory[:] = random.randbytes(1 << 16)
    await tb.start()
    return tb


async def extended_tags(tb, on=True):
    """As the host enables them, by a write of the register."""
    value = await tb.device.capability_read_word(PciCapId.EXP, CONTROL)
    await tb.device.capability_write_word(PciCapId.EXP, CONTROL, value & ~EXTENDED | EXTENDED * on)
    assert tb.block.function.pcie_cap.extended_tag_field_enable == on


async def write(tb, model, at, length):
    data = random.randbytes(length)
    model[at:at + length] = data
    await tb.writer.write(tb.base + at, data)


async def quiet(tb, writes):
    """Waits until as many writes have arrived."""
    for _ in range(4000):
        if len(tb.requests.writes) >= writes:
            return
        await tb.settle(10)
    raise AssertionError(f"{len(tb.requests.writes)} of {writes} writes have arrived")


async def both(tb, count, lengths=(1, 4, 60, 64, 200, 512, 1500)):
    """Reads of one half of the memory beside writes of the other."""
    model = bytearray(tb.memory)
    shapes = [(random.randrange(28000), random.choice(lengths)) for _ in range(count)]

    async def ask():
        for at, length in shapes:
            await tb.reader.request(tb.base + at, length)
    cocotb.start_soon(ask())
    for _ in range(count):
        await write(tb, model, 32768 + random.randrange(28000), random.choice(lengths))
    for number, found in enumerate(await with_timeout(tb.reader.ended(count), 1000, "us")):
        at, length = shapes[number]
        assert found == model[at:at + length], (number, at, length)
    for _ in range(4000):
        if tb.memory[:] == model:
            return
        await tb.settle(10)
    raise AssertionError("memory differs")


async def patient(dut, timeout=1500, quarantine=200):
    """The bench, with short times in the card."""
    tb = await ready(dut)
    await tb.bar.write_dword(HOST + 0x10, timeout)
    await tb.bar.write_dword(HOST + 0x14, quarantine)
    tb.counts = {}
    return tb


async def counted(tb, **expected):
    """The card's counters of bad reads have grown by this."""
    for name in ("rd_timeout", "rd_unsupported", "rd_abort", "rd_poisoned", "rd_unexpected"):
        value = await tb.counter(name)
        grown = value - tb.counts.get(name, 0)
        assert grown == expected.get(name, 0), f"{name} has grown by {grown}"
        tb.counts[name] = value


async def good(tb, count=3):
    """The card reads as if nothing had been."""
    for _ in range(count):
        at, length = random.randrange(60000), random.choice((1, 64, 500, 1500))
        assert await with_timeout(tb.reader.read(tb.base + at, length), 50, "us") == tb.memory[at:at + length]


def answers(tb, change):
    """Passes each completion of the root complex through `change`, which gives those to be sent."""
    send = tb.rc.downstream_send

    async def changed(tlp):
        for one in change(tlp):
            await send(one)
    tb.rc.send = changed

    def restore():
        tb.rc.send = send
    return restore
