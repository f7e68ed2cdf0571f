//! What a network device tells of itself: virtio 1.2 section 5.1.4.

use super::common::Common;
use super::window::Window;
use crate::bus::Bus;
use crate::drivers::virtio::Features;
use crate::net::MacAddr;

/// Where the fields are.
mod at {
    pub(super) const MAC: usize = 0;
    pub(super) const STATUS: usize = 6;
    pub(super) const MAX_PAIRS: usize = 8;
    pub(super) const MTU: usize = 10;
}

/// `VIRTIO_NET_S_LINK_UP`.
const LINK_UP: u16 = 1;

/// How often fields are read that change meanwhile.
const TRIES: usize = 100;

/// A device's own configuration. What is in it depends on the features that it offers.
pub(super) struct NetConfig<B> {
    window: Window<B>,
    offered: Features,
}

/// What does not change while a device runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) mac: Option<MacAddr>,
    /// Pairs of a receive and a transmit queue.
    pub(super) max_pairs: u16,
    /// The longest packet that the device takes, where it says.
    pub(super) mtu: Option<u16>,
}

impl<B: Bus> NetConfig<B> {
    /// The configuration in this window; `None` if it is too short for what `offered` says to be
    /// in it.
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

    /// What the device says of itself; `None` if it changes its mind all the time.
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

    /// Whether the link is up, and a number that has changed where the link has.
    pub(super) fn link(&self, common: &Common<B>) -> Option<(bool, u8)> {
        let read = || {
            let told = self.offered.contains(Features::STATUS);
            !told || self.window.read16(at::STATUS) & LINK_UP != 0
        };
        consistent(common, read)
    }
}

/// Reads several fields that belong together, and the generation that they are of: again, where it
/// has changed meanwhile (section 2.5.3).
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
