/* The C interface of a Verilated lane of the PCS. The same structures are in src/verilated/lane.rs. */

#ifndef POLLUX_LANE_H
#define POLLUX_LANE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* XGMII to send, the reset and the test pattern, on clk_net; a received block, on the received clock. */
struct pollux_lane_in {
    uint64_t txd, rx_data;
    uint8_t txc, rx_header, reset, prbs31_tx, prbs31_rx, unused[3];
};

/* Received XGMII, the block to send, state and counts (pcs_pkg), on clk_net; the boundary is to move, on the
 * received clock. */
struct pollux_lane_out {
    uint64_t rxd, tx_data;
    uint32_t inc;
    uint8_t status, rxc, tx_header, slip;
};

struct pollux_lane;

/* A lane in which everything without a reset has an initial value by the seed. */
struct pollux_lane *pollux_lane_new(uint32_t seed);
void pollux_lane_free(struct pollux_lane *lane);

/* Sets inputs; takes effect with the next `eval`. */
void pollux_lane_in(struct pollux_lane *lane, const struct pollux_lane_in *in);
void pollux_lane_clk_net(struct pollux_lane *lane, int level);
void pollux_lane_clk_rx(struct pollux_lane *lane, int level);

/* Settles the lane at a time, in picoseconds. */
void pollux_lane_eval(struct pollux_lane *lane, uint64_t ps);

/* Reads outputs, as they were settled. */
void pollux_lane_out(const struct pollux_lane *lane, struct pollux_lane_out *out);

#ifdef __cplusplus
}
#endif

#endif
