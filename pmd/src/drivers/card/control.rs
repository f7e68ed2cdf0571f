//! Port control shared by both directions: MAC switches, and link state.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pollux_mempool::time::Ns;

use super::nic::{GONE, Nic};
use super::options::Options;
use super::registers::{card, port};
use crate::bus::{Bus, BusError, Device};
use crate::driver::{Link, Megabits};
use crate::net::MacAddr;
use crate::port::{RxState, SharedRxState};

/// Longest wait of a datagram for the answer of its neighbour to the first ARP request. Those behind
/// it wait too. Much longer than a neighbour in the same network takes, and much shorter than
/// [`PATIENCE`](super::nic::PATIENCE), so that a stopped ring comes to rest.
const ARP_WAIT: Ns = Ns(100_000);

/// A port of the card. Clones are the same port.
pub(super) struct Control<D: Device> {
    pub(super) nic: Nic<D>,
    pub(super) port: usize,
    /// Value of the MAC's control register, which both directions write.
    mac: Arc<Mutex<u32>>,
    state: SharedRxState,
}

impl<D: Device> Clone for Control<D> {
    fn clone(&self) -> Self {
        Self {
            nic: self.nic.clone(),
            port: self.port,
            mac: self.mac.clone(),
            state: self.state.clone(),
        }
    }
}

impl<D: Device> Control<D> {
    /// A port whose MAC is off, with the settings that apply when it is on.
    pub(super) fn new(nic: &Nic<D>, port: usize, settings: u32) -> Self {
        Self {
            nic: nic.clone(),
            port,
            mac: Arc::new(Mutex::new(settings)),
            state: SharedRxState::default(),
        }
    }

    /// Configures a port before frames can pass: its station address, and `net`, what else it
    /// passes on. Its MAC stays off.
    ///
    /// # Errors
    /// The ports of the card have no clock.
    pub(super) fn set_up(
        nic: &Nic<D>,
        n: usize,
        station: MacAddr,
        options: &Options,
        net: u32,
    ) -> Result<Self, BusError> {
        nic.need_ports()?;
        let at = |register| nic.port(n, register);
        let [a, b, c, d, e, f] = station.0;
        let station = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        nic.write64(at(port::MAC), station);
        // With the FCS.
        let longest = options.longest() + 4;
        nic.bus.write32(at(port::MAX_FRAME), longest as u32);
        let mut net = net | port::NET_CTRL_CHECKSUM;
        let mut mac = port::MAC_CTRL_PAUSE;
        match options.ips.get(n) {
            Some(&ip) => {
                nic.bus.write32(at(port::IP), ip.into());
                net |= port::NET_CTRL_ARP | port::NET_CTRL_ECHO;
            }
            None => mac |= port::MAC_CTRL_PROMISCUOUS,
        }
        if options.promiscuous {
            mac |= port::MAC_CTRL_PROMISCUOUS;
        }
        if options.multicast {
            mac |= port::MAC_CTRL_MULTICAST;
        }
        if options.looped {
            mac |= port::MAC_CTRL_LOOP;
        }
        nic.bus.write32(at(port::NET_CTRL), net);
        let wait = nic.cycles(card::NET_KHZ, ARP_WAIT);
        nic.bus.write32(at(port::ARP_WAIT), wait);
        nic.bus.write32(at(port::MAC_CTRL), mac);
        Ok(Self::new(nic, n, mac))
    }

    /// Stops reception on this port, and waits for a limited time until all received data is in
    /// memory. The other ports continue.
    pub(super) fn end_receiving(&self) {
        self.receive(false);
        self.nic.wait(|| {
            let status = self.status();
            status & port::MAC_STATUS_RX_IDLE != 0 || status == GONE
        });
    }

    /// Switches bits of the MAC on or off.
    fn switch(&self, bits: u32, on: bool) {
        let mut mac = self.mac.lock().unwrap_or_else(PoisonError::into_inner);
        *mac = if on { *mac | bits } else { *mac & !bits };
        let at = self.nic.port(self.port, port::MAC_CTRL);
        self.nic.bus.write32(at, *mac);
    }

    /// Enables or disables reception.
    pub(super) fn receive(&self, on: bool) {
        self.switch(port::MAC_CTRL_RX_ENABLE, on);
    }

    /// Enables or disables transmission.
    pub(super) fn send(&self, on: bool) {
        self.switch(port::MAC_CTRL_TX_ENABLE, on);
    }

    /// The MAC's status; all ones if the card is gone.
    pub(super) fn status(&self) -> u32 {
        self.nic
            .bus
            .read32(self.nic.port(self.port, port::MAC_STATUS))
    }

    /// Whether frames can arrive.
    pub(super) fn state(&self) -> RxState {
        self.state.get()
    }

    /// Whether a status of the MAC says that the link is up, and the port has kept its settings.
    fn is_up(&self, status: u32) -> bool {
        status & port::MAC_STATUS_LINK != 0 && !self.nic.has_lost_ports()
    }

    /// Reads from the MAC whether frames can arrive. For housekeeping.
    pub(super) fn look(&self) {
        self.state.set(match self.status() {
            GONE => RxState::Gone,
            status if !self.is_up(status) => RxState::Down,
            _ => RxState::Live,
        });
    }
}

/// Counts link changes between queries.
#[derive(Default)]
pub(super) struct Watch(AtomicU64);

impl Watch {
    /// The link state of a port. Bit 0 of the stored value is the state at the last query.
    pub(super) fn look<D: Device>(&self, control: &Control<D>) -> Link {
        let status = control.status();
        let gone = status == GONE || control.nic.device.is_gone();
        let up = !gone && control.is_up(status);
        let next = |seen: u64| (seen & 1 != u64::from(up)).then_some(seen + 1);
        let order = Ordering::Relaxed;
        let changes = match self.0.fetch_update(order, order, next) {
            Ok(before) => before + 1,
            Err(same) => same,
        };
        Link {
            up,
            gone,
            speed: up.then_some(Megabits(10_000)),
            changes,
        }
    }
}
