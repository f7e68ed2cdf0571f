"""The card behind cocotbext-pcie's model of the PCIe block of UltraScale+ and its root complex.

The model lacks a part of the block, which `Block` adds as PG213 has it: the end of a read by a completion
timeout and by a function-level reset (error codes of the requester completion), the signals of that reset, and
virtual functions (`sriov`).
"""

import logging
import random

import cocotb
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge, Timer, with_timeout
from cocotbext.axi import AxiStreamBus
from cocotbext.pcie.core import RootComplex
from cocotbext.pcie.core.tlp import Tlp
from cocotbext.pcie.xilinx.us import UltraScalePlusPcieDevice
from cocotbext.pcie.xilinx.us.tlp import ErrorCode, Tlp_us

from clocks import Clock
import sriov

# Sizes of BAR 0 and BAR 2, of each function; vectors of each, as many as the benches' cards have event queues.
BAR_BYTES, VECTOR_BYTES, VECTORS = 1 << 17, 1 << 13, 8
# Registers (hw/docs/registers.md), and the memory that the bench has behind them.
HOST, SCRATCH = 0x1000, 0x10000
COUNTERS = {"writes": 0, "reads": 8, "wr_discarded": 16, "rd_timeout": 24, "rd_unsupported": 32, "rd_abort": 40,
            "rd_poisoned": 48, "rd_unexpected": 56, "interrupts": 64}
NET_PS = 6400


def stalls(probability):
    """Of a stream."""
    while True:
        yield random.random() < probability


