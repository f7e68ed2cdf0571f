//! An endpoint: one API over all back ends.

use std::fmt;
use std::ops::Range;

use crate::access::Access;
use crate::address::{Mtu, Psn, QpAddress, QpKind};
use crate::buffer::Buffer;
use crate::memory::Memory;
use crate::queue_pair::QueuePair;

/// Why a range could not be registered.
#[derive(Debug, thiserror::Error)]
#[error("a range of {bytes} B cannot be registered: {why}")]
pub struct RegisterError {
    /// Bytes of the range.
    pub bytes: usize,
    /// Why.
    pub why: String,
}

/// Why a queue pair could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QpError {
    /// The endpoint has as many as it was made for.
    #[error("all {0} queue pairs are in use: destroy one, or make the endpoint with more")]
    TooMany(usize),
    /// An option is out of its limits.
    #[error("{option} = {value}: {allowed}")]
    Option {
        /// The option.
        option: &'static str,
        /// Its value.
        value: u64,
        /// What is allowed.
        allowed: &'static str,
    },
    /// The memory of its queues could not be had.
    #[error(transparent)]
    Events(#[from] pollux_pmd::event::EventError),
    /// The system refused the descriptor on which a program waits for events.
    #[error("no event descriptor: {0}; raise the limit of open files (ulimit -n)")]
    Sleep(std::io::Error),
    /// The system has no random bits for its number.
    #[error(
        "no random bits for a queue pair's number: {0}; a system-call filter has to permit getrandom(2)"
    )]
    Random(std::io::Error),
    /// The memory of its queues cannot be handed to the peer.
    #[error("the memory file of a queue pair: {0}; raise the limit of open files (ulimit -n)")]
    MemoryFile(std::io::Error),
    /// The peer has to take its memory, and did not.
    #[error("the peer did not take its queues: {0}")]
    Peer(String),
}

/// Why two queue pairs could not be connected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// It is another endpoint's.
    #[error("queue pair {0} is not one of this endpoint")]
    Unknown(crate::QpNumber),
    /// It is connected, has failed, or was destroyed.
    #[error("queue pair {0} is connected, or has failed: make a new one")]
    State(crate::QpNumber),
    /// The peer has no such queue pair, or it is connected.
    #[error("the peer has no queue pair {0} that is not connected")]
    NoPeer(crate::QpNumber),
    /// An option is out of its limits.
    #[error("{option} = {value}: 0 to {most} are allowed")]
    Option {
        /// The option.
        option: &'static str,
        /// Its value.
        value: u8,
        /// The largest value.
        most: u8,
    },
    /// The path cannot carry packets of that size.
    #[error(
        "an MTU of {mtu} B needs frames of {needed} B, and the port has {has} B: choose a smaller one"
    )]
    Mtu {
        /// The MTU.
        mtu: usize,
        /// Bytes of its largest frame.
        needed: usize,
        /// Largest frame of the port.
        has: usize,
    },
    /// The peer's IP address is none that a host has.
    #[error(
        "the peer's IP address is {0}, which no host has: the address of its endpoint is needed"
    )]
    Ip(std::net::Ipv4Addr),
    /// The peer's MAC address is that of a group, or zero.
    #[error("the peer's MAC address is {0}, which no host has: leave it out to look it up by ARP")]
    Mac(pollux_pmd::net::MacAddr),
    /// The back end's peer is gone.
    #[error("the peer is gone")]
    PeerGone,
}

/// What a queue pair is made of.
#[derive(Clone, Debug)]
pub struct QpOptions {
    /// Service.
    pub kind: QpKind,
    /// Receives that may be posted: a power of two from 2 to 4096.
    pub receives: usize,
    /// Events that may wait: a power of two from 16 to 65536.
    pub events: usize,
}

impl Default for QpOptions {
    /// Reliable, with 64 receives and 256 events.
    fn default() -> Self {
        Self {
            kind: QpKind::Reliable,
            receives: 64,
            events: 256,
        }
    }
}

impl QpOptions {
    /// Checks the numbers.
    pub(crate) fn check(&self) -> Result<(), QpError> {
        for (option, value, least, most, allowed) in [
            (
                "receives",
                self.receives,
                2,
                1 << 12,
                "a power of two from 2 to 4096",
            ),
            (
                "events",
                self.events,
                16,
                1 << 16,
                "a power of two from 16 to 65536",
            ),
        ] {
            if !value.is_power_of_two() || !(least..=most).contains(&value) {
                let value = value as u64;
                return Err(QpError::Option {
                    option,
                    value,
                    allowed,
                });
            }
        }
        Ok(())
    }
}

