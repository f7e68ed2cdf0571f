"""plx_msix: a requested interrupt is written, once its vector is allowed; none is lost, none is spurious."""

import random

import cocotb
from cocotb.triggers import Edge
import cycles as table
from core import Cycles

PARAMETERS = [{"VECTORS": 8}, {"VECTORS": 1}, {"VECTORS": 256}]

PENDING = 0x1000


class TB:
    def __init__(self, dut):
        self.dut, self.cycles, self.vectors = dut, Cycles(dut), int(dut.VECTORS.value)
        self.owners = [0] * 256
        self.written, self.offered_at, self.offer, self.stall, self.counted = [], None, None, 0.0, 0
        for name in ("addr", "awvalid", "wdata", "wstrb", "wvalid", "bready", "arvalid", "rready"):
            getattr(dut, f"s_axil_{name}").value = 0
        dut.clear.value = dut.s_irq_valid.value = dut.s_irq_vector.value = dut.m_desc_ready.value = 0
        dut.cfg_msix_enable.value, dut.cfg_msix_mask.value = 1, 0
        dut.s_axil_forget.value = dut.s_axil_func.value = dut.s_owner.value = 0
        cocotb.start_soon(self.look_up())
        self.cycles.watchers.append(self.look)

    async def start(self, *vectors):
        """With the table's entries of some vectors, or of all."""
        self.dut.clear.value = 1
        await self.cycles.start()
        self.dut.clear.value = 0
        for vector in vectors or range(self.vectors):
            for word, value in enumerate((self.low(vector), vector + 1, 0xABC0 + vector)):
                await self.write(16 * vector + 4 * word, value)
        return self

    async def look_up(self):
        """Owners of vectors, in the same cycle."""
        while True:
            asked = self.dut.m_owner_vector.value
            self.dut.s_owner.value = self.owners[int(asked)] if asked.is_resolvable else 0
            await Edge(self.dut.m_owner_vector)

    @staticmethod
    def low(vector):
        return 0xFEE00000 + 0x100 * vector

    def look(self):
        dut = self.dut
        self.counted += int(dut.inc_interrupts.value)
        if not int(dut.m_desc_valid.value):
            assert self.offer is None, "an offer was taken back"
            return
        offer = int(dut.m_desc_address.value), int(dut.m_desc_immediate_data.value)
        assert self.offer in (None, offer), "an offer was changed"
        if self.offer is None:
            self.offered_at = self.cycles.number
        self.offer = offer
        if int(dut.m_desc_ready.value):
            vector = offer[1] - 0xABC0
            assert offer[0] == vector + 1 << 32 | self.low(vector)
            self.written.append(vector)
            self.offer = None

    async def step(self, count=1):
        for _ in range(count):
            self.dut.m_desc_ready.value = random.random() >= self.stall
            await self.cycles.cycle()

    async def irq(self, vectors):
        """Of a set of vectors, one after the other."""
        for vector in (vector for vector in range(self.vectors) if vectors >> vector & 1):
            self.dut.s_irq_valid.value, self.dut.s_irq_vector.value = 1, vector
            await self.step()
        self.dut.s_irq_valid.value = 0

    async def is_pending(self, vector):
        return await self.read(PENDING + vector // 32 * 4) == 1 << vector % 32

    async def write(self, address, value, strobe=15):
        dut = self.dut
        dut.s_axil_addr.value, dut.s_axil_wdata.value = address, value
        dut.s_axil_wstrb.value, dut.s_axil_awvalid.value, dut.s_axil_wvalid.value = strobe, 1, 1
        await self.step()
        dut.s_axil_awvalid.value = dut.s_axil_wvalid.value = 0
        dut.s_axil_bready.value = 1
        while not int(dut.s_axil_bvalid.value):
            await self.step()
        await self.step()

    async def read(self, address):
        dut = self.dut
        dut.s_axil_addr.value, dut.s_axil_arvalid.value = address, 1
        await self.step()
        dut.s_axil_arvalid.value, dut.s_axil_rready.value = 0, 1
        while not int(dut.s_axil_rvalid.value):
            await self.step()
        data = int(dut.s_axil_rdata.value)
        await self.step()
        return data

    async def mask(self, vector, on):
        await self.write(16 * vector + 12, on)


@cocotb.test()
async def vectors_are_masked_at_first_and_the_table_reads_back(dut):
    tb = await TB(dut).start()
    for vector in range(tb.vectors):
        assert [await tb.read(16 * vector + 4 * word) for word in range(4)] == [
            tb.low(vector), vector + 1, 0xABC0 + vector, 1]
    if tb.vectors < 256:
        assert await tb.read(16 * tb.vectors) == 0
        await tb.write(16 * tb.vectors + 12, 0)
    assert await tb.read(PENDING + 4) == 0 and await tb.read(PENDING + 32) == 0
    assert await tb.read(12) == 1
    for strobe in (1, 3, 7, 14):
        await tb.write(12, 0, strobe)
    assert await tb.read(12) == 1, "bytes alone are not written"


@cocotb.test()
async def a_masked_interrupt_is_pending_and_comes_once_when_it_may(dut):
    tb = TB(dut)
    last = tb.vectors - 1
    await tb.start(last)
    await tb.irq(1 << last)
    await tb.irq(1 << last)
    assert await tb.is_pending(last) and not tb.written
    dut.cfg_msix_mask.value = 1
    await tb.mask(last, 0)
    await tb.step(tb.vectors + 10)
    assert not tb.written, "all are masked"
    dut.cfg_msix_mask.value, dut.cfg_msix_enable.value = 0, 0
    await tb.step(tb.vectors + 10)
    assert not tb.written, "MSI-X is off"
    dut.cfg_msix_enable.value = 1
    await tb.step(tb.vectors + 10)
    assert tb.written == [last] and await tb.read(PENDING + last // 32 * 4) == 0 and tb.counted == 1


@cocotb.test()
async def a_reset_of_the_card_forgets_interrupts_and_keeps_the_table(dut):
    tb = await TB(dut).start(0)
    await tb.irq(1)
    dut.clear.value = 1
    await tb.step(2)
    dut.clear.value = 0
    assert await tb.read(PENDING) == 0 and await tb.read(0) == tb.low(0)
    await tb.mask(0, 0)
    await tb.step(5)
    assert not tb.written
    await tb.irq(1)
    await tb.step(5)
    assert tb.written == [0]


@cocotb.test()
async def none_is_lost_and_none_made_up_whatever_is_masked(dut):
    tb = await TB(dut).start()
    tb.stall = 0.7
    owed, asked = set(), 0
    for _ in range(150):
        if random.random() < 0.5:
            await tb.mask(random.randrange(tb.vectors), random.randrange(2))
        if random.random() < 0.2:
            dut.cfg_msix_mask.value = random.randrange(2)
        vectors = random.getrandbits(tb.vectors) & random.getrandbits(tb.vectors)
        if tb.vectors > 8:
            vectors &= 1 << random.randrange(tb.vectors) | 1 << random.randrange(tb.vectors) | 7
        seen = len(tb.written)
        await tb.irq(vectors)
        # A write in the cycle of a request may belong to an earlier request.
        owed -= set(tb.written[:seen])
        tb.written = tb.written[seen:]
        asked += vectors.bit_count()
        owed |= {vector for vector in range(tb.vectors) if vectors >> vector & 1}
    dut.cfg_msix_mask.value = 0
    for vector in range(tb.vectors):
        await tb.mask(vector, 0)
    tb.stall = 0.2
    await tb.step(12 * tb.vectors + 100)
    assert owed <= set(tb.written) and tb.counted <= asked and await tb.read(PENDING) == 0


@cocotb.test()
async def latency(dut):
    tb = await TB(dut).start(0)
    await tb.mask(0, 0)
    begun = tb.cycles.number
    await tb.irq(1)
    await tb.step(5)
    table.check("msix", tb.offered_at - begun)


@cocotb.test()
async def a_function_has_its_own_interrupts(dut):
    """They are written as their owner, where that lets them; it sees no other's, and its reset forgets them."""
    tb = TB(dut)
    last = tb.vectors - 1
    await tb.start(last)
    tb.owners[last] = 5
    dut.cfg_msix_enable.value = 1 << 5
    for mask in (1 << 5, 0):
        dut.cfg_msix_mask.value = mask
        await tb.mask(last, 0)
        if mask:
            await tb.irq(1 << last)
        await tb.step(tb.vectors + 10)
        assert tb.written == ([] if mask else [last])
        assert mask or int(dut.m_desc_func.value) == 5
    dut.cfg_msix_enable.value = 1
    await tb.irq(1 << last)
    await tb.step(tb.vectors + 10)
    for func in (0, 4, 5):
        dut.s_axil_func.value = func
        assert await tb.is_pending(last) == (func == 5)
    dut.s_axil_forget.value = 1
    await tb.mask(last, 1)
    dut.s_axil_forget.value = 0
    assert not await tb.is_pending(last)
    dut.cfg_msix_enable.value = 1 << 5
    await tb.mask(last, 0)
    await tb.step(tb.vectors + 10)
    assert tb.written == [last], "forgotten"


@cocotb.test()
async def they_follow_each_other_in_the_order_of_their_requests(dut):
    tb = await TB(dut).start()
    for vector in range(tb.vectors):
        await tb.mask(vector, 0)
    order = random.sample(range(tb.vectors), tb.vectors)
    for vector in order:
        await tb.irq(1 << vector)
    await tb.step(4 * tb.vectors)
    assert tb.written == order
