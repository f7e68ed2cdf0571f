"""plx_rd_mux: requests of all in one order, each response to its client; no client starves."""

import random

import cocotb

from core import Cycles, joined, part

PARAMETERS = [{"CLIENTS": 5}, {"CLIENTS": 2}, {"CLIENTS": 16}]

WIDTHS = (("address", 64), ("length", 16), ("tag", 4), ("func", 8))


class TB:
    """Clients that request and accept, and a plx_dma_rd that responds in order: n words to a request of n bytes."""

    def __init__(self, dut):
        self.dut, self.cycles, self.clients = dut, Cycles(dut), int(dut.CLIENTS.value)
        self.cycles.watchers.append(self.look)
        self.waiting = [[] for _ in range(self.clients)]
        # Outstanding responses, of all and of each; words of a response are (data, keep, last, bad).
        self.open, self.expected = [], [[] for _ in range(self.clients)]
        self.order, self.stall, self.idle, self.offered = [], 0.0, 0.0, False
        for name, _ in WIDTHS:
            getattr(dut, f"s_desc_{name}").value = 0
        for name in ("s_desc_valid", "m_desc_ready", "s_data_tvalid", "s_data_tdata", "s_data_tkeep", "s_data_tlast",
                     "s_data_tuser", "s_status_tag", "m_data_tready"):
            getattr(dut, name).value = 0

    def add(self, client, words):
        self.waiting[client].append((random.getrandbits(64), words, random.getrandbits(4), random.getrandbits(8)))

    async def step(self):
        dut = self.dut
        heads = [waiting[0] if waiting else (0,) * 4 for waiting in self.waiting]
        dut.s_desc_valid.value = joined([bool(waiting) for waiting in self.waiting], 1)
        for index, (name, width) in enumerate(WIDTHS):
            getattr(dut, f"s_desc_{name}").value = joined([head[index] for head in heads], width)
        dut.m_desc_ready.value = random.random() >= self.stall
        dut.m_data_tready.value = joined([random.random() >= self.stall for _ in self.waiting], 1)
        self.offered = self.offered or bool(self.open) and random.random() >= self.idle
        dut.s_data_tvalid.value = self.offered
        if self.offered:
            tag, words = self.open[0]
            dut.s_status_tag.value = tag
            for name, value in zip(("tdata", "tkeep", "tlast", "tuser"), words[0]):
                getattr(dut, f"s_data_{name}").value = value
        await self.cycles.cycle()

    def look(self):
        dut = self.dut
        # Responses first: a request has its response in the next cycle at the earliest.
        valid, ready = int(dut.m_data_tvalid.value), int(dut.m_data_tready.value)
        assert valid & (valid - 1) == 0 and (valid != 0) == self.offered
        if valid & ready:
            assert int(dut.s_data_tready.value)
            client = (valid & ready).bit_length() - 1
            word = tuple(int(getattr(dut, f"m_data_{name}").value)
                         for name in ("tag", "tdata", "tkeep", "tlast", "tuser"))
            assert self.expected[client].pop(0) == word, "a response to another client"
            _, words = self.open[0]
            assert words.pop(0) == word[1:]
            self.offered = False
            if not words:
                self.open.pop(0)
        elif self.offered:
            assert not int(dut.s_data_tready.value), "accepted without a client"
        if int(dut.m_desc_valid.value) and int(dut.m_desc_ready.value):
            tag = int(dut.m_desc_tag.value)
            client, request = self.order.pop(0)
            assert tag == client << 4 | request[2]
            assert request == tuple(int(getattr(dut, f"m_desc_{name}").value) & (15 if name == "tag" else -1)
                                    for name, _ in WIDTHS), "out of order"
            words = [(random.getrandbits(256), random.getrandbits(32), index == request[1] - 1,
                      index == request[1] - 1 and random.random() < 0.2) for index in range(request[1])]
            self.open.append((tag, list(words)))
            self.expected[client] += [(request[2], *word) for word in words]
        for client, waiting in enumerate(self.waiting):
            if waiting and part(dut.s_desc_ready, client, 1):
                self.order.append((client, waiting.pop(0)))

    async def finish(self):
        for _ in range(6000):
            await self.step()
            if not any(self.waiting) and not self.order and not self.open:
                break
        for _ in range(3):
            await self.step()
        assert not any(self.waiting) and not self.order and not self.open and not any(self.expected)


@cocotb.test()
async def answers_go_to_their_requesters_under_random_soak(dut):
    for stall, idle in ((0.0, 0.0), (0.5, 0.2)):
        tb = TB(dut)
        tb.stall, tb.idle = stall, idle
        await tb.cycles.start()
        for _ in range(120):
            tb.add(random.randrange(tb.clients), random.choice((1, 1, 2, 8)))
        await tb.finish()


@cocotb.test()
async def round_robin_without_a_lost_cycle(dut):
    tb = TB(dut)
    await tb.cycles.start()
    for client in range(tb.clients):
        for _ in range(4):
            tb.add(client, 1)
    for _ in range(4 * tb.clients):
        await tb.step()
    assert not any(tb.waiting), "a cycle was lost"
    await tb.finish()