/// How a connection treats losses. The numbers are InfiniBand's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathOptions {
    /// Most bytes of data in a packet.
    pub mtu: Mtu,
    /// Time-out of an acknowledgement: 4.096 us x 2^timeout, up to 31; 0 is none.
    pub timeout: u8,
    /// How often a request is repeated for want of an acknowledgement, up to 7.
    pub retry: u8,
    /// How often a request is repeated to a peer that is not ready, up to 6; 7 is for ever.
    pub rnr_retry: u8,
    /// How long the peer waits if this end is not ready: a code up to 31 (InfiniBand, table 45).
    pub rnr_timer: u8,
    /// GETs that are asked for at a time, 1 at least: no more than the peer answers at a time.
    pub gets: u8,
    /// Number of the first packet that this end sends, where the peer chose it (RDMA CM); otherwise it is
    /// that of the queue pair's own address.
    pub first_psn: Option<Psn>,
}

impl Default for PathOptions {
    /// 1024 B, 67 ms, 7 retries, any number of retries to a peer that is not ready, 0.64 ms,
    /// four GETs at a time.
    fn default() -> Self {
        Self {
            mtu: Mtu::B1024,
            timeout: 14,
            retry: 7,
            rnr_retry: 7,
            rnr_timer: 12,
            gets: 4,
            first_psn: None,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // options may be added
impl PathOptions {
    /// Checks the numbers.
    fn check(&self) -> Result<(), ConnectError> {
        let all = [
            ("timeout", self.timeout, 31),
            ("retry", self.retry, 7),
            ("rnr_retry", self.rnr_retry, 7),
            ("rnr_timer", self.rnr_timer, 31),
        ];
        let wrong = all.into_iter().find(|(_, value, most)| value > most);
        wrong.map_or(Ok(()), |(option, value, most)| {
            Err(ConnectError::Option {
                option,
                value,
                most,
            })
        })
    }
}

/// What a back end has of an endpoint.
#[allow(clippy::trivially_copy_pass_by_ref)] // as in the API: options may be added
pub(crate) trait EndpointDriver: Send {
    fn register(
        &mut self,
        memory: &Memory,
        range: Range<usize>,
        access: Access,
    ) -> Result<Buffer, RegisterError>;

    fn create(&mut self, options: &QpOptions) -> Result<QueuePair, QpError>;

    #[allow(clippy::trivially_copy_pass_by_ref)] // the options of a path will be more
    fn connect(
        &mut self,
        qp: &QueuePair,
        peer: &QpAddress,
        path: &PathOptions,
    ) -> Result<(), ConnectError>;
}

/// An endpoint of a network, or of memory that processes share.
pub struct Endpoint(Box<dyn EndpointDriver>);

impl Endpoint {
    pub(crate) fn new(driver: Box<dyn EndpointDriver>) -> Self {
        Self(driver)
    }

    /// Registers a range of memory: the endpoint's requests may use it, and peers that have its key, by
    /// their rights. [Dropping](Buffer) the buffer, or [`unregister_buffer`](Self::unregister_buffer),
    /// takes it away.
    ///
    /// # Errors
    /// A range outside of the memory, too many ranges, or rights that the memory cannot have.
    pub fn register_buffer(
        &mut self,
        memory: &Memory,
        range: Range<usize>,
        access: Access,
    ) -> Result<Buffer, RegisterError> {
        self.0.register(memory, range, access)
    }

    /// Takes a registered range away. When this returns no peer and no request accesses it any more;
    /// those that try are refused, and fail.
    pub fn unregister_buffer(&mut self, buffer: Buffer) {
        drop(buffer);
    }

    /// Makes a queue pair, with a number and a first sequence number that are random. Dropping it destroys
    /// it: its requests are given up, and packets for it are those of an unknown queue pair.
    ///
    /// # Errors
    /// Too many queue pairs, options out of their limits, or memory that cannot be had.
    pub fn create_queue_pair(&mut self, options: &QpOptions) -> Result<QueuePair, QpError> {
        options.check()?;
        self.0.create(options)
    }

    /// Connects a queue pair to one of the peer's. Both ends do so, with each other's
    /// [address](QueuePair::address); receives may be posted before.
    ///
    /// # Errors
    /// It is connected, or is another endpoint's; the path does not carry packets of the MTU; or an option
    /// is out of its limits.
    pub fn connect(
        &mut self,
        qp: &QueuePair,
        peer: &QpAddress,
        path: &PathOptions,
    ) -> Result<(), ConnectError> {
        path.check()?;
        self.0.connect(qp, peer, path)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}
