//! Rows of reception: packets of a JUNGFRAU module to their places in images, on one core.
//!
//! | row | ours | peer |
//! | --- | --- | --- |
//! | `receive_place` | the port `loopback`, whose sender is in this process | a UDP socket on the kernel's loopback interface |
//! | `receive_place_af_packet` | the port `af_packet` at one end of a veth pair | a UDP socket at that end, with the same sender |
//!
//! The sender is on another core. It is never further ahead than [`WINDOW`](packets::WINDOW) packets, which all rings
//! and sockets hold, so that nothing is lost: the rate is that of the slower core of the two.

mod packets;
mod port;
mod sender;
mod sockets;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use pollux_images::formats::{Header, Layout};
use pollux_pmd::port::{Port, Started};
use pollux_pmd_testkit::netns::{Cable, IP_B};
use zerocopy::IntoBytes as _;

use self::packets::{Images, PACKETS, PIXELS, PORT, Receive};
use self::port::PortReceiver;
use self::sender::{Sender, Shared};
use self::sockets::{SocketReceiver, SocketTransmit};
use crate::data::{Data, SHAPE};
use crate::row::{Facts, Row, Turn, giga};

/// An MTU that packets fit.
const MTU: u32 = 9000;
/// Images of a turn for each frame of the data.
const TURNS: usize = 8;
/// How long there may be nothing before packets are lost.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where packets come from.
#[derive(Clone, Copy)]
pub(crate) enum Link {
    Loopback,
    Veth,
}

/// One side: a receiver, and what sends to it.
struct Side<R> {
    receiver: R,
    sender: Sender,
    /// Images that were received.
    images: u64,
}

impl<R: Receive> Side<R> {
    /// Receives so many images; the time of the polls that had packets.
    fn receive(
        &mut self,
        images: usize,
        mut take: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<Duration> {
        let end = self.images + images as u64;
        self.sender.send((images * PACKETS) as u64);
        let shared: &Shared = self.sender.shared();
        let (mut next, mut busy) = (self.images, Duration::ZERO);
        let mut last = Instant::now();
        while next < end {
            let from = Instant::now();
            let packets = self.receiver.poll(&mut |pixels| {
                take(next, pixels)?;
                next += 1;
                Ok(())
            })?;
            if packets > 0 {
                shared.received.fetch_add(packets as u64, Ordering::Release);
                last = Instant::now();
                busy += last - from;
            } else if last.elapsed() > PATIENCE {
                let why = self.sender.failure();
                bail!("image {next} of {end} is not complete: packets were lost{why}");
            } else {
                std::hint::spin_loop();
            }
        }
        self.images = next;
        Ok(busy)
    }

    /// Times the reception of so many images.
    fn turn(&mut self, images: usize) -> Result<Turn> {
        let bytes = images * SHAPE.pixels() * size_of::<u16>();
        let start = Instant::now();
        let busy = self.receive(images, |_, _| Ok(()))?;
        Ok(Turn {
            rate: giga(bytes, start.elapsed()),
            busy: Some(giga(bytes, busy)),
        })
    }
}

/// Reception on one kind of link.
pub(crate) struct ReceivePlace {
    name: &'static str,
    peer_name: String,
    images: Arc<Images>,
    ours: Side<PortReceiver>,
    peer: Side<SocketReceiver>,
    /// Dropped after the sides that use them, and before the namespaces.
    _ports: Vec<Port<Started>>,
    _cables: Vec<Cable>,
}

impl ReceivePlace {
    /// Opens ports and sockets, and starts their senders on a core.
    pub(crate) fn new(
        name: &'static str,
        link: Link,
        data: &Rc<Data>,
        sender: usize,
    ) -> Result<Self> {
        let layout = Layout::jungfrau(1, 1)?;
        ensure!(
            (layout.packets(), layout.packet_bytes()) == (PACKETS, PIXELS),
            "another layout"
        );
        // A few, so that the sender has them in its cache.
        let different = data.frames.len().min(4);
        let images = Arc::new(Images {
            frames: data.frames[..different].to_vec(),
            header: Header::new(layout.detector()),
        });
        let (mut ports, mut cables) = (Vec::new(), Vec::new());
        let (ours, peer, interface) = match link {
            Link::Loopback => {
                let ((transmit, ours), port) = port::loopback(layout, &images)?;
                ports.push(port);
                let peer = SocketReceiver::bind([127, 0, 0, 1], 0)?;
                let to_peer = SocketTransmit::new(&peer, &images)?;
                let peer = side(peer, to_peer, sender);
                (side(ours, transmit, sender), peer, "lo")
            }
            Link::Veth => {
                // The end of a port has no address, so that the kernel does not answer the frames.
                let bare = Cable::bare(MTU).context("no veth pair")?;
                let kernels = Cable::new(MTU).context("no veth pair")?;
                let transmit = || port::transmit("af_packet:va", &images);
                let (to_ours, va) = bare.a.within(transmit)?;
                let (to_peer, va_of_peer) = kernels.a.within(transmit)?;
                let (ours, vb) = bare.b.within(|| port::receive("af_packet:vb", layout))?;
                let peer = kernels.b.within(|| SocketReceiver::bind(IP_B, PORT))?;
                ports.extend([va, va_of_peer, vb]);
                cables.extend([bare, kernels]);
                (
                    side(ours, to_ours, sender),
                    side(peer, to_peer, sender),
                    "veth",
                )
            }
        };
        Ok(Self {
            name,
            peer_name: format!("UDP socket on {interface}: recvmmsg, memcpy"),
            images,
            ours,
            peer,
            _ports: ports,
            _cables: cables,
        })
    }

    /// Images of a turn.
    fn turn(&self) -> usize {
        TURNS * self.images.frames.len()
    }
}

fn side<R>(receiver: R, transmit: impl sender::Transmit, core: usize) -> Side<R> {
    Side {
        receiver,
        sender: Sender::start(transmit, core),
        images: 0,
    }
}

impl Row for ReceivePlace {
    fn facts(&self) -> Facts {
        Facts {
            name: self.name,
            unit: "GB/s of pixels",
            peer_name: Some(self.peer_name.clone()),
        }
    }

    fn ours(&mut self) -> Result<Turn> {
        self.ours.turn(self.turn())
    }

    fn peer(&mut self) -> Result<Turn> {
        self.peer.turn(self.turn())
    }

    fn check(&mut self) -> Result<()> {
        let (turn, images) = (self.turn(), Arc::clone(&self.images));
        let compare = |n: u64, pixels: &[u8]| {
            ensure!(
                pixels == images.frame(n).as_bytes(),
                "image {n} has other pixels"
            );
            Ok(())
        };
        self.ours.receive(turn, compare)?;
        self.peer.receive(turn, compare)?;
        Ok(())
    }
}
