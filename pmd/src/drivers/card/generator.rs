//! The card's packet generator: packets of one size, without a host.

use std::net::SocketAddrV4;

use pollux_mempool::time::Ns;

use super::control::Control;
use super::registers::{card, port};
use crate::bus::{Bus, Device};

/// Packets that a port generates: UDP datagrams without a checksum. A payload begins with the
/// number of its packet, a little-endian u32 from 0; byte i from the fifth on is that number + i,
/// modulo 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generator {
    /// Length of a payload in bytes, up to 9000.
    pub size: u16,
    /// Number of packets; 0: until stopped.
    pub count: u32,
    /// Gap from the end of a packet to the beginning of the next, in addition to what the link
    /// requires.
    pub gap: Ns,
    /// Destination.
    pub to: SocketAddrV4,
    /// UDP source port.
    pub from: u16,
}

impl Generator {
    /// Starts the generator of a port.
    pub(super) fn start<D: Device>(&self, control: &Control<D>) {
        let nic = &control.nic;
        let write = |register, value| nic.bus.write32(nic.port(control.port, register), value);
        write(port::DESTINATION_IP, (*self.to.ip()).into());
        write(port::GEN_SIZE, self.size.into());
        write(port::GEN_COUNT, self.count);
        write(port::GEN_GAP, nic.cycles(card::NET_KHZ, self.gap));
        let ports = u32::from(self.from) << 16 | u32::from(self.to.port());
        write(port::GEN_PORTS, ports);
        write(port::GEN_CTRL, port::GEN_CTRL_START);
    }

    /// Stops it after the current packet.
    pub(super) fn stop<D: Device>(control: &Control<D>) {
        let at = control.nic.port(control.port, port::GEN_CTRL);
        control.nic.bus.write32(at, port::GEN_CTRL_STOP);
    }

    /// Whether a port generates packets.
    pub(super) fn is_running<D: Device>(control: &Control<D>) -> bool {
        let at = control.nic.port(control.port, port::GEN_STATUS);
        control.nic.bus.read32(at) == port::GEN_STATUS_RUNNING
    }
}
