//! Datagram socket driver: frames to and from another process of the machine, over a pair of
//! AF_UNIX sockets (unix(7)). One datagram is one frame, without a header, as in QEMU's
//! `-netdev dgram,local.type=unix,local.path=PEER,remote.type=unix,remote.path=PATH`. It needs no
//! rights and no interface.
//!
//! The port binds its path when it starts and removes the file when it stops. Neither end has to be
//! first: the link is up while a program is bound to the peer's path, and frames sent without a peer
//! are transmit errors. The kernel loses no frame: a sender has to wait while more frames than
//! net.unix.max_dgram_qlen (10 by default) are queued at the receiver.

mod limits;
mod rx;
mod socket;
mod tx;
mod watch;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::net::SocketAddrUnix;

use self::limits::{ETHERNET, TAG};
use self::rx::Rx;
use self::socket::Socket;
use self::tx::Tx;
use self::watch::Watch;
use crate::driver::{
    Capabilities, Description, Driver, Feature, Link, Queues, SpecOption, Support, Target,
};
use crate::drivers::step::Step;
use crate::net::MacAddr;
use crate::port::{PortConfig, PortError};
use crate::spec::{PortSpec, SpecError};

pub(crate) const DESCRIPTION: Description = Description {
    target: Some(Target {
        form: "PATH",
        what: "a path for its socket",
        example: "/run/a.sock",
    }),
    options: &[
        SpecOption {
            key: "peer",
            values: "PATH",
            default: "required",
            text: "path of the peer's socket",
        },
        SpecOption {
            key: "mac",
            values: "MAC",
            default: "derived from the path",
            text: "address of the port",
        },
        SpecOption {
            key: "mtu",
            values: "BYTES",
            default: "9000",
            text: "largest payload of a frame, 68 to 65521",
        },
    ],
    features: &[
        (Feature::Receive, Support::Yes),
        (Feature::Send, Support::Yes),
        (
            Feature::Link,
            Support::Partly("up while a program is bound to the peer's path"),
        ),
        (Feature::Mtu, Support::Yes),
        (Feature::Jumbo, Support::Yes),
        (Feature::Promiscuous, Support::Partly("always")),
        (Feature::Multicast, Support::Partly("all, always")),
        (Feature::KernelBacked, Support::Yes),
    ],
    check: |spec| Options::parse(spec).map(drop),
    opening_only_looks: true,
    ..Description::new(
        "unix",
        "frames as datagrams between two sockets of the machine, as of QEMU's `-netdev dgram`",
    )
};

struct Options {
    path: PathBuf,
    peer: SocketAddrUnix,
    mac: MacAddr,
    mtu: usize,
}

impl Options {
    fn parse(spec: &PortSpec) -> Result<Self, SpecError> {
        let path = spec.target().unwrap_or_default();
        let Some(peer) = spec.option("peer") else {
            return Err(SpecError::Target {
                spec: spec.to_string(),
                what: "unix needs peer=PATH, the path of the peer's socket".into(),
            });
        };
        let address = |key, path| {
            let expected = "a socket's path has at most 108 bytes";
            SocketAddrUnix::new(path).map_err(|_| spec.bad_value(key, path, expected))
        };
        address("target", path)?;
        if path == peer {
            return Err(spec.bad_value("peer", peer, "the two ends have different paths"));
        }
        let mac = spec.station("mac")?;
        Ok(Self {
            path: path.into(),
            peer: address("peer", peer)?,
            mac: mac.unwrap_or_else(|| MacAddr::made_of(path.as_bytes(), 0)),
            mtu: spec.number("mtu", 68..=65_521)?.unwrap_or(9000),
        })
    }
}

struct Unix {
    spec: String,
    options: Options,
    watch: Arc<Watch>,
}

pub(crate) fn open(spec: &PortSpec) -> Result<Box<dyn Driver>, PortError> {
    let (options, spec) = (Options::parse(spec)?, spec.to_string());
    match Watch::new(spec.clone(), options.peer.clone()) {
        Ok(watch) => Ok(Box::new(Unix {
            spec,
            options,
            watch: Arc::new(watch),
        })),
        Err(error) => Err(refused(&spec, ("cannot make a socket", error.into()))),
    }
}

fn refused(port: &str, (what, error): Step) -> PortError {
    let hint = match error.raw_os_error() {
        Some(libc::EADDRINUSE) => {
            "the path exists, and is no socket or has a program bound to it: choose another path, \
             or stop that program"
        }
        Some(libc::ENOENT) => "the folder of the socket does not exist: create it",
        Some(libc::EACCES) => "the folder of the socket is not writable for this user",
        _ => "",
    };
    PortError::System {
        port: port.into(),
        what: what.into(),
        hint: hint.into(),
        error,
    }
}

impl Unix {
    fn queues(&self, config: &PortConfig) -> io::Result<Queues> {
        let Options {
            path, peer, mtu, ..
        } = &self.options;
        let longest = mtu + ETHERNET + TAG;
        let socket = Socket::bind(path, peer, config.ring.saturating_mul(longest))?;
        let socket = Arc::new(socket);
        let both = || (socket.clone(), self.watch.clone());
        let rx = |_| {
            let (socket, watch) = both();
            Box::new(Rx::new(socket, watch, &config.pool, longest)) as Box<_>
        };
        let tx = |_| {
            let (socket, watch) = both();
            Box::new(Tx::new(socket, watch, longest)) as Box<_>
        };
        Ok(Queues {
            rx: (0..config.rx_queues).map(rx).collect(),
            tx: (0..config.tx_queues).map(tx).collect(),
        })
    }
}

impl Driver for Unix {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_rx_queues: 1,
            max_tx_queues: 1,
            mac: Some(self.options.mac),
            max_frame: self.options.mtu + ETHERNET,
            checksum_offload: false,
            wire_time: false,
            recorded: false,
            kernel_backed: true,
        }
    }

    fn start(&mut self, config: &PortConfig, _port: u16) -> Result<Queues, PortError> {
        let what = "cannot bind the socket";
        self.queues(config)
            .map_err(|error| refused(&self.spec, (what, error)))
    }

    fn link(&self) -> Link {
        self.watch.link()
    }
}
