//! Layouts of communication management datagrams (InfiniBand Architecture Specification, volume 1).
//!
//! All fields are big-endian. A field narrower than a byte, or of 24 bits, shares a word with its
//! neighbours: the methods take it out.

use std::net::Ipv4Addr;

use zerocopy::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::address::{QpKind, QpNumber};
use crate::mad::MAD_BYTES;

/// Base version of management datagrams (13.4.3).
const BASE_VERSION: u8 = 1;
/// Management class of communication management (table 107).
const CLASS: u8 = 0x07;
/// Version of the class (12.6.1).
const CLASS_VERSION: u8 = 2;
/// Method `ComMgtSend` (table 366).
const METHOD_SEND: u8 = 0x03;

/// Attribute identifiers (table 367).
pub(super) const REQ: u16 = 0x10;
pub(super) const MRA: u16 = 0x11;
pub(super) const REJ: u16 = 0x12;
pub(super) const REP: u16 = 0x13;
pub(super) const RTU: u16 = 0x14;
pub(super) const DREQ: u16 = 0x15;
pub(super) const DREP: u16 = 0x16;

/// A management datagram: common header (13.4.2) and the message.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Datagram {
    base_version: u8,
    class: u8,
    class_version: u8,
    method: u8,
    status: U16,
    class_specific: U16,
    /// Chosen by the sender of a request; its answer has the same.
    pub(super) transaction: U64,
    pub(super) attribute: U16,
    reserved: U16,
    modifier: U32,
    body: [u8; 232],
}

const _: () = assert!(size_of::<Datagram>() == MAD_BYTES);

impl Datagram {
    /// A message with its header.
    pub(super) fn new(
        attribute: u16,
        transaction: u64,
        body: &(impl IntoBytes + Immutable),
    ) -> Self {
        let mut mad = Self::new_zeroed();
        mad.base_version = BASE_VERSION;
        mad.class = CLASS;
        mad.class_version = CLASS_VERSION;
        mad.method = METHOD_SEND;
        mad.transaction.set(transaction);
        mad.attribute.set(attribute);
        for (to, from) in mad.body.iter_mut().zip(body.as_bytes()) {
            *to = *from;
        }
        mad
    }

    /// Whether it is a message of communication management, of the version that is known here.
    pub(super) fn is_communication_management(&self) -> bool {
        self.base_version == BASE_VERSION
            && self.class == CLASS
            && self.class_version == CLASS_VERSION
            && self.method == METHOD_SEND
            && self.status.get() == 0
    }

    /// The message: every body has the same length.
    pub(super) fn body<T: FromBytes + KnownLayout + Immutable + Unaligned>(&self) -> Option<&T> {
        T::ref_from_bytes(&self.body).ok()
    }
}

/// A path (12.6.5, fields of table 106 from "Primary Local Port LID" on): 44 bytes.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Path {
    pub(super) local_lid: U16,
    pub(super) remote_lid: U16,
    pub(super) local_gid: [u8; 16],
    pub(super) remote_gid: [u8; 16],
    /// Flow label \[31:12\], packet rate \[5:0\].
    flow_rate: U32,
    traffic_class: u8,
    pub(super) hop_limit: u8,
    /// Service level \[7:4\], subnet local \[3\].
    service_level: u8,
    /// Local ACK time-out \[7:3\].
    pub(super) ack_timeout: u8,
}

/// REQ (table 106).
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Req {
    pub(super) local_id: U32,
    reserved4: U32,
    pub(super) service: U64,
    pub(super) ca_guid: U64,
    reserved24: U32,
    q_key: U32,
    /// Queue pair number \[31:8\], responder resources \[7:0\].
    pub(super) qp_resources: U32,
    /// Initiator depth \[7:0\].
    pub(super) initiator_depth: U32,
    /// Remote CM response time-out \[7:3\], transport service type \[2:1\], flow control \[0\].
    pub(super) remote_timeout: U32,
    /// Starting PSN \[31:8\], local CM response time-out \[7:3\], retry count \[2:0\].
    pub(super) psn_timeout_retry: U32,
    pub(super) partition: U16,
    /// MTU \[7:4\], RNR retry count \[2:0\].
    pub(super) mtu_rnr: u8,
    /// Maximum CM retries \[7:4\].
    pub(super) max_retries: u8,
    pub(super) primary: Path,
    alternate: Path,
    /// Header of the IP addressing annex.
    pub(super) ip: IpHeader,
    /// The rest of the private data is the consumer's.
    pub(super) private: [u8; 56],
}

/// Transport service types (table 106).
const RELIABLE: u32 = 0;
const UNRELIABLE: u32 = 1;

