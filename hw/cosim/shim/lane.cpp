// The Verilated lane of the PCS behind C: see lane.h.

#include "lane.h"

#include <memory>

#include "Vlane.h"
#include "verilated.h"

struct pollux_lane {
    VerilatedContext context;
    std::unique_ptr<Vlane> top;
};

extern "C" {

pollux_lane *pollux_lane_new(uint32_t seed) {
    auto lane = std::make_unique<pollux_lane>();
    Verilated::threadContextp(&lane->context);
    // As in card.cpp.
    lane->context.randReset(2);
    lane->context.randSeed(static_cast<int>(seed % 0x7fffffff + 1));
    lane->top = std::make_unique<Vlane>(&lane->context, "lane");
    lane->top->rx_signal_ok = 1;
    lane->top->eval();
    return lane.release();
}

void pollux_lane_free(pollux_lane *lane) {
    lane->top->final();
    delete lane;
}

void pollux_lane_in(pollux_lane *lane, const struct pollux_lane_in *in) {
    lane->top->xgmii_txd = in->txd;
    lane->top->xgmii_txc = in->txc;
    lane->top->rx_data = in->rx_data;
    lane->top->rx_header = in->rx_header;
    lane->top->rst_net = in->reset;
    lane->top->cfg_prbs31_tx = in->prbs31_tx;
    lane->top->cfg_prbs31_rx = in->prbs31_rx;
}

void pollux_lane_clk_net(pollux_lane *lane, int level) { lane->top->clk_net = level; }

void pollux_lane_clk_rx(pollux_lane *lane, int level) { lane->top->clk_rx_net = level; }

void pollux_lane_eval(pollux_lane *lane, uint64_t ps) {
    Verilated::threadContextp(&lane->context);
    lane->context.time(ps);
    lane->top->eval();
}

void pollux_lane_out(const pollux_lane *lane, struct pollux_lane_out *out) {
    out->rxd = lane->top->xgmii_rxd;
    out->rxc = lane->top->xgmii_rxc;
    out->tx_data = lane->top->tx_data;
    out->tx_header = lane->top->tx_header;
    out->slip = lane->top->rx_slip;
    const Vlane &top = *lane->top;
    out->status = 1 | top.sts_signal_ok << 1 | top.sts_block_lock << 2 | top.sts_hi_ber << 3;
    out->inc = top.inc_ber | top.inc_errored_blocks << 2 | top.inc_prbs31_errors << 4 | top.inc_deleted << 12 |
               top.inc_inserted << 14 | top.inc_overflow << 15 | top.inc_underflow << 17 | top.inc_tx_error << 18;
}

}  // extern "C"
