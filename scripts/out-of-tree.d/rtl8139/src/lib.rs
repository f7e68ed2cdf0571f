//! Driver for the RTL8139 of Realtek, and for QEMU's (`-device rtl8139`): 100 Mb/s, one queue each
//! way.
//!
//! The card receives into one ring of 32 KiB and sends from four slots. It has 32 address lines, so
//! both lie in memory below 4 GiB, and frames are copied. It has no MSI-X, so it cannot wake a loop
//! that sleeps.
//!
//! The device is not trusted: the driver checks offset and length of a frame before it copies it,
//! and reads nothing else that the device writes.

mod nic;
mod registers;
mod rx;
mod tx;

use std::sync::{Arc, Mutex, PoisonError};

use pollux_pmd::bus::registers::Dump;
use pollux_pmd::bus::{Bus as _, Device};
use pollux_pmd::driver::filter::{Filter, Multicast};
use pollux_pmd::driver::{
    Capabilities, Driver, Link, Megabits, Queues, RxDriver, Statistics, TxDriver,
};
use pollux_pmd::drivers::dma::DmaArea;
use pollux_pmd::drivers::pci::PciDriver;
use pollux_pmd::event::RegionOptions;
use pollux_pmd::net::MacAddr;
use pollux_pmd::port::{SharedRxState, bus_error};
use pollux_pmd::quarantine::{Quarantine, quarantined};
use pollux_pmd::{MemoryGrant, PortConfig, PortError, PortSpec, RxState};

use crate::nic::{LONGEST, Nic};
use crate::registers::{
    COMMAND, COMMAND_TX, MEDIA, MEDIA_10, MEDIA_NO_LINK, RCR_ALL, RCR_BROADCAST,
    RCR_BURST_UNLIMITED, RCR_MULTICAST, RCR_NO_WRAP, RCR_RING_32K, RCR_STATION, RCR_WHOLE_FRAMES,
    REGISTERS,
};

/// The entry for `Registry::pci_driver`.
pub const DRIVER: PciDriver =
    PciDriver::new(0x10ec, 0x8139, "RTL8139", open).with_options(&["promisc", "multicast"]);

/// Resets a device and takes it over.
///
/// # Errors
/// An option has a wrong value; the device is in use, or does not answer.
pub fn open<D: Device>(
    device: Arc<D>,
    spec: &PortSpec,
    grant: MemoryGrant,
) -> Result<Box<dyn Driver>, PortError> {
    let filter = Filter::from_spec(spec)?;
    let port = spec.to_string();
    let nic = Nic::new(device).map_err(bus_error(&port))?;
    // An earlier program may have left it running.
    let at_rest = nic.reset();
    nic.device.cut_off();
    at_rest.map_err(bus_error(&port))?;
    let mac = nic.mac().map_err(bus_error(&port))?;
    Ok(Box::new(Rtl8139 {
        nic,
        mac,
        filter,
        grant,
        quarantine: Quarantine::new(port.clone()),
        port,
        link: Mutex::new(Link::DOWN),
        state: SharedRxState::default(),
    }))
}

struct Rtl8139<D: Device> {
    nic: Nic<D>,
    port: String,
    mac: MacAddr,
    filter: Filter,
    grant: MemoryGrant,
    quarantine: Quarantine,
    link: Mutex<Link>,
    state: SharedRxState,
}

impl<D: Device> Rtl8139<D> {
    /// Stops the device, and ends its access to memory.
    fn rest(&self) -> Result<(), PortError> {
        let reset = self.nic.reset();
        // The command register proves that the device is at rest; the reset does not.
        self.quarantine.settle(self.nic.device.cut_off());
        reset.map_err(bus_error(&self.port))
    }

