//! Our memory in a PCI device's reach. DPDK maps its own memory for the IOMMU, and what is not its
//! own when it is told to (DPDK's programmer's guide, "Support for Externally Allocated Memory").
//!
//! Devices behind one VFIO container share a mapping, which ends with the last of them.

use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use pollux_dpdk_sys as dpdk;
use pollux_mempool::{IovaMap, MemoryRegion};

use super::eal::{Eal, error_of};

/// Where regions begin that devices reach, one entry for each device.
static REACHED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// A region that a device reaches.
pub(super) struct Reach {
    region: Arc<MemoryRegion>,
    addresses: IovaMap,
}

impl Reach {
    /// Lets a device reach a region.
    ///
    /// # Safety
    /// `device` is a device of DPDK, and is there until [`end`](Self::end), which is called before
    /// it is removed.
    pub(super) unsafe fn new(
        _eal: &Eal,
        device: *mut dpdk::rte_device,
        region: &Arc<MemoryRegion>,
        addresses: &IovaMap,
    ) -> Result<Self, String> {
        let (at, len) = (region.as_ptr().as_ptr(), region.len());
        let mut reached = REACHED.lock().unwrap_or_else(PoisonError::into_inner);
        if !reached.contains(&at.addr()) {
            let page = region.page_size();
            // SAFETY: a region, whose addresses for devices are told below.
            let result =
                unsafe { dpdk::rte_extmem_register(at.cast(), len, ptr::null_mut(), 0, page) };
            if result != 0 {
                return Err(error_of("rte_extmem_register"));
            }
        }
        reached.push(at.addr());
        drop(reached);
        let reach = Self {
            region: region.clone(),
            addresses: addresses.clone(),
        };
        for run in addresses.contiguous_runs() {
            let from = at.wrapping_add(run.offset).cast();
            // SAFETY: by the caller's promise; the region is kept until `end`.
            let mapped = unsafe { dpdk::rte_dev_dma_map(device, from, run.iova.0, run.len) };
            // SAFETY: reads a thread-local number.
            let error = unsafe { dpdk::dpdk_errno() };
            // Another device of the container has it mapped, or there is no IOMMU to map it for.
            if mapped != 0 && error != libc::EEXIST && error != libc::ENOTSUP {
                let why = error_of("rte_dev_dma_map");
                // SAFETY: by the caller's promise.
                unsafe { reach.end(device) };
                return Err(why);
            }
        }
        Ok(reach)
    }

    /// Takes the region away from the device, which does not touch it any more.
    ///
    /// # Safety
    /// `device` is that of [`new`](Self::new), and is closed but not removed.
    pub(super) unsafe fn end(&self, device: *mut dpdk::rte_device) {
        let (at, len) = (self.region.as_ptr().as_ptr(), self.region.len());
        let mut reached = REACHED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(one) = reached.iter().position(|&start| start == at.addr()) {
            reached.swap_remove(one);
        }
        if !reached.contains(&at.addr()) {
            for run in self.addresses.contiguous_runs() {
                let from = at.wrapping_add(run.offset).cast();
                // SAFETY: by the caller's promise; no other device has it mapped. Refused where
                // there was nothing to map.
                unsafe { dpdk::rte_dev_dma_unmap(device, from, run.iova.0, run.len) };
            }
            // SAFETY: registered by `new`; no device has it any more.
            if unsafe { dpdk::rte_extmem_unregister(at.cast(), len) } != 0 {
                tracing::warn!("{}", error_of("rte_extmem_unregister"));
            }
        }
    }
}
