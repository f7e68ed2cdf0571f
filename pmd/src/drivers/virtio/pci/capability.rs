//! Locations of a device's registers: virtio 1.2 section 4.1.4.

use super::error::wrong;
use super::notify::NotifyWindow;
use super::window::Window;
use crate::bus::pci::ConfigSpace;
use crate::bus::{Bus, BusError, Device};

/// Kinds of windows: `VIRTIO_PCI_CAP_COMMON_CFG`, `VIRTIO_PCI_CAP_NOTIFY_CFG` and
/// `VIRTIO_PCI_CAP_DEVICE_CFG`. The ISR status is for INTx interrupts, which are not supported
/// here.
const COMMON: u8 = 1;
const NOTIFY: u8 = 2;
const DEVICE: u8 = 4;

/// Offsets in `struct virtio_pci_cap` of the words behind the first.
const BAR: u16 = 4;
const OFFSET: u16 = 8;
const LENGTH: u16 = 12;
const MULTIPLIER: u16 = 16;

/// The windows that a driver needs.
pub(super) struct Windows<B> {
    pub(super) common: Window<B>,
    pub(super) device: Window<B>,
    pub(super) notify: NotifyWindow<B>,
}

/// Description of a window in a capability.
#[derive(Clone, Copy)]
struct Claim {
    bar: u8,
    offset: u32,
    len: u32,
    /// Offset of the capability.
    at: u16,
}

impl Claim {
    /// Opens the window, whose offset is a multiple of `align`.
    fn open<D: Device>(self, device: &D, align: u32) -> Result<Window<D::Bus>, BusError> {
        let Self {
            bar, offset, len, ..
        } = self;
        let end = u64::from(offset) + u64::from(len);
        let end = usize::try_from(end).unwrap_or(usize::MAX);
        if len == 0 || !offset.is_multiple_of(align) {
            let what = format!(
                "its registers are said to be {len} bytes at {offset:#x} of BAR {bar}, where none \
                 can be"
            );
            return Err(wrong(device, what));
        }
        Ok(Window {
            bus: device.bar(bar, end)?,
            start: offset as usize,
            len: len as usize,
        })
    }
}

impl<B: Bus> Windows<B> {
    /// Finds the windows.
    ///
    /// # Errors
    /// A device without them (legacy, or configured as such), or one that claims registers in an
    /// invalid place.
    pub(super) fn find<D: Device<Bus = B>>(device: &D) -> Result<Self, BusError> {
        let (mut common, mut specific, mut notify) = (None, None, None);
        // The last word that is read must lie in the part with capabilities.
        let fits = |&at: &u16| at <= 0x100 - (MULTIPLIER + 4);
        let capabilities = ConfigSpace::of(device)?.vendor_capabilities();
        for at in capabilities.into_iter().filter(fits) {
            let first = device.config(at)?;
            let (len, kind) = ((first >> 16) as u8, (first >> 24) as u8);
            let slot = match kind {
                COMMON => &mut common,
                DEVICE => &mut specific,
                NOTIFY if u16::from(len) >= MULTIPLIER + 4 => &mut notify,
                _ => continue,
            };
            let claim = Claim {
                bar: device.config(at + BAR)? as u8,
                offset: device.config(at + OFFSET)?,
                len: device.config(at + LENGTH)?,
                at,
            };
            // The device prefers the first of a kind. One in an invalid BAR is reserved for later
            // versions (section 4.1.4.1).
            if u16::from(len) >= LENGTH + 4 && claim.bar <= 5 && slot.is_none() {
                *slot = Some(claim);
            }
        }
        let (Some(common), Some(specific), Some(notify)) = (common, specific, notify) else {
            let what = "a virtio device from before version 1.0 of the standard, or one that is \
                        made to look like it: give it the modern interface (QEMU: \
                        disable-legacy=on,disable-modern=off, in a PCI Express slot)";
            return Err(wrong(device, what));
        };
        let multiplier = device.config(notify.at + MULTIPLIER)?;
        Ok(Self {
            common: common.open(device, 4)?,
            device: specific.open(device, 4)?,
            notify: NotifyWindow::new(notify.open(device, 2)?, multiplier),
        })
    }
}