impl Req {
    /// Service that is asked for; `None` for one that is not a connection of known kind.
    pub(super) fn kind(&self) -> Option<QpKind> {
        match self.remote_timeout.get() >> 1 & 3 {
            RELIABLE => Some(QpKind::Reliable),
            UNRELIABLE => Some(QpKind::Unreliable),
            _ => None,
        }
    }

    /// Number of the sender's queue pair.
    pub(super) fn qp(&self) -> Option<QpNumber> {
        QpNumber::connectable(self.qp_resources.get() >> 8)
    }
}

/// Private data header of connections by IP address (annex A11, RDMA IP CM Service): 36 bytes.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct IpHeader {
    /// Major version \[7:4\], minor version \[3:0\]: 0.
    version: u8,
    /// IP version \[7:4\].
    ip_version: u8,
    pub(super) source_port: U16,
    source_pad: [u8; 12],
    source: [u8; 4],
    destination_pad: [u8; 12],
    destination: [u8; 4],
}

impl IpHeader {
    pub(super) fn new(source: Ipv4Addr, source_port: u16, destination: Ipv4Addr) -> Self {
        Self {
            version: 0,
            ip_version: 4 << 4,
            source_port: source_port.into(),
            source_pad: [0; 12],
            source: source.octets(),
            destination_pad: [0; 12],
            destination: destination.octets(),
        }
    }

    /// Whether it is for IPv4, of the version that is known here, and from this address.
    pub(super) fn is_from(&self, source: Ipv4Addr) -> bool {
        self.version == 0 && self.ip_version >> 4 == 4 && self.source == source.octets()
    }
}

/// Service identifiers of TCP's port space (annex A11): this, and the port below.
const SERVICE_TCP: u64 = 0x0000_0000_0106_0000;

/// The service of a port.
pub(super) const fn service(port: u16) -> u64 {
    SERVICE_TCP | port as u64
}

/// The port of a service.
pub(super) const fn port_of(service: u64) -> Option<u16> {
    if service & !0xffff == SERVICE_TCP {
        Some(service as u16)
    } else {
        None
    }
}

/// REP (table 110).
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Rep {
    pub(super) local_id: U32,
    pub(super) remote_id: U32,
    q_key: U32,
    /// Queue pair number \[31:8\].
    pub(super) qp: U32,
    eec: U32,
    /// Starting PSN \[31:8\].
    pub(super) psn: U32,
    pub(super) responder_resources: u8,
    pub(super) initiator_depth: u8,
    /// Target ACK delay \[7:3\], failover accepted \[2:1\], flow control \[0\].
    ack_delay: u8,
    /// RNR retry count \[7:5\].
    pub(super) rnr: u8,
    pub(super) ca_guid: U64,
    pub(super) private: [u8; 196],
}

impl Rep {
    /// Number of the sender's queue pair.
    pub(super) fn qp(&self) -> Option<QpNumber> {
        QpNumber::connectable(self.qp.get() >> 8)
    }
}

/// MRA (table 107), and as far as it goes every message but REQ: they begin with both identifiers.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Mra {
    pub(super) local_id: U32,
    pub(super) remote_id: U32,
    /// Message that is acknowledged \[7:6\].
    message: u8,
    /// Service time-out \[7:3\].
    pub(super) timeout: u8,
    private: [u8; 222],
}

/// REJ (table 108).
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Rej {
    pub(super) local_id: U32,
    pub(super) remote_id: U32,
    /// Message that is rejected \[7:6\].
    pub(super) message: u8,
    info_len: u8,
    pub(super) reason: U16,
    info: [u8; 72],
    pub(super) private: [u8; 148],
}

/// Messages in REJ and MRA (tables 107 and 108).
pub(super) const OF_REQ: u8 = 0 << 6;
pub(super) const OF_REP: u8 = 1 << 6;
pub(super) const OF_OTHER: u8 = 2 << 6;

/// RTU (table 111) and DREP (table 113).
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Ids {
    pub(super) local_id: U32,
    pub(super) remote_id: U32,
    private: [u8; 224],
}

impl Ids {
    pub(super) fn new(local_id: u32, remote_id: u32) -> Self {
        Self {
            local_id: local_id.into(),
            remote_id: remote_id.into(),
            private: [0; 224],
        }
    }
}

/// DREQ (table 112).
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Dreq {
    pub(super) local_id: U32,
    pub(super) remote_id: U32,
    /// Number of the receiver's queue pair \[31:8\].
    pub(super) remote_qp: U32,
    private: [u8; 220],
}

const _: () = {
    assert!(size_of::<Req>() == 232);
    assert!(size_of::<Rep>() == 232);
    assert!(size_of::<Mra>() == 232);
    assert!(size_of::<Rej>() == 232);
    assert!(size_of::<Ids>() == 232);
    assert!(size_of::<Dreq>() == 232);
};