class Block(UltraScalePlusPcieDevice):
    """The block, with its completion timeout, function-level reset and virtual functions."""

    def __init__(self, dut, **settings):
        self.dut = dut
        # The host enables extended tags where the block has them.
        extended = not hasattr(dut, "EXTENDED") or bool(int(dut.EXTENDED.value))
        super().__init__(
            pcie_generation=3, pcie_link_width=8, user_clk_frequency=250e6, alignment="dword", max_payload_size=1024,
            enable_client_tag=True, enable_extended_tag=extended,
            pf0_msix_enable=True, pf0_msix_table_size=VECTORS - 1, pf0_msix_table_bir=2,
            pf0_msix_pba_bir=2, pf0_msix_pba_offset=sriov.PENDING,
            user_clk=dut.clk, user_reset=dut.rst, sys_reset=dut.sys_reset,
            rq_bus=AxiStreamBus.from_prefix(dut, "m_axis_rq"), rc_bus=AxiStreamBus.from_prefix(dut, "s_axis_rc"),
            cq_bus=AxiStreamBus.from_prefix(dut, "s_axis_cq"), cc_bus=AxiStreamBus.from_prefix(dut, "m_axis_cc"),
            pcie_rq_seq_num0=dut.pcie_rq_seq_num0, pcie_rq_seq_num_vld0=dut.pcie_rq_seq_num_vld0,
            pcie_rq_seq_num1=dut.pcie_rq_seq_num1, pcie_rq_seq_num_vld1=dut.pcie_rq_seq_num_vld1,
            pcie_cq_np_req=dut.pcie_cq_np_req, cfg_fc_sel=dut.cfg_fc_sel, cfg_fc_nph=dut.cfg_fc_nph,
            cfg_max_payload=dut.cfg_max_payload, cfg_max_read_req=dut.cfg_max_read_req,
            cfg_mgmt_addr=dut.cfg_mgmt_addr, cfg_mgmt_function_number=dut.cfg_mgmt_function_number,
            cfg_mgmt_write=dut.cfg_mgmt_write, cfg_mgmt_write_data=dut.cfg_mgmt_write_data,
            cfg_mgmt_byte_enable=dut.cfg_mgmt_byte_enable, cfg_mgmt_read=dut.cfg_mgmt_read,
            cfg_mgmt_read_data=dut.cfg_mgmt_read_data, cfg_mgmt_read_write_done=dut.cfg_mgmt_read_write_done,
            cfg_function_status=dut.cfg_function_status, cfg_interrupt_msix_enable=dut.cfg_interrupt_msix_enable,
            cfg_interrupt_msix_mask=dut.cfg_interrupt_msix_mask, cfg_config_space_enable=dut.cfg_config_space_enable,
            **settings)
        dut.cfg_flr_in_process.value = dut.cfg_power_state_change_interrupt.value = 0
        self.function = self.functions[0]
        self.function.configure_bar(0, BAR_BYTES, ext=True)
        self.function.configure_bar(2, VECTOR_BYTES, ext=True)
        self.function.pcie_cap.function_level_reset_capability = True
        self.function.pcie_cap.initiate_function_level_reset = self.reset_function
        # Virtual functions in reset, and those of which it has ended.
        self.resets, self.finished = set(), []
        self.sriov = sriov.Capability(self, VECTORS, {0: BAR_BYTES, 2: VECTOR_BYTES})
        # The first one: the model has no extended capability of its own in its configuration space.
        self.function.register_extended_capability(self.sriov, offset=0x40)
        self.functions = sriov.Functions(self.functions, self.sriov)
        cocotb.start_soon(sriov.signals(self, dut))

    def end(self, tag, code):
        """Ends an open read by an error of the block itself."""
        end = Tlp_us(Tlp.create_completion_for_tlp(self.active_request[tag], self.function.pcie_id))
        self.active_request[tag] = None
        end.error_code, end.request_completed, end.tag = code, True, tag
        self.rc_queue.put_nowait(end)

    def time_out(self, of=lambda request: True):
        """The completion timeout of every open read has passed."""
        for tag in [tag for tag, request in enumerate(self.active_request) if request and of(request)]:
            self.end(tag, ErrorCode.TIMEOUT)

    async def reset_function(self):
        cocotb.start_soon(self.resetting())

    async def resetting(self):
        self.function.bus_master_enable = self.function.memory_space_enable = False
        self.function.msix_cap.msix_enable = False
        self.function.pcie_cap.extended_tag_field_enable = False
        self.sriov.control = 0
        for vf in self.sriov.all:
            vf.forget()
        self.dut.cfg_flr_in_process.value = 1
        for tag in [tag for tag, request in enumerate(self.active_request) if request]:
            self.end(tag, ErrorCode.FLR)
        while not int(self.dut.cfg_flr_done.value) & 1:
            await RisingEdge(self.dut.clk)
        await ClockCycles(self.dut.clk, 4)
        self.dut.cfg_flr_in_process.value = 0


class Writer:
    """Writes of the card, of any bytes: `write` ends when the host bus logic has the last word."""

    def __init__(self, dut):
        self.dut = dut
        dut.s_wr_desc_valid.value = dut.s_wr_data_tvalid.value = 0

    async def write(self, address, data, func=0):
        dut = self.dut
        await FallingEdge(dut.clk)
        dut.s_wr_desc_valid.value, dut.s_wr_data_tvalid.value = 1, 1
        dut.s_wr_desc_address.value, dut.s_wr_desc_length.value, dut.s_wr_desc_func.value = address, len(data), func
        # From the DW of the first byte on.
        data = random.randbytes(address % 4) + data
        words, described = [data[at:at + 32] for at in range(0, len(data), 32)], False
        while words or not described:
            if words:
                dut.s_wr_data_tdata.value = int.from_bytes(words[0], "little")
                dut.s_wr_data_tlast.value = len(words) == 1
            dut.s_wr_data_tvalid.value, dut.s_wr_desc_valid.value = bool(words), not described
            await Timer(1, "ns")
            taken, word = int(dut.s_wr_desc_ready.value), int(dut.s_wr_data_tready.value)
            await FallingEdge(dut.clk)
            described = described or bool(taken)
            if words and word:
                words.pop(0)
        dut.s_wr_desc_valid.value = dut.s_wr_data_tvalid.value = 0


