//! Options of `pollux rdma serve` and `ping`.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use clap::ValueEnum;
use pollux_app::{PortOption, ReportOptions, seconds};
use pollux_pmd::lcore::idle::IdlePolicy;
use pollux_pmd::net::MacAddr;
use pollux_rdma::exchange::perftest::Test;
use pollux_rdma::{Mtu, QpKind};

use super::super::mtu::mtu;

/// Options of both ends.
#[derive(clap::Args)]
#[group(skip)]
pub(in super::super) struct Options {
    #[command(flatten)]
    pub(super) port: PortOption,

    /// Address of the endpoint
    #[arg(long, value_name = "ADDRESS")]
    pub(super) ip: Ipv4Addr,

    /// MAC address of the endpoint [default: the port's]
    #[arg(long, value_name = "MAC")]
    pub(super) mac: Option<MacAddr>,

    /// Address of the host and TCP port of the exchange: where the server listens
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:18515")]
    pub(super) at: SocketAddr,

    /// Connect by the connection manager (RDMA CM), as `-R` of perftest and as rping; --at is then an
    /// address of an endpoint
    #[arg(long)]
    pub(super) cm: bool,

    /// The program at the other end, which determines the exchange and the requests
    #[arg(long = "as", value_name = "PROGRAM")]
    pub(super) program: Program,

    /// Service of the queue pair
    #[arg(long, value_enum, default_value = "rc")]
    kind: Kind,

    /// Bytes of data in a packet
    #[arg(long, value_name = "BYTES", default_value = "1024", value_parser = mtu)]
    pub(super) mtu: Mtu,

    /// Time-out of an acknowledgement: 4.096 us x 2^N; 0: none
    #[arg(long, value_name = "N", default_value_t = 14)]
    #[arg(value_parser = clap::value_parser!(u8).range(..=31))]
    pub(super) timeout: u8,

    /// Bytes of a message
    #[arg(long, value_name = "N", default_value_t = 4096)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    pub(super) bytes: u32,

    /// Messages
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) count: u64,

    /// Idle mode of the loop: busy (polls on), pause, or sleep[=ROUNDS]: after ROUNDS idle iterations it
    /// sleeps until the device wakes it, if that can
    #[arg(long, value_name = "HOW", default_value_t)]
    pub(super) idle: IdlePolicy,

    /// Longest time of the exchange, and of all messages
    #[arg(long, value_name = "TIME", default_value = "60", value_parser = seconds)]
    pub(super) patience: Duration,

    #[command(flatten)]
    pub(super) report: ReportOptions,
}

impl Options {
    pub(super) fn kind(&self) -> QpKind {
        match self.kind {
            Kind::Rc => QpKind::Reliable,
            Kind::Uc => QpKind::Unreliable,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Rc,
    Uc,
}

/// A program of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum Program {
    IbvRcPingpong,
    IbvUcPingpong,
    IbSendBw,
    IbSendLat,
    IbWriteBw,
    IbWriteLat,
    IbReadBw,
    IbReadLat,
    Rping,
}

impl Program {
    /// The test of perftest; `None` of a program of libibverbs.
    pub(super) fn test(self) -> Option<Test> {
        match self {
            Self::IbvRcPingpong | Self::IbvUcPingpong | Self::Rping => None,
            Self::IbSendBw => Some(Test::SendBw),
            Self::IbSendLat => Some(Test::SendLat),
            Self::IbWriteBw => Some(Test::WriteBw),
            Self::IbWriteLat => Some(Test::WriteLat),
            Self::IbReadBw => Some(Test::ReadBw),
            Self::IbReadLat => Some(Test::ReadLat),
        }
    }
}
