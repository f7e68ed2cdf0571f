"""pcie_host: functions that are reset, lose bus mastering or go away, under traffic of all of them."""

import random

import cocotb
import sriov
from cocotb.triggers import FallingEdge, with_timeout
from cocotbext.pcie.core.tlp import CplStatus, TlpType
from functions import NUMBERS, QUEUES, Traffic, calm, functions, populate, until
from traffic import answer, counted, request

PARAMETERS = [{"PERIOD_LOG2": 11}]
QUICK = ("reset_of_one_under_traffic_of_all",)
# The mask of vector n in its function's BAR 2.
MASK = 12


@cocotb.test()
async def bus_mastering_of_each_comes_and_goes(dut):
    """At any time, of function 0 too: the others go on; requests of it fail or are counted, and all is well when it is on."""
    tb = await functions(dut)
    rough = (0, 2, 7)
    traffic = Traffic(tb, rough)
    for _ in range(15):
        await tb.settle(random.randrange(5, 150))
        for func in random.sample(rough, random.randint(1, 3)):
            await tb.all[func].clear_master()
        await tb.settle(random.randrange(5, 300))
        for func in rough:
            await tb.all[func].set_master()
    await traffic.stop()
    assert sum(traffic.bad) > 10 and min(traffic.good) > 0, (traffic.good, traffic.bad)
    assert await tb.counter("wr_discarded") > 0
    # Tags of reads that the block has dropped return by themselves.
    await tb.settle(4 << 11)
    await calm(tb)
    assert int(dut.shim.rq.pending.value) <= 12


@cocotb.test()
async def reset_of_one_under_traffic_of_all(dut):
    """Its open reads end, late completions are dropped, its vector is masked; the other functions go on."""
    tb = await functions(dut, 10000)
    await tb.bar.write_dword(QUEUES, 0x76543210)
    for func in (1, 4, 7):
        victim, window = tb.all[func], tb.all[func].bar_window[2]
        await window.write_dword(16 * func + MASK, 0)
        assert await window.read_dword(16 * func + MASK) == 0
        late, answer_all = [], tb.rc.handle_mem_read_tlp

        async def hold(tlp, func=func, late=late, answer_all=answer_all):
            if int(tlp.requester_id) & 0xFF == NUMBERS[func]:
                late.append(tlp)
            else:
                await answer_all(tlp)
        aborts, traffic = await tb.counter("rd_abort"), Traffic(tb, (func,))
        await tb.settle(random.randrange(100, 300))
        tb.requests.answer = hold
        await until(tb, lambda late=late: late)
        await sriov.reset(victim)
        await until(tb, lambda func=func: NUMBERS[func] in tb.block.finished)
        tb.requests.answer = answer_all
        await traffic.stop()
        assert tb.block.finished == [NUMBERS[func]]
        tb.block.finished.clear()
        assert traffic.bad[func] >= len(late)
        # Those that the block has ended do not wait for the card's timeout.
        assert await tb.counter("rd_abort") - aborts == len(late)
        before = await tb.counter("rd_unexpected")
        for tlp in late:
            await answer_all(tlp)
        await tb.settle(300)
        assert await tb.counter("rd_unexpected") - before >= len(late)
        assert await window.read_dword(16 * func + MASK) == 1
        await victim.set_master()
        await tb.settle(20)
        await calm(tb)


@cocotb.test()
async def resets_of_all_at_once_are_told_one_by_one(dut):
    """In any order, again soon after, and under traffic; each is told once."""
    tb = await functions(dut)
    for _ in range(2):
        traffic = Traffic(tb, range(1, 8))
        for func in random.sample(range(1, 8), 7):
            await sriov.reset(tb.all[func])
        await until(tb, lambda: len(tb.block.finished) == 7, 4000)
        await traffic.stop()
        assert sorted(tb.block.finished) == list(NUMBERS[1:]) and not tb.block.resets
        tb.block.finished.clear()
        for vf in tb.all[1:]:
            await vf.set_master()
        await tb.settle(20)
    await tb.settle(4 << 11)
    await calm(tb)


@cocotb.test()
async def functions_that_the_host_takes_away_come_back_new(dut):
    """VF Enable is cleared under traffic: function 0 goes on; set again, they are as after a reset."""
    tb = await functions(dut)
    await tb.bar.write_dword(QUEUES, 0x76543210)
    for func in (1, 7):
        await tb.all[func].bar_window[2].write_dword(16 * func + MASK, 0)
    traffic = Traffic(tb, range(1, 8))
    await tb.settle(200)
    await sriov.switch(tb.device, False)
    await tb.settle(20)
    tb.block.time_out(lambda request: request.requester_id.function)
    assert (await answer(tb, request(tb, TlpType.MEM_READ, tb.all[1].bar_addr[0]))).status == CplStatus.UR
    await tb.settle(300)
    await traffic.stop()
    assert sum(traffic.bad[1:]) > 0
    await until(tb, lambda: int(dut.flr.value) == 0, 2000)
    assert not tb.block.finished, "no reset was requested"
    await sriov.switch(tb.device, True)
    for func in (1, 7):
        assert await tb.all[func].bar_window[2].read_dword(16 * func + MASK) == 1
        assert int(dut.bus_master.value) == 1, "bus mastering is off"
    for vf in tb.all[1:]:
        await vf.set_master()
    await tb.settle(4 << 11)
    await calm(tb)


@cocotb.test()
async def reset_of_function_0_takes_all_with_it(dut):
    """Also one of another function that has begun: the virtual functions are gone, and the owners forgotten."""
    tb = await functions(dut)
    await tb.bar.write_dword(QUEUES, 0x76543210)
    tasks = Traffic(tb, range(8)).tasks
    await tb.settle(200)
    await sriov.reset(tb.all[5])
    await sriov.reset(tb.device)
    await with_timeout(FallingEdge(dut.card_rst), 50, "us")
    for task in tasks:
        task.kill()
    dut.s_rd_desc_valid.value = dut.s_wr_desc_valid.value = dut.s_wr_data_tvalid.value = 0
    await tb.settle(400)
    tb.reader.results.clear()
    assert int(dut.cfg_flr_in_process.value) == 0 and not tb.block.resets
    assert int(dut.flr.value) == 0 and int(dut.bus_master.value) == 0
    await tb.device.enable_device()
    await tb.device.set_master()
    assert (await answer(tb, request(tb, TlpType.MEM_READ, tb.all[1].bar_addr[0]))).status == CplStatus.UR
    assert await tb.bar.read_dword(QUEUES) == 0
    await populate(tb)
    await tb.settle(4 << 11)
    await calm(tb)
    tb.counts = {}
    await counted(tb)
