//! An ethdev: found, set up, asked, closed.

use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::ptr;

use dpdk_sys as dpdk;

use super::eal::{Eal, lock, text_of};
use crate::driver::{Link, Megabits, Statistics};
use crate::net::MacAddr;

/// A device of DPDK that is ours alone. Closed, and removed from DPDK, when dropped: not under the
/// lock of [`Eal`], which that takes.
pub(super) struct Device {
    id: u16,
    info: dpdk::rte_eth_dev_info,
}

// SAFETY: what `info` points to is static or lives as long as the device does, and is only read.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

/// The result of a call that returns 0, or an error with a minus in front.
fn done(what: &str, result: i32) -> Result<(), String> {
    if result == 0 {
        Ok(())
    } else {
        Err(format!("{what}: {}", text_of(result)))
    }
}

/// What a queue is asked for beside DPDK's defaults.
pub(super) struct Setup {
    pub(super) rx_queues: u16,
    pub(super) tx_queues: u16,
    pub(super) ring: usize,
    pub(super) rx_offloads: u64,
    pub(super) tx_offloads: u64,
    pub(super) mempool: *mut dpdk::rte_mempool,
}

impl Device {
    /// Finds a device by its devargs, has a driver take it, and makes it ours.
    pub(super) fn probe(_eal: &Eal, devargs: &str) -> Result<Self, String> {
        let text = CString::new(devargs).map_err(|error| error.to_string())?;
        // SAFETY: a C string; EAL runs.
        match unsafe { dpdk::rte_dev_probe(text.as_ptr()) } {
            0 => {}
            // Given by eal=, or found on the bus when EAL started.
            error if error == -libc::EEXIST => {}
            error => {
                return Err(format!(
                    "DPDK cannot use `{devargs}`: {}: no such device, no driver for it (a virtual \
                     device begins with its driver's name, as in net_null0; a PCI device must be \
                     bound to vfio-pci), or the driver refuses its arguments",
                    text_of(error)
                ));
            }
        }
        let mut iterator = dpdk::rte_dev_iterator::default();
        // SAFETY: a C string that outlives the iterator.
        done("rte_eth_iterator_init", unsafe {
            dpdk::rte_eth_iterator_init(&raw mut iterator, text.as_ptr())
        })?;
        let mut owner = dpdk::rte_eth_dev_owner::default();
        // SAFETY: plain results.
        done("rte_eth_dev_owner_new", unsafe {
            dpdk::rte_eth_dev_owner_new(&raw mut owner.id)
        })?;
        for (to, from) in owner.name.iter_mut().zip(b"pollux") {
            *to = *from as std::ffi::c_char;
        }
        loop {
            // SAFETY: an iterator that was set up, and has not come to its end.
            let id = unsafe { dpdk::rte_eth_iterator_next(&raw mut iterator) };
            if u32::from(id) == dpdk::RTE_MAX_ETHPORTS {
                return Err(format!(
                    "`{devargs}` is in use by another port, or is no network device"
                ));
            }
            // SAFETY: an id that DPDK gave.
            if unsafe { dpdk::rte_eth_dev_owner_set(id, &raw const owner) } == 0 {
                // SAFETY: the iterator was left before its end.
                unsafe { dpdk::rte_eth_iterator_cleanup(&raw mut iterator) };
                let mut info = dpdk::rte_eth_dev_info::default();
                // SAFETY: a device of ours.
                done("rte_eth_dev_info_get", unsafe {
                    dpdk::rte_eth_dev_info_get(id, &raw mut info)
                })?;
                return Ok(Self { id, info });
            }
        }
    }

    /// DPDK's number of the device.
    pub(super) fn id(&self) -> u16 {
        self.id
    }

    /// What it offers.
    pub(super) fn info(&self) -> &dpdk::rte_eth_dev_info {
        &self.info
    }

