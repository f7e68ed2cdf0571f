"""plx_wr_mux: whole writes in one order, each reported when it is accepted; no writer starves."""

import random

import cocotb

from core import Cycles, joined, part

PARAMETERS = [{"INPUTS": 6}, {"INPUTS": 2}]


class TB:
    """Writers, and the receiver of their writes."""

    def __init__(self, dut):
        self.dut, self.cycles, self.inputs = dut, Cycles(dut), int(dut.INPUTS.value)
        self.cycles.watchers.append(self.look)
        self.descriptors = [[] for _ in range(self.inputs)]
        self.words = [[] for _ in range(self.inputs)]
        self.sent = [[] for _ in range(self.inputs)]
        self.expected_taken, self.taken = 0, [0] * self.inputs
        self.got, self.got_words, self.order = [], [], []
        self.stall = 0.0
        for name in ("desc_valid", "desc_address", "desc_length", "desc_func", "desc_immediate",
                     "desc_immediate_data", "data_tvalid", "data_tdata", "data_tlast"):
            getattr(dut, f"s_{name}").value = 0
        dut.m_desc_ready.value = dut.m_data_tready.value = 0

    def add(self, source, words):
        """A write of a number of words; 0: an immediate."""
        address = source << 32 | len(self.sent[source]) << 16
        data = [random.getrandbits(256) for _ in range(words)]
        descriptor = (address, 32 * words or 4, source, words == 0, 0 if words else random.getrandbits(32))
        self.descriptors[source].append(descriptor)
        self.words[source] += [(word, index == words - 1) for index, word in enumerate(data)]
        self.sent[source].append((descriptor, data))

    async def step(self):
        dut = self.dut
        heads = [waiting[0] if waiting else (0,) * 5 for waiting in self.descriptors]
        words = [waiting[0] if waiting else (0, 0) for waiting in self.words]
        dut.s_desc_valid.value = joined([bool(waiting) for waiting in self.descriptors], 1)
        for index, (name, width) in enumerate((("address", 64), ("length", 13), ("func", 8), ("immediate", 1),
                                               ("immediate_data", 32))):
            getattr(dut, f"s_desc_{name}").value = joined([head[index] for head in heads], width)
        dut.s_data_tvalid.value = joined([bool(waiting) for waiting in self.words], 1)
        dut.s_data_tdata.value = joined([word[0] for word in words], 256)
        dut.s_data_tlast.value = joined([word[1] for word in words], 1)
        dut.m_desc_ready.value = random.random() >= self.stall
        dut.m_data_tready.value = random.random() >= self.stall
        await self.cycles.cycle()

    def look(self):
        dut = self.dut
        assert int(dut.m_accepted.value) == self.expected_taken, "m_accepted follows the last word by one cycle"
        for source in range(self.inputs):
            self.taken[source] += self.expected_taken >> source & 1
        self.expected_taken = 0
        for source in range(self.inputs):
            if self.descriptors[source] and part(dut.s_desc_ready, source, 1):
                descriptor = self.descriptors[source].pop(0)
                self.order.append(source)
                if descriptor[3]:
                    self.expected_taken |= 1 << source
            if self.words[source] and part(dut.s_data_tready, source, 1):
                if self.words[source].pop(0)[1]:
                    self.expected_taken |= 1 << source
        if int(dut.m_desc_valid.value) and int(dut.m_desc_ready.value):
            self.got.append(tuple(int(getattr(dut, f"m_desc_{name}").value)
                                  for name in ("address", "length", "func", "immediate", "immediate_data")))
        if int(dut.m_data_tvalid.value) and int(dut.m_data_tready.value):
            self.got_words.append(int(dut.m_data_tdata.value))

    async def finish(self):
        for _ in range(4000):
            await self.step()
            if not any(self.descriptors) and not any(self.words):
                break
        for _ in range(20):
            await self.step()
        # Exactly the accepted writes, whole and in order.
        remaining = [list(sent) for sent in self.sent]
        for source, descriptor in zip(self.order, self.got, strict=True):
            expected, data = remaining[source].pop(0)
            assert descriptor == expected
            assert self.got_words[:len(data)] == data, "data of another write"
            del self.got_words[:len(data)]
        assert not self.got_words and not any(remaining)
        assert self.taken == [len(sent) for sent in self.sent]


@cocotb.test()
async def whole_writes_in_one_order_under_random_soak(dut):
    for stall in (0.0, 0.5):
        tb = TB(dut)
        tb.stall = stall
        await tb.cycles.start()
        for _ in range(60 * tb.inputs):
            tb.add(random.randrange(tb.inputs), random.choice((0, 1, 2, 2, 3, 8)))
        await tb.finish()


@cocotb.test()
async def round_robin_without_a_lost_cycle(dut):
    tb = TB(dut)
    await tb.cycles.start()
    for source in range(tb.inputs):
        for _ in range(5):
            tb.add(source, 2)
    for _ in range(10 * tb.inputs + 1):
        await tb.step()
    assert len(tb.got_words) == 10 * tb.inputs, "a cycle was lost"
    assert tb.order == list(range(tb.inputs)) * 5
    await tb.finish()
