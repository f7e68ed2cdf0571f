//! Interrupts as eventfds.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::event::{EventfdFlags, eventfd};
use vfio_bindings::bindings::vfio::{
    VFIO_IRQ_SET_ACTION_TRIGGER, VFIO_IRQ_SET_DATA_EVENTFD, VFIO_IRQ_SET_DATA_NONE,
    VFIO_PCI_MSIX_IRQ_INDEX, VFIO_PCI_REQ_IRQ_INDEX, vfio_irq_info,
};

use super::opened::Inner;
use super::{abi, error};
use crate::bus::{BusError, Interrupts};

/// Enables MSI-X with `vectors` vectors.
pub(super) fn on(device: &Arc<Inner>, vectors: u16) -> Result<Interrupts, BusError> {
    let refused = |error: io::Error| device.refused("MSI-X", error);
    let file = device.file.as_fd();
    let offered = count(file, VFIO_PCI_MSIX_IRQ_INDEX).map_err(refused)?;
    if vectors == 0 || u32::from(vectors) > offered {
        return Err(BusError::Interrupts {
            device: device.name.clone(),
            asked: vectors,
            offered: u16::try_from(offered).unwrap_or(u16::MAX),
        });
    }
    if device.has_interrupts.swap(true, Ordering::Relaxed) {
        let what = "its interrupts are switched on already: a device is one port";
        return Err(error::wrong(&device.name, what));
    }
    // From here on every error disables them.
    let off = Off(device.clone());
    let events: Result<Vec<_>, _> = (0..vectors).map(|_| event()).collect();
    let events = events.map_err(refused)?;
    signal(file, VFIO_PCI_MSIX_IRQ_INDEX, &events).map_err(refused)?;
    Ok(Interrupts::new(events, off))
}

struct Off(Arc<Inner>);

impl Drop for Off {
    fn drop(&mut self) {
        let file = self.0.file.as_fd();
        // Fails if they are not enabled, or the device is gone.
        let _ = signal(file, VFIO_PCI_MSIX_IRQ_INDEX, &[]);
        self.0.has_interrupts.store(false, Ordering::Relaxed);
    }
}

/// An eventfd that is signalled when the kernel requests the device back; `None` without support.
pub(super) fn on_request(device: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
    if count(device, VFIO_PCI_REQ_IRQ_INDEX).unwrap_or(0) == 0 {
        return Ok(None);
    }
    let event = event()?;
    signal(device, VFIO_PCI_REQ_IRQ_INDEX, std::slice::from_ref(&event))?;
    Ok(Some(event))
}

fn event() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Number of interrupts of a kind.
fn count(device: BorrowedFd<'_>, kind: u32) -> io::Result<u32> {
    let mut info = vfio_irq_info {
        index: kind,
        ..Default::default()
    };
    abi::DEVICE_GET_IRQ_INFO.call(device, &mut info)?;
    Ok(info.count)
}

/// Makes the interrupts of a kind signal these events, from the first on; without events: disables
/// them.
fn signal(device: BorrowedFd<'_>, kind: u32, events: &[OwnedFd]) -> io::Result<()> {
    let data = if events.is_empty() {
        VFIO_IRQ_SET_DATA_NONE
    } else {
        VFIO_IRQ_SET_DATA_EVENTFD
    };
    let count = u32::try_from(events.len()).unwrap_or(u32::MAX);
    // struct vfio_irq_set: size, flags, index, start, count, followed by the descriptors.
    let mut words = vec![0, data | VFIO_IRQ_SET_ACTION_TRIGGER, kind, 0, count];
    words.extend(events.iter().map(|event| event.as_raw_fd().cast_unsigned()));
    abi::DEVICE_SET_IRQS.call(device, &mut words[..])
}