class Reader:
    """Reads of the card, one after the other or many at once; a failed one gives None."""

    def __init__(self, dut):
        self.dut, self.results, self.stall = dut, [], 0.0
        dut.s_rd_desc_valid.value = dut.m_rd_data_tready.value = 0
        dut.s_rd_desc_tag.value = 0
        cocotb.start_soon(self.collect())

    async def collect(self):
        dut, data = self.dut, b""
        while True:
            await FallingEdge(dut.clk)
            dut.m_rd_data_tready.value = random.random() >= self.stall
            await Timer(1, "ns")
            if not dut.card_rst.value == 0:
                data = b""
            elif dut.m_rd_data_tvalid.value == 1 and int(dut.m_rd_data_tready.value):
                failed = int(dut.m_rd_data_tuser.value) if int(dut.m_rd_data_tlast.value) else 0
                # The last word of a failed read is void.
                if not failed:
                    count = bin(int(dut.m_rd_data_tkeep.value)).count("1")
                    data += int(dut.m_rd_data_tdata.value.binstr[-8 * count:], 2).to_bytes(count, "little")
                if int(dut.m_rd_data_tlast.value):
                    self.results.append(None if failed else data)
                    data = b""

    async def request(self, address, length, func=0):
        dut = self.dut
        await FallingEdge(dut.clk)
        dut.s_rd_desc_func.value = func
        dut.s_rd_desc_valid.value, dut.s_rd_desc_address.value, dut.s_rd_desc_length.value = 1, address, length
        while True:
            await Timer(1, "ns")
            taken = int(dut.s_rd_desc_ready.value)
            await FallingEdge(dut.clk)
            if taken:
                break
        dut.s_rd_desc_valid.value = 0

    async def ended(self, count):
        """Waits until `count` reads have ended, and gives their results."""
        while len(self.results) < count:
            await RisingEdge(self.dut.clk)
        found, self.results = self.results[:count], self.results[count:]
        return found

    async def read(self, address, length, func=0):
        await self.request(address, length, func)
        return (await self.ended(1))[0]


class TB:
    """The bench: root complex, block, shim, host bus logic. `start` enumerates."""

    def __init__(self, dut, payload=1, read=2, **settings):
        logging.getLogger("cocotb.pcie").setLevel(logging.ERROR)
        logging.getLogger("cocotb.pcie_host").setLevel(logging.ERROR)
        logging.getLogger("cocotb.pcie_card").setLevel(logging.ERROR)
        self.dut = dut
        dut.sys_reset.value = 0
        self.rc = RootComplex()
        self.rc.log.setLevel(logging.ERROR)
        self.rc.max_payload_size, self.rc.max_read_request_size = payload, read
        self.block = Block(dut, **settings)
        self.block.log.setLevel(logging.ERROR)
        # What a test before this one has left is over.
        dut.rst.setimmediatevalue(1)
        self.rc.make_port().connect(self.block)
        cocotb.start_soon(Clock(dut.clk_net, NET_PS, "ps").start())
        self.bar = self.vectors = self.device = None
        if hasattr(dut, "s_irq_valid"):
            self.writer, self.reader = Writer(dut), Reader(dut)
            dut.s_irq_valid.value = dut.s_irq_queue.value = 0

    async def start(self):
        await Timer(100, "ns")
        self.dut.sys_reset.value = 1
        await FallingEdge(self.dut.rst)
        await ClockCycles(self.dut.clk, 150)
        await self.enumerate()

    async def enumerate(self):
        await with_timeout(self.rc.enumerate(), 1, "ms")
        self.device = self.rc.find_device(self.block.function.pcie_id)
        await self.device.enable_device()
        await self.device.set_master()
        self.bar, self.vectors = self.device.bar_window[0], self.device.bar_window[2]
        await self.settle(20)

    async def settle(self, cycles=500):
        await ClockCycles(self.dut.clk, cycles)

    async def counter(self, name):
        """One of the card's counters of the host bus."""
        return await self.bar.read_qword(HOST + 0x100 + COUNTERS[name])

