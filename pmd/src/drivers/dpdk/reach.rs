//! DMA mapping of pool memory for PCI devices of DPDK. DPDK maps its own memory for the IOMMU, and
//! external memory on request (DPDK's programmer's guide, "Support for Externally Allocated
//! Memory").
//!
//! Devices behind one VFIO container share a mapping, which ends with the last of them.

use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use pollux_dpdk_sys as dpdk;
use pollux_mempool::{IovaMap, MemoryRegion};

use super::eal::{Eal, error_of};

/// Start addresses of mapped regions, one entry for each device.
static REACHED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// A region that a device can access.
pub(super) struct Reach {
    region: Arc<MemoryRegion>,
    addresses: IovaMap,
}

impl Reach {
    /// Maps a region for a device.
    ///
    /// # Safety
    /// `device` is a DPDK device, and exists until [`end`](Self::end), which is called before it is
    /// removed.
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
            // SAFETY: a region, whose device addresses are mapped below.
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
            // Another device of the container has mapped it, or there is no IOMMU.
            if mapped != 0 && error != libc::EEXIST && error != libc::ENOTSUP {
                let why = error_of("rte_dev_dma_map");
                // SAFETY: by the caller's promise.
                unsafe { reach.end(device) };
                return Err(why);
            }
        }
        Ok(reach)
    }

    /// Unmaps the region from the device, which no longer accesses it.
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
                // SAFETY: by the caller's promise; no other device has it mapped. The call fails if
                // nothing was mapped.
                unsafe { dpdk::rte_dev_dma_unmap(device, from, run.iova.0, run.len) };
            }
            // SAFETY: registered by `new`; no device has it mapped any more.
            if unsafe { dpdk::rte_extmem_unregister(at.cast(), len) } != 0 {
                tracing::warn!("{}", error_of("rte_extmem_unregister"));
            }
        }
    }
}
