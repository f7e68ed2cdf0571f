/* The headers of DPDK that are bound. */
#ifndef POLLUX_DPDK_H
#define POLLUX_DPDK_H

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_net.h>
#include <rte_ring.h>
#include <rte_udp.h>

/* `rte_errno` is a macro around a thread-local variable. */
static inline int
dpdk_errno(void)
{
	return rte_errno;
}

#endif
