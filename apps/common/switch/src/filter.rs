//! Forwarding decision of the switch that needs no table: what a frame's addresses say.

use pollux_pmd::Cause;
use pollux_pmd::mempool::Mbuf;
use pollux_pmd::net::MacAddr;
use pollux_pmd::net::headers::EthernetHeader;
use zerocopy::FromBytes;

use crate::config::SwitchError;

/// Drop causes of the switch.
#[derive(Clone, Copy)]
pub(crate) struct Causes {
    /// The source is a group address or zero.
    pub(crate) bad_source: Cause,
    /// The destination is a reserved address.
    pub(crate) reserved: Cause,
    /// The destination is at the port from which the frame came.
    pub(crate) same_port: Cause,
    /// No other port sends.
    pub(crate) no_output: Cause,
    /// The output's buffer had no room.
    pub(crate) output_full: Cause,
}

impl Causes {
    pub(crate) fn declare() -> Result<Self, SwitchError> {
        Ok(Self {
            bad_source: Cause::declare("bad-source", "its source is a group address or zero")?,
            reserved: Cause::declare(
                "reserved-address",
                "to an address that a switch does not forward (01:80:c2:00:00:00 to 0f)",
            )?,
            same_port: Cause::declare(
                "same-port",
                "its destination is at the port from which it came",
            )?,
            no_output: Cause::declare("no-output", "no other port sends frames")?,
            output_full: Cause::declare("output-full", "the output's buffer had no room")?,
        })
    }
}

/// Source and destination of a frame.
pub(crate) struct Addresses {
    pub(crate) src: MacAddr,
    pub(crate) dst: MacAddr,
}

impl Addresses {
    /// Reads the addresses; `None` if the frame is too short for them.
    pub(crate) fn of(frame: &Mbuf) -> Option<Self> {
        let (header, _) = EthernetHeader::ref_from_prefix(frame.data()).ok()?;
        Some(Self {
            src: header.src,
            dst: header.dst,
        })
    }
}

/// Whether a frame to this address is forwarded to all other ports.
pub(crate) fn is_group(mac: MacAddr) -> bool {
    mac.0[0] & 1 != 0
}

/// Whether no bridge forwards frames to this address (IEEE 802.1D-2004, table 7-10).
pub(crate) fn is_reserved(mac: MacAddr) -> bool {
    matches!(mac.0, [0x01, 0x80, 0xc2, 0x00, 0x00, 0x00..=0x0f])
}