    /// Name of its driver, as in `net_null`.
    pub(super) fn driver(&self) -> &str {
        if self.info.driver_name.is_null() {
            return "";
        }
        // SAFETY: a static text of the driver.
        unsafe { CStr::from_ptr(self.info.driver_name) }
            .to_str()
            .unwrap_or("")
    }

    /// Its address.
    pub(super) fn mac(&self) -> Option<MacAddr> {
        let mut mac = dpdk::rte_ether_addr::default();
        // SAFETY: a device of ours; an address is 6 bytes.
        let bytes = unsafe {
            (dpdk::rte_eth_macaddr_get(self.id, &raw mut mac) == 0)
                .then(|| (&raw const mac).cast::<[u8; 6]>().read())
        };
        bytes.map(MacAddr)
    }

    /// Its MTU.
    pub(super) fn mtu(&self) -> u16 {
        let mut mtu = 0;
        // SAFETY: a device of ours.
        if unsafe { dpdk::rte_eth_dev_get_mtu(self.id, &raw mut mtu) } == 0 {
            mtu
        } else {
            1500
        }
    }

    /// Sets the MTU.
    pub(super) fn set_mtu(&self, mtu: u16) -> Result<(), String> {
        // SAFETY: a device of ours.
        done("rte_eth_dev_set_mtu", unsafe {
            dpdk::rte_eth_dev_set_mtu(self.id, mtu)
        })
    }

    /// Sets up queues, all of them with the same pool, shared out by the hash of a flow if there
    /// are several and the device can.
    pub(super) fn configure(&self, _eal: &Eal, setup: &Setup) -> Result<(), String> {
        let mut config = dpdk::rte_eth_conf::default();
        config.rxmode.mtu = u32::from(self.mtu());
        config.rxmode.offloads = setup.rx_offloads;
        config.txmode.offloads = setup.tx_offloads;
        let hashes = self.info.flow_type_rss_offloads & dpdk::DPDK_RSS_FLOWS;
        if setup.rx_queues > 1 && hashes != 0 {
            config.rxmode.mq_mode = dpdk::rte_eth_rx_mq_mode_RTE_ETH_MQ_RX_RSS;
            config.rx_adv_conf.rss_conf.rss_hf = hashes;
        }
        let (id, any) = (self.id, dpdk::SOCKET_ID_ANY as u32);
        let ring = setup.ring.min(usize::from(u16::MAX)) as u16;
        let (mut rx_ring, mut tx_ring) = (ring, ring);
        // SAFETY: a device of ours that is stopped, and plain numbers; null asks for the defaults
        // of a queue.
        unsafe {
            done("rte_eth_dev_configure", {
                dpdk::rte_eth_dev_configure(id, setup.rx_queues, setup.tx_queues, &raw const config)
            })?;
            done("rte_eth_dev_adjust_nb_rx_tx_desc", {
                dpdk::rte_eth_dev_adjust_nb_rx_tx_desc(id, &raw mut rx_ring, &raw mut tx_ring)
            })?;
            for queue in 0..setup.rx_queues {
                done("rte_eth_rx_queue_setup", {
                    dpdk::rte_eth_rx_queue_setup(
                        id,
                        queue,
                        rx_ring,
                        any,
                        ptr::null(),
                        setup.mempool,
                    )
                })?;
            }
            for queue in 0..setup.tx_queues {
                done("rte_eth_tx_queue_setup", {
                    dpdk::rte_eth_tx_queue_setup(id, queue, tx_ring, any, ptr::null())
                })?;
            }
        }
        Ok(())
    }

    /// Receive frames for other stations too, or not.
    pub(super) fn set_promiscuous(&self, on: bool) -> Result<(), String> {
        // SAFETY: a device of ours.
        let result = unsafe {
            if on {
                dpdk::rte_eth_promiscuous_enable(self.id)
            } else {
                dpdk::rte_eth_promiscuous_disable(self.id)
            }
        };
        done("promiscuous mode", result)
    }

