// The Verilated card behind C: see card.h.

#include "card.h"

#include <memory>

#include "Vcard.h"
#include "Vcard___024root.h"
#include "verilated.h"
#if VM_COVERAGE
#include "verilated_cov.h"
#endif
#if VM_TRACE
#include "verilated_fst_c.h"
#endif

namespace {

// Verilator makes a port of up to 64 bits a number, and a wider one an array of words.
template <typename Pin>
void drive(Pin &pin, const void *from) {
    memcpy(&pin, from, sizeof pin);
}

template <typename Pin>
void sample(const Pin &pin, void *to) {
    memcpy(to, &pin, sizeof pin);
}

// Bits of a PCS's state and counts (pcs_pkg).
constexpr unsigned PCS_STS_W = 4, PCS_INC_W = 19;

}  // namespace

struct pollux_card {
    VerilatedContext context;
    std::unique_ptr<Vcard> top;
#if VM_TRACE
    std::unique_ptr<VerilatedFstC> trace;
#endif
};

// Names one stream's signals in the model and in a structure.
#define DRIVE_BEAT(name)                                     \
    card->top->hif_##name##_valid = in->name.valid;          \
    card->top->hif_##name##_sop = in->name.sop;              \
    card->top->hif_##name##_eop = in->name.eop;              \
    drive(card->top->hif_##name##_header, in->name.header);  \
    drive(card->top->hif_##name##_data, in->name.data)

#define SAMPLE_BEAT(name)                                    \
    out->name.valid = card->top->hif_##name##_valid;         \
    out->name.sop = card->top->hif_##name##_sop;             \
    out->name.eop = card->top->hif_##name##_eop;             \
    sample(card->top->hif_##name##_header, out->name.header); \
    sample(card->top->hif_##name##_data, out->name.data)

extern "C" {

pollux_card *pollux_card_new(uint32_t seed) {
    auto card = std::make_unique<pollux_card>();
    Verilated::threadContextp(&card->context);
    // What `--x-assign unique` and `--x-initial unique` left open is random; a seed of 0 is the clock's.
    card->context.randReset(2);
    card->context.randSeed(static_cast<int>(seed % 0x7fffffff + 1));
#if VM_TRACE
    card->context.traceEverOn(true);
#endif
    card->top = std::make_unique<Vcard>(&card->context, "card");
    card->top->eval();
    return card.release();
}

void pollux_card_free(pollux_card *card) {
#if VM_TRACE
    if (card->trace) card->trace->close();
#endif
    card->top->final();
    delete card;
}

void pollux_card_core_in(pollux_card *card, const pollux_core_in *in) {
    DRIVE_BEAT(rx_cpl);
    DRIVE_BEAT(rx_req);
    card->top->hif_wr_req_ready = in->wr_req_ready;
    card->top->hif_rd_req_ready = in->rd_req_ready;
    card->top->hif_tx_cpl_ready = in->tx_cpl_ready;
    card->top->cfg_max_payload = in->max_payload;
    card->top->cfg_max_read = in->max_read;
    card->top->cfg_bus_master = in->bus_master;
    card->top->cfg_msix_enable = in->msix_enable;
    card->top->cfg_msix_mask = in->msix_mask;
    card->top->cfg_flr = in->flr;
    card->top->rst_core = in->reset;
}

void pollux_card_net_in(pollux_card *card, const pollux_net_in *in) {
    drive(card->top->xgmii_rxd, in->data);
    drive(card->top->xgmii_rxc, in->control);
    card->top->ttc_clock = in->ttc_clock;
    card->top->ttc_start = in->ttc_start;
    card->top->ttc_end = in->ttc_end;
    card->top->ttc_trigger = in->ttc_trigger;
    card->top->rst_net = in->reset;
    uint32_t status = 0, inc[PCS_INC_W * POLLUX_PORTS / 32 + 1] = {};
    for (unsigned port = 0; port < POLLUX_PORTS; port++) {
        status |= in->pcs_status[port] << PCS_STS_W * port;
        uint64_t at = PCS_INC_W * port, part = uint64_t{in->pcs_inc[port]} << at % 32;
        inc[at / 32] |= static_cast<uint32_t>(part);
        if (part >> 32) inc[at / 32 + 1] |= static_cast<uint32_t>(part >> 32);
    }
    card->top->sts_pcs = status;
    static_assert(sizeof card->top->inc_pcs <= sizeof inc);
    drive(card->top->inc_pcs, inc);
}

void pollux_card_clk_core(pollux_card *card, int level) { card->top->clk_core = level; }

void pollux_card_clk_net(pollux_card *card, int level) { card->top->clk_net = level; }

void pollux_card_eval(pollux_card *card, uint64_t ps) {
    Verilated::threadContextp(&card->context);
    card->context.time(ps);
    card->top->eval();
#if VM_TRACE
    if (card->trace) card->trace->dump(ps);
#endif
}

void pollux_card_core_out(const pollux_card *card, pollux_core_out *out) {
    SAMPLE_BEAT(wr_req);
    SAMPLE_BEAT(tx_cpl);
    out->rd_req.valid = card->top->hif_rd_req_valid;
    out->rd_req.sop = out->rd_req.eop = out->rd_req.valid;
    sample(card->top->hif_rd_req_header, out->rd_req.header);
    out->rx_cpl_ready = card->top->hif_rx_cpl_ready;
    out->rx_req_ready = card->top->hif_rx_req_ready;
    out->flr_done = card->top->flr_done;
}

void pollux_card_net_out(const pollux_card *card, pollux_net_out *out) {
    sample(card->top->xgmii_txd, out->data);
    sample(card->top->xgmii_txc, out->control);
    out->prbs31_tx = card->top->cfg_prbs31_tx;
    out->prbs31_rx = card->top->cfg_prbs31_rx;
}

// Signals of the card and of a port, and whether a word goes over at a handshake.
#define CARD(name) (card->top->rootp->plx_card__DOT__##name)
#define PORT(port, name) (CARD(g_port__BRA__##port##__KET____DOT__port__DOT__##name))
#define BIT(port, name) (CARD(name) >> (port) & 1)
#define TAKEN(port, name) (PORT(port, name##_valid) && PORT(port, name##_ready))
#define GRANTED(port, name) (BIT(port, name##_valid) && BIT(port, name##_ready))
// Ports of XGMII are a vector of words: 2 of 32 bits each port, and 8 control bits.
#define START(port, lane, way)                                                              \
    (CARD(mac_##way##d)[2 * (port) + (lane) / 4] % 256 == 0xfb && CARD(mac_##way##c) >> (8 * (port) + (lane)) & 1)
#define PROBE(port)                                                                         \
    probes[port] = (START(port, 0, rx) ? POLLUX_PROBE_RX_START : 0)                         \
        | (PORT(port, rx_valid) ? POLLUX_PROBE_RX_WORD : 0)                                 \
        | (PORT(port, p_valid) ? POLLUX_PROBE_PAYLOAD : 0)                                  \
        | (TAKEN(port, s) ? POLLUX_PROBE_SENT : 0)                                          \
        | (PORT(port, tx_valid) ? POLLUX_PROBE_TX_OFFER : 0)                                \
        | (TAKEN(port, tx) ? POLLUX_PROBE_TX_WORD : 0)                                      \
        | (START(port, 0, tx) || START(port, 4, tx) ? POLLUX_PROBE_TX_START : 0)            \
        | (TAKEN(port, f) ? POLLUX_PROBE_FETCHED : 0)                                       \
        | (PORT(port, d_valid) ? POLLUX_PROBE_EXPANDED : 0)                                 \
        | (GRANTED(port, select) ? POLLUX_PROBE_SELECT : 0)                                 \
        | (BIT(port, answer_valid) ? POLLUX_PROBE_PLACE : 0)                                \
        | (BIT(port, xlate_accepted) ? POLLUX_PROBE_LOOKUP : 0)                                \
        | (BIT(port, bus_valid) ? POLLUX_PROBE_BUS : 0)                                     \
        | (GRANTED(port, desc) ? POLLUX_PROBE_DESC : 0)

void pollux_card_probe(const pollux_card *card, uint32_t probes[POLLUX_PORTS]) {
    PROBE(0);
    PROBE(1);
    PROBE(2);
    PROBE(3);
}

#define RX_FREE(port) PORT(port, rx_fifo__DOT__free)

void pollux_card_rx_free(const pollux_card *card, uint32_t words[POLLUX_PORTS]) {
    words[0] = RX_FREE(0);
    words[1] = RX_FREE(1);
    words[2] = RX_FREE(2);
    words[3] = RX_FREE(3);
}

void pollux_card_tx_free(const pollux_card *card, uint32_t words[POLLUX_PORTS]) {
    words[0] = PORT(0, tx_free);
    words[1] = PORT(1, tx_free);
    words[2] = PORT(2, tx_free);
    words[3] = PORT(3, tx_free);
}

int pollux_card_trace(pollux_card *card, const char *file) {
#if VM_TRACE
    card->trace = std::make_unique<VerilatedFstC>();
    card->top->trace(card->trace.get(), 99);
    card->trace->set_time_unit("1ps");
    card->trace->set_time_resolution("1ps");
    card->trace->open(file);
    return card->trace->isOpen();
#else
    (void)card;
    (void)file;
    return 0;
#endif
}

int pollux_card_coverage(pollux_card *card, const char *file) {
#if VM_COVERAGE
    card->context.coveragep()->write(file);
    return 1;
#else
    (void)card;
    (void)file;
    return 0;
#endif
}

}  // extern "C"
