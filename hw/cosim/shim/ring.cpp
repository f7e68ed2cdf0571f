// The Verilated plx_evb_ring behind C: see ring.h.

#include "ring.h"

#include <cstring>
#include <memory>

#include "Vring.h"
#include "Vring___024root.h"
#include "verilated.h"

struct pollux_ring {
    VerilatedContext context;
    std::unique_ptr<Vring> top;
};

namespace {

constexpr int flow_bits = 234;

// One message of a vector of them: Verilator has such vectors as words of 32 bits.
template <typename Pins>
void message(const Pins &pins, int index, pollux_flow &to) {
    const int first = index * flow_bits, words = (flow_bits + 31) / 32;
    for (int n = 0; n < words; ++n) {
        const int at = first + 32 * n, word = at / 32, shift = at % 32;
        const int last = (first + flow_bits - 1) / 32;
        uint64_t both = pins[word];
        if (word < last) both |= uint64_t{pins[word + 1]} << 32;
        to.words[n] = static_cast<uint32_t>(both >> shift);
    }
    to.words[words - 1] &= (1u << (flow_bits % 32)) - 1;
}

}  // namespace

#define ENGINE(name) (top.rootp->plx_evb_ring__DOT__scheduler__DOT__engine__DOT__##name)
#define FEEDER(n, name) (top.rootp->plx_evb_ring__DOT__g_feeder__BRA__##n##__KET____DOT__feeder__DOT__##name)
#define OPERATIONS(n)                                      \
    out->takes |= (FEEDER(n, flow_accepted) ? 1 : 0) << n; \
    out->stores |= (FEEDER(n, stores) ? 1 : 0) << n;       \
    out->ends |= (FEEDER(n, ends) ? 1 : 0) << n

extern "C" {

pollux_ring *pollux_ring_new(uint32_t seed) {
    auto ring = std::make_unique<pollux_ring>();
    Verilated::threadContextp(&ring->context);
    ring->context.randReset(2);
    ring->context.randSeed(static_cast<int>(seed % 0x7fffffff + 1));
    ring->top = std::make_unique<Vring>(&ring->context, "ring");
    ring->top->eval();
    return ring.release();
}

void pollux_ring_free(pollux_ring *ring) {
    ring->top->final();
    delete ring;
}

void pollux_ring_cycle(pollux_ring *ring, const pollux_ring_in *in, pollux_ring_out *out) {
    Verilated::threadContextp(&ring->context);
    Vring &top = *ring->top;
    top.rst = in->reset;
    top.trigger = in->trigger;
    top.s_feedback_valid = in->feedback_valid;
    memcpy(&top.s_feedback_data, in->feedback, sizeof in->feedback);
    top.s_decided_valid = in->decided_valid;
    top.s_decided_data = in->decided;
    top.cfg_slot = in->slot;
    top.cfg_bypass_above = in->bypass_above;
    top.w_table = in->table_valid;
    top.w_descriptor = in->descriptor;
    top.w_address = in->address;
    top.s_store_valid = in->store_valid;
    memcpy(&top.s_store_bytes, in->store_bytes, sizeof in->store_bytes);
    top.s_done = in->done;
    top.fault_lose = in->fault_lose;
    top.fault_flip = in->fault_flip;
    top.fault_bit = in->fault_bit;
    top.s_axil_awvalid = top.s_axil_wvalid = in->write;
    top.s_axil_awaddr = top.s_axil_araddr = in->register_address;
    top.s_axil_wdata = in->write_data;
    top.s_axil_wstrb = 15;
    top.s_axil_arvalid = in->read;
    top.s_axil_bready = top.s_axil_rready = 1;
    top.clk = 0;
    top.eval();

    out->scheduler = (ENGINE(go_trigger) ? POLLUX_OP_TRIGGER : 0) | (ENGINE(go_change) ? POLLUX_OP_CHANGE : 0)
        | (ENGINE(go_command) ? POLLUX_OP_COMMAND : 0) | (ENGINE(go_decide) ? POLLUX_OP_DECIDE : 0)
        | (ENGINE(go_flow) ? POLLUX_OP_FLOW : 0) | (ENGINE(go_feedback) ? POLLUX_OP_FEEDBACK : 0)
        | (ENGINE(go_expire) ? POLLUX_OP_EXPIRE : 0) | (ENGINE(go_release) ? POLLUX_OP_RELEASE : 0)
        | (ENGINE(ready) ? POLLUX_READY : 0) | (ENGINE(busy) ? POLLUX_BUSY : 0)
        | (ENGINE(settled) ? POLLUX_QUIET : 0) | (top.s_axil_awready && in->write ? POLLUX_WRITTEN : 0)
        | (top.s_axil_rvalid ? POLLUX_ANSWER : 0);
    out->read_data = top.s_axil_rdata;
    out->takes = out->stores = out->ends = 0;
    OPERATIONS(0);
    OPERATIONS(1);
    OPERATIONS(2);
    OPERATIONS(3);
    OPERATIONS(4);
    OPERATIONS(5);
    OPERATIONS(6);
    OPERATIONS(7);
    out->offered = top.rootp->plx_evb_ring__DOT__out_valid;
    out->sent = out->offered & top.rootp->plx_evb_ring__DOT__out_ready;
    for (int n = 0; n <= POLLUX_FEEDERS; ++n) {
        if (out->sent >> n & 1) message(top.rootp->plx_evb_ring__DOT__out_data, n, out->flow[n]);
    }
    out->transfers = top.m_transfer_valid;
    for (int n = 0; n < POLLUX_FEEDERS; ++n) {
        if (!(out->transfers >> n & 1)) continue;
        pollux_transfer &transfer = out->transfer[n];
        transfer.address = top.m_transfer_address[2 * n] | uint64_t{top.m_transfer_address[2 * n + 1]} << 32;
        transfer.number = top.m_transfer_number[n];
        transfer.descriptor = static_cast<uint16_t>(top.m_transfer_descriptor[n / 2] >> 16 * (n % 2));
        const int at = 17 * n;
        uint64_t both = top.m_transfer_bytes[at / 32];
        if (at / 32 < (17 * POLLUX_FEEDERS - 1) / 32) both |= uint64_t{top.m_transfer_bytes[at / 32 + 1]} << 32;
        transfer.bytes = both >> at % 32 & 0x1ffff;
        transfer.absent = top.m_transfer_absent >> n & 1;
        transfer.oversize = top.m_transfer_oversize >> n & 1;
    }
    top.clk = 1;
    top.eval();
}

}  // extern "C"
