//! Why a detector cannot write into the memory of its receiver.

use std::net::SocketAddr;

use pollux_mempool::region::RegionError;
use pollux_rdma::exchange::ExchangeError;
use pollux_rdma::roce::RoceError;
use pollux_rdma::{ConnectError, QpError, RegisterError};

/// Why a detector cannot write into the memory of its receiver.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RdmaError {
    /// The endpoint could not be made.
    #[error(transparent)]
    Endpoint(#[from] RoceError),
    /// There is no memory.
    #[error(transparent)]
    Memory(#[from] RegionError),
    /// Memory could not be registered.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// There is no queue pair for a module.
    #[error(transparent)]
    QueuePair(#[from] QpError),
    /// The receiver did not answer, or not as it has to.
    #[error("module {module}: no exchange with the receiver at {to}: {source}")]
    Exchange {
        /// The module.
        module: usize,
        /// Where its receiver listens.
        to: SocketAddr,
        /// What happened.
        source: ExchangeError,
    },
    /// The connection could not be made.
    #[error("module {module}: no connection to the receiver at {to}: {source}")]
    Connect {
        /// The module.
        module: usize,
        /// Where its receiver listens.
        to: SocketAddr,
        /// What happened.
        source: ConnectError,
    },
    /// The receiver has no buffers for stacks of these images.
    #[error(
        "module {module}, {to}: the receiver has {found}; it needs buffers `stack 0`, `stack 1` and so on \
         of one length, for 1 to {most} whole images of {image} B a module: compare its [detector] with this one"
    )]
    Buffers {
        /// The module.
        module: usize,
        /// Where its receiver listens.
        to: SocketAddr,
        /// What it has.
        found: String,
        /// Bytes of an image of a module, with the headers of its lines.
        image: usize,
        /// Maximum number of images of a stack.
        most: usize,
    },
    /// The receiver has not said that it is ready.
    #[error(
        "module {module}, receiver at {to}: no packet of it has come: compare IP addresses, ports and MTU of \
         both ends"
    )]
    NotReady {
        /// The module.
        module: usize,
        /// Where the receiver of the first module listens.
        to: SocketAddr,
    },
    /// The [stop flag](super::RdmaOptions::stop) was set.
    #[error("stopped before the receiver was ready")]
    Stopped,
    /// A port number beyond the last one.
    #[error("module {module}: port {base} + {module} is beyond 65535; give a lower one")]
    Port {
        /// The module.
        module: usize,
        /// Port of the first module.
        base: u16,
    },
}
