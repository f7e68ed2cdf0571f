//! Headers of EJFAT (docs/formats/ejfat.md): load balancer version 2, reassembly version 1, and the
//! synchronization message version 1. All numbers are big endian.

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{Immutable, IntoBytes, Unaligned};

/// Header of a datagram in front of the load balancer.
#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
struct LoadBalancer {
    magic: [u8; 2],
    version: u8,
    /// What follows: the reassembly header.
    next: u8,
    reserved: U16,
    entropy: U16,
    event: U64,
}

/// Header of a piece of an event.
#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
struct Reassembly {
    /// Upper four bits.
    version: u8,
    reserved: u8,
    data_id: U16,
    offset: U32,
    length: U32,
    event: U64,
}

/// Both headers, as a sender writes them. The load balancer removes the first.
#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Headers {
    balancer: LoadBalancer,
    reassembly: Reassembly,
}

/// Their length.
pub(super) const HEADERS: usize = size_of::<Headers>();

/// Message to the control plane of the load balancer.
#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Sync {
    magic: [u8; 2],
    version: u8,
    reserved: u8,
    source: U32,
    event: U64,
    rate_hz: U32,
    unix_ns: U64,
}

const _: () = assert!(
    size_of::<LoadBalancer>() == 16 && size_of::<Reassembly>() == 20 && size_of::<Sync>() == 28
);

/// Protocol that follows the header of the load balancer, and its version there.
const REASSEMBLY: u8 = 1;

impl Headers {
    /// The headers of the piece of an event of `length` bytes that begins at `offset`.
    pub(super) fn new(data_id: u16, event: u64, offset: u32, length: u32) -> Self {
        Self {
            balancer: LoadBalancer {
                magic: *b"LB",
                version: 2,
                next: REASSEMBLY,
                reserved: U16::ZERO,
                // All pieces of an event must come to one port of its receiver; events are spread
                // over its ports.
                entropy: U16::new(event as u16),
                event: U64::new(event),
            },
            reassembly: Reassembly {
                version: REASSEMBLY << 4,
                reserved: 0,
                data_id: U16::new(data_id),
                offset: U32::new(offset),
                length: U32::new(length),
                event: U64::new(event),
            },
        }
    }
}

impl Sync {
    /// The message of a source: the number of its last event, its events a second, and the time.
    pub(super) fn new(source: u32, event: u64, rate_hz: u32, unix_ns: u64) -> Self {
        Self {
            magic: *b"LC",
            version: 1,
            reserved: 0,
            source: U32::new(source),
            event: U64::new(event),
            rate_hz: U32::new(rate_hz),
            unix_ns: U64::new(unix_ns),
        }
    }
}