    /// Receive frames for all groups.
    pub(super) fn receive_all_groups(&self) -> Result<(), String> {
        // SAFETY: a device of ours.
        done("all multicast", unsafe {
            dpdk::rte_eth_allmulticast_enable(self.id)
        })
    }

    /// Receive frames for these groups.
    pub(super) fn receive_groups(&self, groups: &[MacAddr]) -> Result<(), String> {
        let mut list: Vec<[u8; 6]> = groups.iter().map(|group| group.0).collect();
        // SAFETY: as many addresses of 6 bytes as said, which are copied.
        let result = unsafe {
            dpdk::rte_eth_dev_set_mc_addr_list(self.id, list.as_mut_ptr().cast(), list.len() as u32)
        };
        done("multicast addresses", result)
    }

    /// Starts it.
    pub(super) fn start(&self, _eal: &Eal) -> Result<(), String> {
        // SAFETY: a device of ours whose queues are set up.
        done("rte_eth_dev_start", unsafe {
            dpdk::rte_eth_dev_start(self.id)
        })
    }

    /// The link now.
    pub(super) fn link(&self) -> Link {
        let mut link = dpdk::rte_eth_link::default();
        // SAFETY: a device of ours.
        let up = unsafe { dpdk::rte_eth_link_get_nowait(self.id, &raw mut link) } == 0
            && link.link_status() != 0;
        let speed = Some(link.link_speed)
            .filter(|&speed| up && speed != 0 && speed != dpdk::RTE_ETH_SPEED_NUM_UNKNOWN);
        Link {
            up,
            speed: speed.map(Megabits),
            changes: 0,
        }
    }

    /// What the device's clock shows, if it can be read.
    pub(super) fn clock(&self) -> Option<u64> {
        let mut ticks = 0;
        // SAFETY: a device of ours.
        (unsafe { dpdk::rte_eth_read_clock(self.id, &raw mut ticks) } == 0).then_some(ticks)
    }

    /// The counters that all devices have.
    pub(super) fn counters(&self) -> Option<dpdk::rte_eth_stats> {
        let mut stats = dpdk::rte_eth_stats::default();
        // SAFETY: a device of ours.
        (unsafe { dpdk::rte_eth_stats_get(self.id, &raw mut stats) } == 0).then_some(stats)
    }

    /// All counters, by DPDK's names.
    pub(super) fn statistics(&self) -> Statistics {
        // SAFETY: a device of ours; DPDK writes as many entries as there is room for.
        unsafe {
            let n = dpdk::rte_eth_xstats_get_names(self.id, ptr::null_mut(), 0).max(0);
            let mut names = vec![dpdk::rte_eth_xstat_name::default(); n as usize];
            let mut values = vec![dpdk::rte_eth_xstat::default(); n as usize];
            let named = dpdk::rte_eth_xstats_get_names(self.id, names.as_mut_ptr(), n as u32);
            let counted = dpdk::rte_eth_xstats_get(self.id, values.as_mut_ptr(), n as u32);
            names.truncate(named.clamp(0, n) as usize);
            values.truncate(counted.clamp(0, n) as usize);
            let row = |value: dpdk::rte_eth_xstat| {
                let name: [u8; 64] = names.get(value.id as usize)?.name.map(|c| c as u8);
                let name = CStr::from_bytes_until_nul(&name).ok()?.to_str().ok()?;
                Some((Cow::Owned(name.to_owned()), value.value))
            };
            values.into_iter().filter_map(row).collect()
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _eal = lock();
        // SAFETY: a device of ours; its queues are not polled any more, since they borrow nothing
        // but hold this device, which is being dropped.
        unsafe {
            dpdk::rte_eth_dev_stop(self.id);
            let closed = dpdk::rte_eth_dev_close(self.id);
            let removed = dpdk::rte_dev_remove(self.info.device);
            if closed != 0 || removed != 0 {
                tracing::warn!("DPDK device {}: close {closed}, remove {removed}", self.id);
            }
        }
    }
}
