"""plx_card: what a function leaves behind when it is reset, or goes on doing meanwhile."""

import struct

import cocotb
from frames import integer, udp
from test_plx_card import BUFFERS, CLOP, FUNCTIONS, HOST, IDLE_WORD, TB, TX, VIRTUAL, net_is, port
from xgmii import received

from host_bus import header

PARAMETERS = [{"PORTS": 2, "TLB_ENTRIES": 4, "EVENT_QUEUES": 2, "RD_TAGS": 8, "RX_FIFO_WORDS": 256,
               "RX_FIFO_FRAMES": 32, "ARP_ENTRIES": 16}]
QUICK = ("what_a_function_writes_in_its_reset_has_no_effect",
         "a_reset_while_the_clock_of_the_ports_stands_is_done_when_it_is_back")

RING, DATA = 0x3_0000_0000, 0x4_0000_0000
# The MAC of function 1; where it sends: to broadcast, and to addresses that no host has.
MAC, BROADCAST, NO_HOST = "02:00:00:00:11:11", 0xFFFFFFFF, 0x0A000070


async def write(tb, offset, value, size=4):
    """A write of function 1."""
    tb.requests.send(header(offset=offset, length=size // 4, first_be=15, last_be=15 * (size > 4), write=1, func=1),
                     value.to_bytes(size, "little"))
    await tb.until(lambda: not tb.requests.queue)


async def started(dut):
    """Port 1 is function 1's."""
    tb = await TB(dut).start()
    await tb.set_up()
    dut.cfg_bus_master.value = 7
    await tb.write(FUNCTIONS + 8, 1 << 4)
    return tb


async def sends(tb, destinations, size, wait):
    """Function 1 sends packets, which stay in the card."""
    ones = b"".join(struct.pack("<QIHHIHHHHI", DATA, size, 1 | 2, size, to, 7000, 7001, 0, 0, 0xDEAD)
                    for to in destinations)
    tb.reads.memory = lambda address, length: ones[address - RING:][:length].ljust(length, b"\0") if address < DATA \
        else bytes(length)
    for register, value in ((0x20, 0x0A0000B1), (0x58, wait), (0x8, 3 | 0x20)):
        await write(tb, port(1, register), value)
    await write(tb, port(1, 0x18), integer(MAC), 8)
    await write(tb, TX + 0x140, RING, 8)
    await write(tb, TX + 0x148, 1 | 3 << 8)
    await write(tb, TX + 0x14C, len(destinations))
    await tb.settle()


async def reset(tb, function, patience=6000):
    """A function level reset of it."""
    asked = int(tb.dut.cfg_flr.value) | 1 << function
    tb.dut.cfg_flr.value = asked
    await tb.until(lambda: int(tb.dut.flr_done.value) >> function & 1, patience)
    tb.dut.cfg_flr.value = asked & ~(1 << function)


async def taken_back(tb):
    """Function 0 takes the port, and uses it and its ring."""
    await tb.write(FUNCTIONS + 8, 0)
    await tb.set_up_ports()
    await tb.write(TX + 0x148, 1 | 3 << 8)
    await tb.settle()
    tb.said[1].clear()


@cocotb.test()
async def a_reset_ends_although_packets_wait_for_neighbours_and_nothing_of_them_is_left(dut):
    """More than the fifo holds, and neighbours that may take as long as ARP_WAIT can be."""
    tb = await started(dut)
    await sends(tb, [NO_HOST + number for number in range(4)], 8900, 0xFFFFFFFF)
    await tb.step(1200)
    dut.cfg_flr.value = 2
    # That of function 2, which has nothing, comes behind.
    await tb.step(20)
    await reset(tb, 2)
    assert int(dut.resetting.value) == 0, "that of function 1 has ended before"
    dut.cfg_flr.value = 0
    await taken_back(tb)
    assert await tb.read(TX + 0x154) == 1, "the ring is idle"
    await tb.step(1000)
    assert not received(tb.said[1]) and tb.event() is None, "a loss is told to another"
    assert await tb.read(port(1, 0x4A8 + 0x10), size=8) == 0


@cocotb.test()
async def a_packet_leaves_before_its_function_has_been_reset_or_never(dut):
    """A pause holds packets back: one has begun, one is next, one is in the fifo."""
    tb = await started(dut)
    await tb.step(10)
    await write(tb, port(1, 0x8), 3 | 0x20)
    await tb.settle()
    tb.frames(1, [bytes.fromhex("0180c200000102000000000188080001012c") + bytes(42)])
    await tb.step(60)
    await sends(tb, [BROADCAST] * 3, 32, 900)
    await tb.step(200)
    tb.said[1].clear()
    await reset(tb, 1)
    assert [frame.payload()[6:12] for frame in received(tb.said[1])] == [bytes.fromhex(MAC.replace(":", ""))]
    await taken_back(tb)
    await tb.step(1000)
    assert not received(tb.said[1])


@cocotb.test()
async def what_a_function_writes_in_its_reset_has_no_effect(dut):
    """Else its list would take payloads of the next owner, to an address of its choice."""
    tb = await started(dut)
    its_list, stream = CLOP + 0x2000 + 35 * 0x40, port(1, 0x200 + 4 * 3)
    await write(tb, its_list, VIRTUAL + 0x1F0000, 8)
    for register, value in ((0x8, 4096), (0xC, 4), (0x10, 0), (0x14, 60)):
        await write(tb, its_list + register, value)
    await tb.settle()
    refused = await tb.read(HOST + 0x150)
    # The reset waits for the end of function 0's writes, which the host does not accept.
    tb.writes.stall = 1.0
    tb.frames(0, [udp(b"for function 0")])
    await tb.step(300)
    dut.cfg_flr.value = 2
    # Its ports have been walked by then.
    await tb.until(lambda: int(dut.resetting.value) == 2)
    await tb.until(lambda: int(dut.host_bus.functions.clear.kind.value) != 0)
    for at, value in ((its_list + 0x18, 1), (stream, 6000 | 1 << 31), (port(1, 0x8), 3), (TX + 0x148, 0x301)):
        await write(tb, at, value)
    await tb.settle()
    assert int(dut.resetting.value) == 2
    tb.writes.stall = 0.0
    await reset(tb, 1)
    assert await tb.read(HOST + 0x150) == refused + 4
    await tb.write(FUNCTIONS + 8, 0)
    assert [await tb.read(at) for at in (its_list + 0x18, stream, port(1, 0x8), TX + 0x148)] == [0, 0, 0x22, 0x300]
    await tb.set_up_ports()
    before = len(tb.writes.log)
    tb.frames(1, [udp(b"for a stream of the former owner", dport=6000)])
    await tb.step(300)
    assert all(address < BUFFERS for address, _, _ in tb.writes.log[before:])


@cocotb.test()
async def a_reset_while_the_clock_of_the_ports_stands_is_done_when_it_is_back(dut):
    """Registers, and packets in both clocks; it ends although nothing moves there."""
    tb = await started(dut)
    await sends(tb, [NO_HOST + number for number in range(4)], 8900, 0xFFFFFFFF)
    await write(tb, port(1, 0x8), 3 | 8)
    await tb.step(1200)
    tb.net.kill()
    await net_is(tb, 0)
    await reset(tb, 1)
    tb.run_net()
    await net_is(tb, 1)
    await tb.write(FUNCTIONS + 8, 0)
    # As after any reset of the ports.
    assert [await tb.read(port(1, at)) for at in (0x8, 0x20, 0x200)] == [0x20, 0, 0]
    await taken_back(tb)
    assert await tb.read(TX + 0x154) == 1
    await tb.step(1000)
    assert not received(tb.said[1]) and tb.event() is None
    assert tb.said[1][-1] == (IDLE_WORD, 0xFF)