    fn run(&self) -> Result<Queues, PortError> {
        let (nic, error) = (&self.nic, bus_error(&self.port));
        let memory = RegionOptions {
            low_addresses: true,
            ..nic.device.memory()
        };
        let len = rx::BYTES + tx::BYTES;
        let area = DmaArea::alloc(&*nic.device, &memory, len, (self.grant, &self.quarantine));
        let area = area.map_err(&error)?;
        let low = |offset, len| {
            let at = area.address(offset, len).and_then(|at| {
                let end = at.checked_add(len as u64)?;
                u32::try_from(end).ok().map(|_| at as u32)
            });
            at.ok_or_else(|| {
                nic.error("it reaches memory below 4 GiB only; use it behind an IOMMU")
            })
        };
        let ring = low(0, rx::BYTES).map_err(&error)?;
        let slots = low(rx::BYTES, tx::BYTES).map_err(&error)?;
        let (groups, multicast) = match &self.filter.multicast {
            Multicast::All => (u64::MAX, RCR_MULTICAST),
            Multicast::Listed(list) if list.is_empty() => (0, 0),
            Multicast::Listed(list) => {
                let bits = list.iter().map(|&group| 1 << group_hash(group));
                (bits.fold(0, |all, bit: u64| all | bit), RCR_MULTICAST)
            }
        };
        let all = if self.filter.promiscuous {
            RCR_ALL | RCR_MULTICAST
        } else {
            0
        };
        let receive = RCR_STATION | RCR_BROADCAST | all | multicast;
        let form = RCR_NO_WRAP | RCR_BURST_UNLIMITED | RCR_RING_32K | RCR_WHOLE_FRAMES;
        nic.device.set_bus_master(true).map_err(&error)?;
        let groups = if all != 0 { u64::MAX } else { groups };
        nic.configure(ring, receive | form, groups);
        let (ring_area, slot_area) = area.split_at(rx::BYTES);
        let rx: Box<dyn RxDriver> = {
            let (nic, state) = (nic.clone(), self.state.clone());
            Box::new(rx::Rx::new(nic, ring_area, state, receive | form))
        };
        let tx: Box<dyn TxDriver> = Box::new(tx::Tx::new(nic.clone(), slot_area, slots));
        Ok(Queues {
            rx: vec![rx],
            tx: vec![tx],
        })
    }
}

/// The bit of a group in the multicast filter: the highest six of its CRC-32 (section 5, MAR).
fn group_hash(MacAddr(octets): MacAddr) -> u32 {
    let mut crc = u32::MAX;
    for bit in octets
        .iter()
        .flat_map(|octet| (0..8).map(move |i| octet >> i & 1))
    {
        let carry = crc >> 31 ^ u32::from(bit);
        crc = crc << 1 ^ if carry == 1 { 0x04c1_1db7 } else { 0 };
    }
    crc >> 26
}

impl<D: Device> Driver for Rtl8139<D> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_rx_queues: 1,
            max_tx_queues: 1,
            mac: Some(self.mac),
            max_frame: LONGEST,
            checksum_offload: false,
            wire_time: false,
            recorded: false,
            kernel_backed: false,
        }
    }

    fn start(&mut self, config: &PortConfig, _port: u16) -> Result<Queues, PortError> {
        self.rest()?;
        self.quarantine = Quarantine::new(self.port.clone());
        self.state.set(RxState::Live);
        match self.run() {
            Ok(mut queues) => {
                queues.rx.truncate(config.rx_queues.into());
                queues.tx.truncate(config.tx_queues.into());
                Ok(queues)
            }
            Err(error) => {
                // The first error is the one to report.
                let _ = self.rest();
                Err(error)
            }
        }
    }

    fn end_receiving(&mut self) {
        let command = self.nic.bus.read8(COMMAND);
        self.nic.bus.write8(COMMAND, command & COMMAND_TX);
    }

    fn stop(&mut self) -> Result<(), PortError> {
        self.rest()
    }

    fn link(&self) -> Link {
        let mut last = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        let media = self.nic.bus.read8(MEDIA);
        let gone = media == u8::MAX || self.nic.device.is_gone();
        let up = !gone && media & MEDIA_NO_LINK == 0;
        self.state.set(match (gone, up) {
            (true, _) => RxState::Gone,
            (_, true) => RxState::Live,
            (_, false) => RxState::Down,
        });
        let speed = Megabits(if media & MEDIA_10 == 0 { 100 } else { 10 });
        *last = Link {
            up,
            gone,
            speed: up.then_some(speed),
            changes: last.changes + u64::from(last.up != up),
        };
        *last
    }

    fn statistics(&self) -> Statistics {
        vec![quarantined(&self.quarantine)]
    }

    fn registers(&self) -> String {
        let (bus, table) = (&self.nic.bus, REGISTERS);
        Dump {
            bus,
            base: 0,
            table,
        }
        .to_string()
    }
}

impl<D: Device> Drop for Rtl8139<D> {
    /// A port can be dropped without a stop.
    fn drop(&mut self) {
        if !self.quarantine.is_empty() {
            let _ = self.rest();
        }
    }
}
