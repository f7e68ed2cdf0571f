/* Timed loops over memory, rings, parsing and sums. See timed.h. */
#include "timed.h"
#include "constant_burst.h"

static __rte_always_inline uint64_t
mempool_loop(struct rte_mempool *pool, struct rte_mempool_cache *cache, uint64_t turns,
	     const unsigned burst)
{
	void *objects[MAX_BURST] __rte_cache_aligned;
	uint64_t start = rte_rdtsc_precise();
	for (uint64_t i = 0; i < turns; i++) {
		if (rte_mempool_generic_get(pool, objects, burst, cache) != 0)
			return 0;
		SEEN(objects);
		rte_mempool_generic_put(pool, objects, burst, cache);
	}
	return rte_rdtsc_precise() - start;
}

uint64_t
timed_mempool(struct rte_mempool *pool, struct rte_mempool_cache *cache, unsigned burst,
	      uint64_t turns)
{
	WITH_CONSTANT_BURST(burst, mempool_loop, pool, cache, turns);
}

static __rte_always_inline int
mbuf_take(struct rte_mempool *pool, struct rte_mbuf **frames, const unsigned burst)
{
	if (burst == 1)
		return (frames[0] = rte_pktmbuf_alloc(pool)) == NULL;
	return rte_pktmbuf_alloc_bulk(pool, frames, burst);
}

static __rte_always_inline void
mbuf_give(struct rte_mbuf **frames, const unsigned burst)
{
	if (burst == 1)
		rte_pktmbuf_free(frames[0]);
	else
		rte_pktmbuf_free_bulk(frames, burst);
}

static __rte_always_inline uint64_t
mbuf_loop(struct rte_mempool *pool, uint64_t turns, const unsigned burst)
{
	struct rte_mbuf *frames[MAX_BURST];
	uint64_t start = rte_rdtsc_precise();
	for (uint64_t i = 0; i < turns; i++) {
		if (mbuf_take(pool, frames, burst) != 0)
			return 0;
		SEEN(frames);
		mbuf_give(frames, burst);
	}
	return rte_rdtsc_precise() - start;
}

uint64_t
timed_mbuf(struct rte_mempool *pool, unsigned burst, uint64_t turns)
{
	WITH_CONSTANT_BURST(burst, mbuf_loop, pool, turns);
}

static __rte_always_inline uint64_t
mbuf_live_loop(struct rte_mempool *pool, struct rte_mbuf **live, unsigned count, uint64_t turns,
	       const unsigned burst)
{
	unsigned at = 0;
	uint64_t start = rte_rdtsc_precise();
	for (uint64_t i = 0; i < turns; i++) {
		mbuf_give(&live[at], burst);
		if (mbuf_take(pool, &live[at], burst) != 0)
			return 0;
		SEEN(live);
		at += burst;
		if (at == count)
			at = 0;
	}
	return rte_rdtsc_precise() - start;
}

uint64_t
timed_mbuf_live(struct rte_mempool *pool, struct rte_mbuf **live, unsigned count, unsigned burst,
		uint64_t turns)
{
	WITH_CONSTANT_BURST(burst, mbuf_live_loop, pool, live, count, turns);
}

