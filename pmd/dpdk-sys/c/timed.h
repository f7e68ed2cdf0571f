/*
 * Whole loops over one DPDK operation. `burst` is 1, 8, 32 or 128; each loop is compiled once for
 * each of them, with the burst as a constant. Every function runs `turns` turns and returns the TSC
 * cycles that they took all together, or 0 if a turn moved fewer elements than a full burst.
 */
#ifndef POLLUX_TIMED_H
#define POLLUX_TIMED_H

#include "dpdk.h"

/* get_bulk + put_bulk of raw objects; `cache` as rte_mempool_default_cache() gives it, or NULL. */
uint64_t timed_mempool(struct rte_mempool *pool, struct rte_mempool_cache *cache, unsigned burst,
		       uint64_t turns);

/* rte_pktmbuf_alloc_bulk + rte_pktmbuf_free_bulk; for single buffers, rte_pktmbuf_alloc + free. */
uint64_t timed_mbuf(struct rte_mempool *pool, unsigned burst, uint64_t turns);

/* As timed_mbuf, but a turn frees the oldest burst of `count` live buffers and replaces it. */
uint64_t timed_mbuf_live(struct rte_mempool *pool, struct rte_mbuf **live, unsigned count,
			 unsigned burst, uint64_t turns);

/* Bulk enqueue + dequeue on this core. */
uint64_t timed_ring_spsc(struct rte_ring *ring, unsigned burst, uint64_t turns);
uint64_t timed_ring_mpmc(struct rte_ring *ring, unsigned burst, uint64_t turns);

/* The two sides of a ring between two cores: for one producer and one consumer, for many. */
uint64_t timed_ring_produce(struct rte_ring *ring, unsigned burst, uint64_t turns);
uint64_t timed_ring_consume(struct rte_ring *ring, unsigned burst, uint64_t turns);
uint64_t timed_ring_mp_produce(struct rte_ring *ring, unsigned burst, uint64_t turns);
uint64_t timed_ring_mc_consume(struct rte_ring *ring, unsigned burst, uint64_t turns);

/* rte_eth_rx_burst + rte_eth_tx_burst on one port that frees what is sent. */
uint64_t timed_rx_tx(uint16_t port, unsigned burst, uint64_t turns);

/* rte_eth_tx_burst + rte_eth_rx_burst of the same buffers on a port that loops back. */
uint64_t timed_tx_rx(uint16_t port, struct rte_mbuf **frames, unsigned burst, uint64_t turns);

/* testpmd's io loop over two ports: a turn forwards one burst each way. */
uint64_t timed_io_forward(uint16_t a, uint16_t b, unsigned burst, uint64_t turns);

struct stream_count {
	uint64_t packets;
	uint64_t bytes;
};

/* Key of the hash: 16 bytes, for which rte_hash has a comparison of its own. */
struct stream_key {
	uint32_t address;
	uint16_t port;
	uint16_t zero[5];
};

/*
 * rte_net_get_ptype, destination address and port, lookup in `hash`, packets and bytes of the
 * stream counted. A turn takes the next `burst` of the `count` frames.
 */
uint64_t timed_demux(const struct rte_hash *hash, struct rte_mbuf **frames, unsigned count,
		     struct stream_count *streams, unsigned burst, uint64_t turns);

/* rte_raw_cksum over `len` bytes of each of the next `burst` of `count` blocks. */
uint64_t timed_checksum(const uint8_t *blocks, unsigned count, size_t len, uint16_t *sum,
			unsigned burst, uint64_t turns);

#endif
