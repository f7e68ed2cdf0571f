//! Reassembly against the kernel: the port reassembles the kernel's fragments, and both reassemble
//! the same datagrams.

use pollux_mempool::time::Ns;
use pollux_mempool::{Mempool, PoolCache};
use pollux_pmd::net::{ParseOptions, Parsed, Reassembler, ReassemblyConfig, classify};
use pollux_pmd::{Cause, Tally};
use pollux_pmd_testkit::netns::{Cable, fragments, payload, udp_frame};

use crate::common::{Port, pool};

/// The reassembler under test, with its loop.
struct Ours {
    pool: Mempool,
    cache: PoolCache,
    reassembler: Reassembler,
    tally: Tally,
}

impl Ours {
    fn new() -> Self {
        let pool = pool(1024);
        Self {
            cache: pool.cache(64).unwrap(),
            pool,
            reassembler: Reassembler::new(ReassemblyConfig::default()).unwrap(),
            tally: Tally::new(),
        }
    }

    /// The payloads of the datagrams in these frames.
    fn join(&mut self, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let options = ParseOptions::default();
        let mut payloads = Vec::new();
        for frame in frames {
            let mbuf = self.cache.alloc_from(frame).unwrap();
            assert_eq!(classify(&mbuf, &options), Err(Cause::IpFragment));
            let (cache, tally) = (&mut self.cache, &mut self.tally);
            let Some(whole) = self.reassembler.take(mbuf, Ns(0), cache, tally) else {
                continue;
            };
            let Ok(Parsed::Udp(udp)) = classify(&whole.mbuf, &options) else {
                panic!("no datagram");
            };
            let mut bytes = vec![0; udp.payload_len.into()];
            whole.mbuf.copy_to(udp.payload_offset.into(), &mut bytes);
            payloads.push(bytes);
            self.cache.free(whole.mbuf);
        }
        self.reassembler.finish(&mut self.cache, &mut self.tally);
        assert_eq!(self.pool.available() + self.cache.len(), 1024);
        payloads
    }
}

#[test]
fn what_the_kernel_cuts_is_joined() {
    let Some(net) = Cable::new(1500) else { return };
    let mut port = Port::open(&net, "af_packet:va");
    let (peer, mut ours) = (net.peer(7000), Ours::new());
    for len in [1473, 2000, 9000, 65_507] {
        let data = payload(len, 3);
        assert_eq!(peer.send(&data).unwrap(), len);
        let frames = port.receive((8 + len).div_ceil(1480));
        let frames: Vec<_> = frames.into_iter().map(|frame| frame.bytes).collect();
        assert!(ours.join(&frames) == [data], "{len} B");
    }
    port.stop();
}

#[test]
fn the_kernel_joins_the_same() {
    let Some(net) = Cable::new(1500) else { return };
    let mut port = Port::open(&net, "af_packet:va");
    let (peer, mut ours) = (net.peer(7000), Ours::new());
    let datagram = |len, seed| udp_frame(7000, &payload(len, seed));
    let long = |id: u8| fragments(&datagram(20_000, id), id.into(), 1480);
    let reversed = long(2).into_iter().rev().collect();
    let twice = long(3).into_iter().flat_map(|frame| [frame.clone(), frame]);
    let (mut missing, mut woven) = (long(4), Vec::new());
    missing.remove(5);
    for pair in long(5).into_iter().zip(long(6).into_iter().rev()) {
        woven.extend([pair.0, pair.1]);
    }
    let short = fragments(&datagram(600, 7), 7, 16);
    for (name, frames, datagrams) in [
        ("in order", long(1), 1),
        ("reversed", reversed, 1),
        // The last fragment, repeated, starts another datagram on both sides.
        ("twice", twice.collect(), 1),
        ("one missing", missing, 0),
        ("two at a time", woven, 2),
        ("short ones", short, 1),
    ] {
        assert_eq!(port.send(&frames), frames.len(), "{name}");
        let end = b"that was all".to_vec();
        assert_eq!(port.send(&[udp_frame(7000, &end)]), 1);
        let (mut kernels, mut bytes) = (Vec::new(), vec![0; 65_536]);
        loop {
            let len = peer.recv(&mut bytes).unwrap();
            if bytes[..len] == end {
                break;
            }
            kernels.push(bytes[..len].to_vec());
        }
        assert_eq!(kernels.len(), datagrams, "{name}");
        assert!(ours.join(&frames) == kernels, "{name}");
    }
    port.stop();
}
