//! Device-specific configuration of a network device: virtio 1.2 section 5.1.4.

use super::common::Common;
use super::window::Window;
use crate::bus::Bus;
use crate::drivers::virtio::Features;
use crate::net::MacAddr;

/// Offsets of the fields.
mod at {
    pub(super) const MAC: usize = 0;
    pub(super) const STATUS: usize = 6;
    pub(super) const MAX_PAIRS: usize = 8;
    pub(super) const MTU: usize = 10;
}

/// `VIRTIO_NET_S_LINK_UP`.
const LINK_UP: u16 = 1;

/// Maximum number of reads of fields that change concurrently.
const TRIES: usize = 100;

/// A device's own configuration. Its fields depend on the features that the device offers.
pub(super) struct NetConfig<B> {
    window: Window<B>,
    offered: Features,
}

/// Fields that do not change while a device runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) mac: Option<MacAddr>,
    /// Pairs of a receive and a transmit queue.
    pub(super) max_pairs: u16,
    /// The longest packet that the device accepts, if it reports it.
    pub(super) mtu: Option<u16>,
}

impl<B: Bus> NetConfig<B> {
    /// The configuration in this window; `None` if it is too short for the fields of the features
    /// in `offered`.
    pub(super) fn new(window: Window<B>, offered: Features) -> Option<Self> {
        let needed = [
            (Features::MAC, at::MAC + 6),
            (Features::STATUS, at::STATUS + 2),
            (Features::SEVERAL_QUEUES, at::MAX_PAIRS + 2),
            (Features::MTU, at::MTU + 2),
        ];
        let fits = |&(feature, end)| !offered.contains(feature) || end <= window.len();
        let fits = needed.iter().all(fits);
        fits.then_some(Self { window, offered })
    }

    /// The constant fields; `None` if they change on every read.
    pub(super) fn facts(&self, common: &Common<B>) -> Option<Facts> {
        let read = || Facts {
            mac: self
                .offered
                .contains(Features::MAC)
                .then(|| MacAddr(std::array::from_fn(|i| self.window.read8(at::MAC + i)))),
            max_pairs: if self.offered.contains(Features::SEVERAL_QUEUES) {
                self.window.read16(at::MAX_PAIRS)
            } else {
                1
            },
            mtu: self
                .offered
                .contains(Features::MTU)
                .then(|| self.window.read16(at::MTU)),
        };
        consistent(common, read).map(|(facts, _)| facts)
    }

    /// Whether the link is up, and the generation, which differs after a change.
    pub(super) fn link(&self, common: &Common<B>) -> Option<(bool, u8)> {
        let read = || {
            let reports_link = self.offered.contains(Features::STATUS);
            !reports_link || self.window.read16(at::STATUS) & LINK_UP != 0
        };
        consistent(common, read)
    }
}

/// Reads several fields that belong together, with their generation; repeats the read if the
/// generation has changed (section 2.5.3).
fn consistent<B: Bus, T>(common: &Common<B>, read: impl Fn() -> T) -> Option<(T, u8)> {
    let mut before = common.generation();
    for _ in 0..TRIES {
        let fields = read();
        let after = common.generation();
        if after == before {
            return Some((fields, after));
        }
        before = after;
    }
    None
}
