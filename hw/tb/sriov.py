"""SR-IOV for cocotbext-pcie's model of the PCIe block of UltraScale+, which has none (PG213; SR-IOV 1.1).

The block's side: the extended capability of function 0, the configuration space of virtual functions, their BARs,
routing ids, resets and signals. The host's side: `enable`, what a driver of function 0 and its bus code do. The
model's own code handles their requests and completions: it looks a function up in `Functions`, by its 8-bit number.
"""

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.pcie.core.caps import PciCapId, PciExtCap, PciExtCapId
from cocotbext.pcie.core.pci import PciDevice
from cocotbext.pcie.core.utils import PcieId, byte_mask_update
from cocotbext.pcie.xilinx.us import usp_model
from cocotbext.pcie.xilinx.us.tlp import ErrorCode, Tlp_us

# Number of the first one, and how many there are; where BAR 2 of each function has its pending bits.
FIRST, TOTAL, PENDING = 4, 7, 0x1000
# Registers of the capability, in bytes; bits of its control.
CONTROL, TOTAL_VFS, NUM_VFS, OFFSET, STRIDE, PAGE_SIZE, BARS = 0x08, 0x0E, 0x10, 0x14, 0x16, 0x20, 0x24
ENABLE, MEMORY = 1, 8


class RoutingId(PcieId):
    """An id whose function is the 8-bit number that ARI has instead of device and function."""

    @property
    def function(self):
        return self[1] << 3 | self[2]

    @classmethod
    def of(cls, bus, number):
        return cls(bus, number >> 3, number & 7)


class RoutedTlp(Tlp_us):
    """With such ids."""

    @property
    def completer_id(self):
        return RoutingId(*tuple(self._completer_id))

    @completer_id.setter
    def completer_id(self, value):
        self._completer_id = PcieId(value)

    @property
    def requester_id(self):
        return RoutingId(*tuple(self._requester_id))

    @requester_id.setter
    def requester_id(self, value):
        self._requester_id = PcieId(value)


usp_model.Tlp_us = RoutedTlp


class Functions(list):
    """Functions of a device: physical ones as in a list, virtual ones by number, and all of them in turn."""

    def __init__(self, physical, capability):
        super().__init__(physical)
        self.capability = capability

    def __iter__(self):
        yield from super().__iter__()
        yield from self.capability.enabled()

    def __getitem__(self, number):
        if number < len(self):
            return super().__getitem__(number)
        # One that is not enabled has no bus mastering.
        assert FIRST <= number < FIRST + TOTAL, f"a request of function {number}"
        return self.capability.all[number - FIRST]


class Capability(PciExtCap):
    def __init__(self, block, vectors, sizes):
        super().__init__()
        self.cap_id, self.cap_ver, self.length = PciExtCapId.SRIOV, 1, 16
        self.control = self.count = self.page_size = 0
        self.sizes, self.bars = sizes, [0] * 6
        self.all = [VirtualFunction(block, self, FIRST + number, vectors) for number in range(TOTAL)]

    def enabled(self):
        return self.all[:self.count] if self.control & ENABLE else []

    def mask(self, bar):
        """Of its bits that can be written; BARs of 64 bit."""
        low = bar & ~1
        return 0 if low not in self.sizes else (-self.sizes[low] >> 32 * (bar & 1)) & (0xFFFFFFFF if bar & 1 else ~15)

    async def _read_register(self, reg):
        fixed = {3: TOTAL | TOTAL << 16, 5: FIRST | 1 << 16, 6: 0x504C << 16, 7: 1}
        if 9 <= reg < 15:
            return self.bars[reg - 9] & 0xFFFFFFFF | (4 if reg - 9 in self.sizes else 0)
        return {2: self.control, 4: self.count, 8: self.page_size, **fixed}.get(reg, 0)

    async def _write_register(self, reg, data, mask):
        if reg == 2:
            before = self.enabled()
            self.control = byte_mask_update(self.control, mask, data, 0x19)
            for vf in self.all:
                if (vf in before) != (vf in self.enabled()):
                    vf.forget()
        elif reg == 4 and not self.control & ENABLE:
            self.count = byte_mask_update(self.count, mask, data, 0xFFFF)
            assert self.count <= TOTAL
        elif reg == 8:
            self.page_size = byte_mask_update(self.page_size, mask, data, 1)
        elif 9 <= reg < 15:
            self.bars[reg - 9] = byte_mask_update(self.bars[reg - 9], mask, data, self.mask(reg - 9))