#define RING_LOOP(name, enqueue, dequeue)                                                    \
	static __rte_always_inline uint64_t                                                  \
	name##_loop(struct rte_ring *ring, uint64_t turns, const unsigned burst)             \
	{                                                                                    \
		void *objects[MAX_BURST] = { 0 };                                            \
		uint64_t start = rte_rdtsc_precise();                                        \
		for (uint64_t i = 0; i < turns; i++) {                                       \
			SEEN(objects);                                                       \
			if (enqueue(ring, objects, burst, NULL) != burst)                    \
				return 0;                                                    \
			if (dequeue(ring, objects, burst, NULL) != burst)                    \
				return 0;                                                    \
		}                                                                            \
		return rte_rdtsc_precise() - start;                                          \
	}                                                                                    \
                                                                                             \
	uint64_t                                                                             \
	timed_##name(struct rte_ring *ring, unsigned burst, uint64_t turns)                  \
	{                                                                                    \
		WITH_CONSTANT_BURST(burst, name##_loop, ring, turns);                        \
	}

RING_LOOP(ring_spsc, rte_ring_sp_enqueue_bulk, rte_ring_sc_dequeue_bulk)
RING_LOOP(ring_mpmc, rte_ring_mp_enqueue_bulk, rte_ring_mc_dequeue_bulk)

/*
 * Between two looks at a ring that is empty or full: a poll loop has other things to do in between,
 * and a side that looks all the time takes the line of the other's index away from it.
 */
static __rte_always_inline void
stand_off(void)
{
	for (int i = 0; i < 8; i++)
		rte_pause();
}

#define SIDE_LOOP(name, move)                                                                \
	static __rte_always_inline uint64_t                                                  \
	name##_loop(struct rte_ring *ring, uint64_t turns, const unsigned burst)             \
	{                                                                                    \
		void *objects[MAX_BURST] = { 0 };                                            \
		uint64_t start = rte_rdtsc_precise();                                        \
		for (uint64_t i = 0; i < turns; i++) {                                       \
			SEEN(objects);                                                       \
			while (move(ring, objects, burst, NULL) != burst)                    \
				stand_off();                                                 \
		}                                                                            \
		return rte_rdtsc_precise() - start;                                          \
	}                                                                                    \
                                                                                             \
	uint64_t                                                                             \
	timed_##name(struct rte_ring *ring, unsigned burst, uint64_t turns)                  \
	{                                                                                    \
		WITH_CONSTANT_BURST(burst, name##_loop, ring, turns);                        \
	}

SIDE_LOOP(ring_produce, rte_ring_sp_enqueue_bulk)
SIDE_LOOP(ring_consume, rte_ring_sc_dequeue_bulk)
SIDE_LOOP(ring_mp_produce, rte_ring_mp_enqueue_bulk)
SIDE_LOOP(ring_mc_consume, rte_ring_mc_dequeue_bulk)

/* The layers that a demux of UDP over IPv4 asks for; tunnels are not looked into. */
#define LAYERS (RTE_PTYPE_L2_MASK | RTE_PTYPE_L3_MASK | RTE_PTYPE_L4_MASK)

/* The key of a frame and the bytes of its payload; 0 if it is not UDP over IPv4. */
static __rte_always_inline int
stream_key_of(const struct rte_mbuf *frame, struct stream_key *key, uint64_t *bytes)
{
	struct rte_net_hdr_lens lens;
	uint32_t type = rte_net_get_ptype(frame, &lens, LAYERS);
	if (!RTE_ETH_IS_IPV4_HDR(type) || (type & RTE_PTYPE_L4_MASK) != RTE_PTYPE_L4_UDP)
		return 0;
	const struct rte_ipv4_hdr *ip =
		rte_pktmbuf_mtod_offset(frame, const struct rte_ipv4_hdr *, lens.l2_len);
	const struct rte_udp_hdr *udp =
		(const struct rte_udp_hdr *)((const uint8_t *)ip + lens.l3_len);
	*key = (struct stream_key){ .address = ip->dst_addr, .port = udp->dst_port };
	*bytes = rte_be_to_cpu_16(udp->dgram_len) - sizeof(*udp);
	return 1;
}

static __rte_always_inline void
count_in(struct stream_count *streams, void *data, uint64_t bytes)
{
	struct stream_count *stream = &streams[(uintptr_t)data];
	stream->packets++;
	stream->bytes += bytes;
}

static __rte_always_inline uint64_t
demux_loop(const struct rte_hash *hash, struct rte_mbuf **frames, unsigned count,
	   struct stream_count *streams, uint64_t turns, const unsigned burst)
{
	/* rte_hash takes no more than RTE_HASH_LOOKUP_BULK_MAX keys at once. */
	const unsigned step = RTE_MIN(burst, (unsigned)RTE_HASH_LOOKUP_BULK_MAX);
	struct stream_key keys[RTE_HASH_LOOKUP_BULK_MAX];
	const void *key_at[RTE_HASH_LOOKUP_BULK_MAX];
	uint64_t bytes[RTE_HASH_LOOKUP_BULK_MAX];
	void *data[RTE_HASH_LOOKUP_BULK_MAX];
	unsigned at = 0;

	for (unsigned i = 0; i < step; i++)
		key_at[i] = &keys[i];
	uint64_t start = rte_rdtsc_precise();
	for (uint64_t turn = 0; turn < turns; turn++) {
		for (unsigned from = 0; from < burst; from += step) {
			struct rte_mbuf **part = &frames[at + from];
			for (unsigned i = 0; i < step; i++)
				if (!stream_key_of(part[i], &keys[i], &bytes[i]))
					return 0;
			if (burst == 1) {
				if (rte_hash_lookup_data(hash, &keys[0], &data[0]) < 0)
					return 0;
				count_in(streams, data[0], bytes[0]);
				continue;
			}
			uint64_t hits = 0;
			if (rte_hash_lookup_bulk_data(hash, key_at, step, &hits, data) != (int)step)
				return 0;
			for (unsigned i = 0; i < step; i++)
				count_in(streams, data[i], bytes[i]);
		}
		at += burst;
		if (at == count)
			at = 0;
	}
	return rte_rdtsc_precise() - start;
}

uint64_t
timed_demux(const struct rte_hash *hash, struct rte_mbuf **frames, unsigned count,
	    struct stream_count *streams, unsigned burst, uint64_t turns)
{
	WITH_CONSTANT_BURST(burst, demux_loop, hash, frames, count, streams, turns);
}

static __rte_always_inline uint64_t
checksum_loop(const uint8_t *blocks, unsigned count, size_t len, uint16_t *sum, uint64_t turns,
	      const unsigned burst)
{
	unsigned at = 0;
	uint64_t start = rte_rdtsc_precise();
	for (uint64_t turn = 0; turn < turns; turn++) {
		for (unsigned i = 0; i < burst; i++)
			*sum ^= (uint16_t)~rte_raw_cksum(blocks + (at + i) * len, len);
		SEEN(sum);
		at += burst;
		if (at == count)
			at = 0;
	}
	return rte_rdtsc_precise() - start;
}

uint64_t
timed_checksum(const uint8_t *blocks, unsigned count, size_t len, uint16_t *sum, unsigned burst,
	       uint64_t turns)
{
	WITH_CONSTANT_BURST(burst, checksum_loop, blocks, count, len, sum, turns);
}
