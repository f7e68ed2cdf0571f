/* The headers of DPDK that are bound. */
#ifndef POLLUX_DPDK_H
#define POLLUX_DPDK_H

#include <stdio.h>

#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_ip.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
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

/* Flags that DPDK defines by RTE_BIT64, which bindgen cannot evaluate. */
static const uint64_t DPDK_RX_OFFLOAD_SCATTER = RTE_ETH_RX_OFFLOAD_SCATTER;
static const uint64_t DPDK_RX_OFFLOAD_TIMESTAMP = RTE_ETH_RX_OFFLOAD_TIMESTAMP;
static const uint64_t DPDK_TX_OFFLOAD_MULTI_SEGS = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
static const uint64_t DPDK_RSS_FLOWS = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP;

/* DPDK's log goes to stdout and to syslog unless it is given a stream. `stderr` is a macro too. */
static inline int
dpdk_log_to_stderr(void)
{
	return rte_openlog_stream(stderr);
}

#endif
