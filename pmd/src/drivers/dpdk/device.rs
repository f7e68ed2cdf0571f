//! Ethdev of DPDK: probe, set-up, queries, close.

use std::ffi::{CStr, CString};
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};

use pollux_dpdk_sys as dpdk;
use pollux_mempool::{IovaMap, MemoryRegion};

use super::control::{Control, Seen};
use super::eal::{Eal, lock, text_of};
use super::reach::Reach;
use crate::net::MacAddr;

/// A DPDK device that this process owns exclusively. The drop closes it and removes it from DPDK;
/// it must not happen under the lock of [`Eal`], which it takes.
pub(super) struct Device {
    id: u16,
    info: dpdk::rte_eth_dev_info,
    seen: Mutex<Seen>,
    /// The pool memory that it can access, if it is on the PCI bus.
    reach: OnceLock<Reach>,
}

// SAFETY: what `info` points to is static or lives as long as the device, and is only read.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

/// The result of a call that returns 0, or a negative error number.
fn done(what: &str, result: i32) -> Result<(), String> {
    if result == 0 {
        Ok(())
    } else {
        Err(format!("{what}: {}", text_of(result)))
    }
}

/// Queue settings that differ from DPDK's defaults.
pub(super) struct Setup {
    pub(super) rx_queues: u16,
    pub(super) tx_queues: u16,
    pub(super) ring: usize,
    pub(super) rx_offloads: u64,
    pub(super) tx_offloads: u64,
    pub(super) mempool: *mut dpdk::rte_mempool,
}

impl Device {
    /// Finds a device by its devargs, probes its driver, and takes ownership.
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
            // SAFETY: an iterator that was initialised, and is not at its end.
            let id = unsafe { dpdk::rte_eth_iterator_next(&raw mut iterator) };
            if u32::from(id) == dpdk::RTE_MAX_ETHPORTS {
                return Err(format!(
                    "`{devargs}` is in use by another port, or is no network device"
                ));
            }
            // SAFETY: an id that DPDK returned.
            if unsafe { dpdk::rte_eth_dev_owner_set(id, &raw const owner) } == 0 {
                // SAFETY: the iterator was left before its end.
                unsafe { dpdk::rte_eth_iterator_cleanup(&raw mut iterator) };
                let mut info = dpdk::rte_eth_dev_info::default();
                // SAFETY: a device that this process owns.
                done("rte_eth_dev_info_get", unsafe {
                    dpdk::rte_eth_dev_info_get(id, &raw mut info)
                })?;
                let seen = Mutex::default();
                return Ok(Self {
                    id,
                    info,
                    seen,
                    reach: OnceLock::new(),
                });
            }
        }
    }

    /// Maps the memory of a pool for it, until it is dropped.
    pub(super) fn reach(
        &self,
        eal: &Eal,
        region: &Arc<MemoryRegion>,
        addresses: &IovaMap,
    ) -> Result<(), String> {
        // SAFETY: a device that this process owns, which is removed when this is dropped, and not
        // before `end`.
        let reach = unsafe { Reach::new(eal, self.info.device, region, addresses) }?;
        self.reach
            .set(reach)
            .map_err(|_| "the device reaches another pool already".to_owned())
    }

    /// DPDK's number of the device.
    pub(super) fn id(&self) -> u16 {
        self.id
    }

    /// Its capabilities.
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

    /// Its MAC address.
    pub(super) fn mac(&self) -> Option<MacAddr> {
        let mut mac = dpdk::rte_ether_addr::default();
        // SAFETY: a device that this process owns; an address is 6 bytes.
        let bytes = unsafe {
            (dpdk::rte_eth_macaddr_get(self.id, &raw mut mac) == 0)
                .then(|| (&raw const mac).cast::<[u8; 6]>().read())
        };
        bytes.map(MacAddr)
    }

    /// Its MTU.
    pub(super) fn mtu(&self) -> u16 {
        let mut mtu = 0;
        // SAFETY: a device that this process owns.
        if unsafe { dpdk::rte_eth_dev_get_mtu(self.id, &raw mut mtu) } == 0 {
            mtu
        } else {
            1500
        }
    }

    /// Sets the MTU.
    pub(super) fn set_mtu(&self, mtu: u16) -> Result<(), String> {
        // SAFETY: a device that this process owns.
        done("rte_eth_dev_set_mtu", unsafe {
            dpdk::rte_eth_dev_set_mtu(self.id, mtu)
        })
    }

    /// Configures its queues, all with the same pool; RSS distributes flows over several receive
    /// queues if the device supports it.
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
        // SAFETY: a stopped device that this process owns, and plain numbers; null selects the
        // defaults of a queue.
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

    /// Enables or disables promiscuous mode.
    pub(super) fn set_promiscuous(&self, on: bool) -> Result<(), String> {
        // SAFETY: a device that this process owns.
        let result = unsafe {
            if on {
                dpdk::rte_eth_promiscuous_enable(self.id)
            } else {
                dpdk::rte_eth_promiscuous_disable(self.id)
            }
        };
        done("promiscuous mode", result)
    }

    /// Enables the reception of all multicast frames.
    pub(super) fn receive_all_groups(&self) -> Result<(), String> {
        // SAFETY: a device that this process owns.
        done("all multicast", unsafe {
            dpdk::rte_eth_allmulticast_enable(self.id)
        })
    }

    /// Sets the multicast groups to receive.
    pub(super) fn receive_groups(&self, groups: &[MacAddr]) -> Result<(), String> {
        let mut list: Vec<[u8; 6]> = groups.iter().map(|group| group.0).collect();
        // SAFETY: as many addresses of 6 bytes as passed, which DPDK copies.
        let result = unsafe {
            dpdk::rte_eth_dev_set_mc_addr_list(self.id, list.as_mut_ptr().cast(), list.len() as u32)
        };
        done("multicast addresses", result)
    }

    /// Starts the device.
    pub(super) fn start(&self, _eal: &Eal) -> Result<(), String> {
        // SAFETY: a device that this process owns, and whose queues are configured.
        done("rte_eth_dev_start", unsafe {
            dpdk::rte_eth_dev_start(self.id)
        })
    }

    /// The right to query it; waits for another thread that has it.
    pub(super) fn control(&self) -> Control<'_> {
        Control::new(
            self.id,
            self.seen.lock().unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// As `control`, for a poll loop, which never waits: `None` while another thread has it.
    pub(super) fn try_control(&self) -> Option<Control<'_>> {
        let seen = match self.seen.try_lock() {
            Err(TryLockError::WouldBlock) => return None,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Ok(seen) => seen,
        };
        Some(Control::new(self.id, seen))
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _eal = lock();
        // SAFETY: a device that this process owns; its queues are not polled any more, since each
        // of them holds this device, which is being dropped.
        unsafe {
            dpdk::rte_eth_dev_stop(self.id);
            let closed = dpdk::rte_eth_dev_close(self.id);
            if let Some(reach) = self.reach.get() {
                reach.end(self.info.device);
            }
            let removed = dpdk::rte_dev_remove(self.info.device);
            if closed != 0 || removed != 0 {
                tracing::warn!("DPDK device {}: close {closed}, remove {removed}", self.id);
            }
        }
    }
}
