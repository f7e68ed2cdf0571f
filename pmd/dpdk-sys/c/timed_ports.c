/* Timed loops over ports. See timed.h. */
#include "timed.h"
#include "constant_burst.h"

static __rte_always_inline uint64_t
rx_tx_loop(uint16_t port, uint64_t turns, const unsigned burst)
{
	struct rte_mbuf *frames[MAX_BURST];
	uint64_t start = rte_rdtsc_precise();
	for (uint64_t i = 0; i < turns; i++) {
		if (rte_eth_rx_burst(port, 0, frames, burst) != burst)
			return 0;
		if (rte_eth_tx_burst(port, 0, frames, burst) != burst)
			return 0;
	}
	return rte_rdtsc_precise() - start;
}

uint64_t
timed_rx_tx(uint16_t port, unsigned burst, uint64_t turns)
{
	WITH_CONSTANT_BURST(burst, rx_tx_loop, port, turns);
}

static __rte_always_inline uint64_t
tx_rx_loop(uint16_t port, struct rte_mbuf **frames, uint64_t turns, const unsigned burst)
{
	uint64_t start = rte_rdtsc_precise();
	for (uint64_t i = 0; i < turns; i++) {
		if (rte_eth_tx_burst(port, 0, frames, burst) != burst)
			return 0;
		if (rte_eth_rx_burst(port, 0, frames, burst) != burst)
			return 0;
	}
	return rte_rdtsc_precise() - start;
}

uint64_t
timed_tx_rx(uint16_t port, struct rte_mbuf **frames, unsigned burst, uint64_t turns)
{
	WITH_CONSTANT_BURST(burst, tx_rx_loop, port, frames, turns);
}

/* One direction of testpmd's pkt_burst_io_forward() with its default options. */
static __rte_always_inline uint64_t
forward(uint16_t from, uint16_t to, const unsigned burst)
{
	struct rte_mbuf *frames[MAX_BURST];
	uint16_t received = rte_eth_rx_burst(from, 0, frames, burst);
	if (unlikely(received == 0))
		return 0;
	uint16_t sent = rte_eth_tx_burst(to, 0, frames, received);
	if (unlikely(sent < received))
		rte_pktmbuf_free_bulk(&frames[sent], received - sent);
	return sent;
}

static __rte_always_inline uint64_t
io_forward_loop(uint16_t a, uint16_t b, uint64_t turns, const unsigned burst)
{
	uint64_t forwarded = 0;
	uint64_t start = rte_rdtsc_precise();
	for (uint64_t i = 0; i < turns; i++) {
		forwarded += forward(a, b, burst);
		forwarded += forward(b, a, burst);
	}
	uint64_t cycles = rte_rdtsc_precise() - start;
	return forwarded == 2 * turns * burst ? cycles : 0;
}

uint64_t
timed_io_forward(uint16_t a, uint16_t b, unsigned burst, uint64_t turns)
{
	WITH_CONSTANT_BURST(burst, io_forward_loop, a, b, turns);
}