class VirtualFunction(usp_model.UltraScalePlusPcieFunction):
    def __init__(self, block, capability, number, vectors):
        self.block, self.capability, self.number = block, capability, number
        super().__init__()
        self.deregister_capability(self.msi_cap)
        self.upstream_tx_handler = block.upstream_send
        self.msix_cap.msix_table_size = vectors - 1
        self.msix_cap.msix_table_bar_indicator_register = self.msix_cap.msix_pba_bar_indicator_register = 2
        self.msix_cap.msix_pba_offset = PENDING
        self.pcie_cap.function_level_reset_capability = True
        self.pcie_cap.initiate_function_level_reset = self.reset

    @property
    def pcie_id(self):
        return RoutingId.of(self.block.bus_num, self.number)

    @pcie_id.setter
    def pcie_id(self, value):
        """The bus is that of the device."""

    device_num = property(lambda self: self.number >> 3)
    function_num = property(lambda self: self.number & 7)
    bus_num = property(lambda self: self.block.bus_num)

    async def read_config_register(self, reg):
        # Ids and BARs are those of the capability.
        if reg == 0 or 4 <= reg < 10:
            return 0xFFFFFFFF if reg == 0 else 0
        return await super().read_config_register(reg)

    async def write_config_register(self, reg, data, mask):
        if reg == 1:
            self.bus_master_enable = bool(data & 4) if mask & 1 else self.bus_master_enable
        elif not 4 <= reg < 10:
            await super().write_config_register(reg, data, mask)

    def match_bar(self, addr, io=False):
        for bar, size in self.capability.sizes.items() if self.capability.control & MEMORY and not io else ():
            base = self.capability.bars[bar] | self.capability.bars[bar + 1] << 32
            at = addr - base - size * (self.number - FIRST)
            if 0 <= at < size:
                return bar, at
        return None

    def forget(self):
        self.bus_master_enable = self.msix_cap.msix_enable = self.msix_cap.msix_function_mask = False

    async def reset(self):
        cocotb.start_soon(self.resetting())

    async def resetting(self):
        self.forget()
        self.block.resets.add(self.number)
        for tag, request in enumerate(self.block.active_request):
            if request and request.requester_id == self.pcie_id:
                self.block.end(tag, ErrorCode.FLR)


async def signals(block, dut):
    """Of the virtual functions: as PG213 names them, first to seventh; `done` ends a reset some cycles later."""
    dut.cfg_vf_flr_in_process.value = 0

    async def finish(number):
        await ClockCycles(dut.clk, 4)
        block.resets.discard(number)
        block.finished.append(number)

    def bits(condition):
        return sum(1 << vf.number - FIRST for vf in block.functions.capability.enabled() if condition(vf))
    while True:
        status = 0
        for vf in block.functions.capability.enabled():
            status |= (1 | 2 * bool(vf.bus_master_enable)) << 2 * (vf.number - FIRST)
        dut.cfg_vf_status.value = status
        dut.cfg_interrupt_msix_vf_enable.value = bits(lambda vf: vf.msix_cap.msix_enable)
        dut.cfg_interrupt_msix_vf_mask.value = bits(lambda vf: vf.msix_cap.msix_function_mask)
        dut.cfg_vf_flr_in_process.value = sum(1 << number - FIRST for number in block.resets)
        await RisingEdge(dut.clk)
        if dut.cfg_vf_flr_done.value == 1 and dut.rst.value == 0:
            number = int(dut.cfg_vf_flr_func_num.value)
            assert number in block.resets, f"function {number} is not being reset"
            cocotb.start_soon(finish(number))


# ---- The host ---------------------------------------------------------------------------------------


async def open_window(device, size):
    """More memory behind the root port; gives its address."""
    bridge, rc = device.upstream_bridge(), device.rc
    start = (bridge.mem_limit + 0x100000) & ~0xFFFFF
    bridge.mem_limit = start + size - 1
    await bridge.setup_bridge()
    rc.mem_limit = rc.upstream_bridge.mem_limit = rc.host_bridge.mem_limit = start + size
    return start


async def enable(device, count=TOTAL):
    """Enables virtual functions; gives them, with windows of their BARs."""
    at = device.get_capability_offset(PciExtCapId.SRIOV)
    assert await device.config_read_word(at + TOTAL_VFS) >= count
    first, stride = await device.config_read_word(at + OFFSET), await device.config_read_word(at + STRIDE)
    await device.config_write_dword(at + PAGE_SIZE, 1)
    await device.config_write_word(at + NUM_VFS, count)
    sizes, where, bases = {}, await open_window(device, 0x200000), {}
    for bar in (0, 2, 4):
        await device.config_write_dword(at + BARS + 4 * bar, 0xFFFFFFFF)
        found = await device.config_read_dword(at + BARS + 4 * bar)
        if found:
            assert found & 15 == 4, "64 bit"
            sizes[bar] = (~found & 0xFFFFFFFF | 15) + 1
    for bar, size in sorted(sizes.items(), key=lambda item: -item[1]):
        bases[bar] = where
        await device.config_write_dword(at + BARS + 4 * bar, where)
        await device.config_write_dword(at + BARS + 4 * bar + 4, where >> 32)
        where += size * count
    await switch(device, True)
    return [await virtual(device, bases, sizes, first, stride, index) for index in range(count)]


async def switch(device, on):
    """VF Enable, and memory space of virtual functions."""
    at = device.get_capability_offset(PciExtCapId.SRIOV)
    await device.config_write_word(at + CONTROL, ENABLE | MEMORY if on else 0)


async def virtual(device, bases, sizes, first, stride, index):
    """The host's view of one: its routing id is that of function 0 and an offset."""
    vf = PciDevice(device.bus)
    vf.pcie_id = PcieId.from_int(int(device.pcie_id) + first + stride * index)
    await vf.walk_capabilities()
    for bar, size in sizes.items():
        vf.bar_size[bar], vf.bar_addr[bar] = size, bases[bar] + size * index
        vf.bar_window[bar] = device.rc.mem_address_space.create_window(vf.bar_addr[bar], size)
    return vf


async def reset(function):
    """A function level reset, of any function."""
    control = await function.capability_read_word(PciCapId.EXP, 8)
    await function.capability_write_word(PciCapId.EXP, 8, control | 0x8000)
