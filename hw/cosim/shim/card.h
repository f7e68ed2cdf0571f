/* The C interface of the Verilated card. Only these structures cross the boundary; the same
 * structures are in src/verilated/model.rs. One pair has all of the host bus and of `clk_core`, the
 * other all of the wires and of `clk_net`, so that an edge of a clock transfers one pair. */

#ifndef POLLUX_CARD_H
#define POLLUX_CARD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { POLLUX_PORTS = 4 };

/* One cycle of a stream of the host bus, without `ready`. */
struct pollux_beat {
    uint32_t header[4];
    uint32_t data[8];
    uint8_t valid, sop, eop, unused;
};

/* Into the card, on clk_core. */
struct pollux_core_in {
    struct pollux_beat rx_cpl, rx_req;
    uint8_t wr_req_ready, rd_req_ready, tx_cpl_ready;
    uint8_t max_payload, max_read, bus_master, msix_enable, msix_mask;
    uint8_t reset, flr, unused[2];
};

/* Out of the card, on clk_core. */
struct pollux_core_out {
    struct pollux_beat wr_req, rd_req, tx_cpl;
    uint8_t rx_cpl_ready, rx_req_ready, flr_done, unused;
};

/* Into the card, on clk_net; the timing inputs belong to no clock. */
struct pollux_net_in {
    uint64_t data[POLLUX_PORTS];
    uint8_t control[POLLUX_PORTS];
    uint8_t ttc_clock, ttc_start, ttc_end, ttc_trigger;
    uint8_t reset, unused[3];
    /* State and counts of each port's PCS (pcs_pkg); 0 without one. */
    uint32_t pcs_inc[POLLUX_PORTS];
    uint8_t pcs_status[POLLUX_PORTS];
};

/* Out of the card, on clk_net. */
struct pollux_net_out {
    uint64_t data[POLLUX_PORTS];
    uint8_t control[POLLUX_PORTS];
    /* The PRBS31 test pattern, a bit for each port's PCS: to send, to receive. */
    uint8_t prbs31_tx, prbs31_rx, unused[2];
};

/* Events of a port in this cycle, by which latencies are measured (card.vlt): of clk_net, then of
 * clk_core. A word that is taken has been accepted by its receiver. */
enum {
    POLLUX_PROBE_RX_START = 1 << 0, /* a start in lane 0 at XGMII, behind the loop */
    POLLUX_PROBE_RX_WORD = 1 << 1,  /* a word of mac_rx */
    POLLUX_PROBE_PAYLOAD = 1 << 2,  /* a word of udp_rx */
    POLLUX_PROBE_SENT = 1 << 3,     /* a word taken by udp_tx */
    POLLUX_PROBE_TX_OFFER = 1 << 4, /* a word of tx_mux */
    POLLUX_PROBE_TX_WORD = 1 << 5,  /* the same, taken by mac_tx */
    POLLUX_PROBE_TX_START = 1 << 6, /* a start in lane 0 or 4 at XGMII */
    POLLUX_PROBE_FETCHED = 1 << 8,  /* a word taken by decompress */
    POLLUX_PROBE_EXPANDED = 1 << 9, /* a word of decompress */
    POLLUX_PROBE_SELECT = 1 << 10,  /* a request taken by clop */
    POLLUX_PROBE_PLACE = 1 << 11,   /* its answer */
    POLLUX_PROBE_LOOKUP = 1 << 12,  /* a chunk looked up by xlate */
    POLLUX_PROBE_BUS = 1 << 13,     /* its answer */
    POLLUX_PROBE_DESC = 1 << 14     /* a descriptor taken by wr_mux */
};

struct pollux_card;

/* A card in which everything without a reset has an initial value by the seed. */
struct pollux_card *pollux_card_new(uint32_t seed);
void pollux_card_free(struct pollux_card *card);

/* Sets inputs; takes effect with the next `eval`. */
void pollux_card_core_in(struct pollux_card *card, const struct pollux_core_in *in);
void pollux_card_net_in(struct pollux_card *card, const struct pollux_net_in *in);
void pollux_card_clk_core(struct pollux_card *card, int level);
void pollux_card_clk_net(struct pollux_card *card, int level);

/* Settles the card at a time, in picoseconds, and adds to the waveform if there is one. */
void pollux_card_eval(struct pollux_card *card, uint64_t ps);

/* Reads outputs, as they were settled. */
void pollux_card_core_out(const struct pollux_card *card, struct pollux_core_out *out);
void pollux_card_net_out(const struct pollux_card *card, struct pollux_net_out *out);

/* What each port does, as it was settled. */
void pollux_card_probe(const struct pollux_card *card, uint32_t probes[POLLUX_PORTS]);

/* Free words of 8 bytes in the receive fifo of each port, as it was settled. */
void pollux_card_rx_free(const struct pollux_card *card, uint32_t words[POLLUX_PORTS]);

/* Free words of 32 bytes in the transmit fifo of each port. */
void pollux_card_tx_free(const struct pollux_card *card, uint32_t words[POLLUX_PORTS]);

/* Writes a waveform from now on, until the card is freed; 0 where this build cannot. */
int pollux_card_trace(struct pollux_card *card, const char *file);

/* Writes what was covered so far; 0 where this build does not count it. */
int pollux_card_coverage(struct pollux_card *card, const char *file);

#ifdef __cplusplus
}
#endif

#endif
