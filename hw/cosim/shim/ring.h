/* The C interface of the Verilated plx_evb_ring: one call is one cycle. Only these structures cross the
 * boundary; the same structures are in src/evb/model.rs. */

#ifndef POLLUX_RING_H
#define POLLUX_RING_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { POLLUX_FEEDERS = 8 };

/* A message of the ring (FLOW in hw/docs/layouts.md), 234 bits. */
struct pollux_flow {
    uint32_t words[8];
};

/* Inputs of a cycle. Each mask has a bit for each feeder or link. */
struct pollux_ring_in {
    uint64_t decided, address;
    uint32_t feedback[4];
    uint32_t write_data;
    uint16_t register_address;
    uint16_t slot, bypass_above, descriptor;
    uint16_t store_bytes[POLLUX_FEEDERS];
    uint16_t fault_bit, fault_lose, fault_flip;
    uint8_t store_valid, done;
    uint8_t reset, trigger, feedback_valid, decided_valid, table_valid, write, read, unused;
};

enum {
    /* Operations that the scheduler begins in this cycle. */
    POLLUX_OP_TRIGGER = 1 << 0,
    POLLUX_OP_CHANGE = 1 << 1,
    POLLUX_OP_COMMAND = 1 << 2,
    POLLUX_OP_DECIDE = 1 << 3,
    POLLUX_OP_FLOW = 1 << 4,
    POLLUX_OP_FEEDBACK = 1 << 5,
    POLLUX_OP_EXPIRE = 1 << 6,
    POLLUX_OP_RELEASE = 1 << 7,
    /* Its state. */
    POLLUX_READY = 1 << 8,
    POLLUX_BUSY = 1 << 9,
    POLLUX_QUIET = 1 << 10,
    /* Register accesses. */
    POLLUX_WRITTEN = 1 << 11,
    POLLUX_ANSWER = 1 << 12
};

/* A transfer that a feeder offers. */
struct pollux_transfer {
    uint64_t address;
    uint32_t number, bytes;
    uint16_t descriptor;
    uint8_t absent, oversize;
    uint32_t unused;
};

/* What happens in a cycle, as it is settled before the edge that ends it. */
struct pollux_ring_out {
    struct pollux_transfer transfer[POLLUX_FEEDERS];
    /* Offered to link n, and accepted by it. */
    struct pollux_flow flow[POLLUX_FEEDERS + 1];
    uint32_t scheduler, read_data;
    uint16_t sent, offered;
    /* Operations of the feeders: a message is taken, data are stored, a transfer ends; transfers on offer. */
    uint8_t takes, stores, ends, transfers;
};

struct pollux_ring;

struct pollux_ring *pollux_ring_new(uint32_t seed);
void pollux_ring_free(struct pollux_ring *ring);
void pollux_ring_cycle(struct pollux_ring *ring, const struct pollux_ring_in *in, struct pollux_ring_out *out);

#ifdef __cplusplus
}
#endif

#endif
