//! Parsing, demultiplexing and checksums.

use std::ffi::{CStr, c_void};
use std::hint::black_box;
use std::net::Ipv4Addr;
use std::{mem, ptr};

use anyhow::{Context, Result, ensure};
use pollux_dpdk_sys as dpdk;
use pollux_mempool::Mbuf;
use pollux_pmd::net::{Checksum, ParseOptions, Parsed, parse};
use pollux_pmd::stream::{Demux, DemuxBuilder, StreamId};

use crate::eal;
use crate::measure::{Operation, Row, compare, timed};
use crate::memory::{our_cache, our_pool};

/// Frames that the demultiplexers walk over, and blocks that are summed: a multiple of all bursts.
const FRAMES: usize = 1024;
/// Bytes of a block that is summed: the UDP payload of one NA62 multi-event packet.
const BLOCK: usize = 1024;

/// All rows of this module.
pub(crate) fn rows(rounds: usize) -> Result<Vec<Row>> {
    let mut rows = compare(&mut Route::<Few>::new(4, c"streams_4")?, rounds)?;
    rows.extend(compare(
        &mut Route::<Many>::new(1000, c"streams_1000")?,
        rounds,
    )?);

    let mut random = Random(1);
    let blocks = (0..FRAMES * BLOCK).map(|_| random.next() as u8).collect();
    rows.extend(compare(
        &mut Sum {
            blocks,
            sums: (0, 0),
        },
        rounds,
    )?);
    Ok(rows)
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same frames in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Where the datagrams of a stream go: boards of one subnet, ports from 58000 on.
fn destination(stream: u16) -> (Ipv4Addr, u16) {
    (
        Ipv4Addr::from_bits(0x0a00_0100 + u32::from(stream % 250)),
        58_000 + stream,
    )
}

/// A frame of 64 bytes: Ethernet, IPv4, UDP, 22 bytes of payload.
fn datagram(stream: u16) -> [u8; 64] {
    let (address, port) = destination(stream);
    let mut frame = [0; 64];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 50, 0, 0, 0x40, 0, 64, 17]);
    frame[26..30].copy_from_slice(&[10, 0, 0, 1]);
    frame[30..34].copy_from_slice(&address.octets());
    let mut sum = Checksum::new();
    sum.add(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.finish().to_be_bytes());
    frame[34..36].copy_from_slice(&4000u16.to_be_bytes());
    frame[36..38].copy_from_slice(&port.to_be_bytes());
    frame[38..40].copy_from_slice(&30u16.to_be_bytes());
    frame
}

/// Names of the two rows.
trait Named {
    const NAME: &'static str;
}
struct Few;
impl Named for Few {
    const NAME: &'static str = "demux_4";
}
struct Many;
impl Named for Many {
    const NAME: &'static str = "demux_1000";
}

/// Both sides: find the headers (no checksum is verified: DPDK's parser does not either), look
/// destination address and port up, count packets and bytes of the stream. The streams come in
/// random order.
struct Route<N> {
    demux: Demux,
    frames: Vec<Mbuf>,
    hash: *mut dpdk::rte_hash,
    their_frames: Vec<*mut dpdk::rte_mbuf>,
    their_streams: Vec<dpdk::stream_count>,
    name: std::marker::PhantomData<N>,
}

impl<N> Route<N> {
    fn new(streams: u16, name: &CStr) -> Result<Self> {
        let builder = (0..streams).fold(DemuxBuilder::new(), |builder, stream| {
            let (address, port) = destination(stream);
            builder.address(address, port, StreamId(stream))
        });
        let mut cache = our_cache(&our_pool()?)?;
        let pool = eal::buffer_pool(name)?;
        let mut random = Random(2);
        let (mut frames, mut their_frames) = (Vec::new(), Vec::new());
        for _ in 0..FRAMES {
            let frame = datagram((random.next() % u64::from(streams)) as u16);
            frames.push(
                cache
                    .alloc_from(&frame)
                    .context("our pool has too few buffers")?,
            );
            their_frames.push(eal::frame(pool, &frame)?);
        }
        Ok(Self {
            demux: builder.build()?,
            frames,
            hash: hash(name, streams)?,
            their_frames,
            their_streams: vec![dpdk::stream_count::default(); usize::from(streams)],
            name: std::marker::PhantomData,
        })
    }
}

/// A hash from destination to stream, with DPDK's fastest hash function on x86: CRC32.
fn hash(name: &CStr, streams: u16) -> Result<*mut dpdk::rte_hash> {
    let parameters = dpdk::rte_hash_parameters {
        name: name.as_ptr(),
        entries: u32::from(streams) * 2,
        key_len: mem::size_of::<dpdk::stream_key>() as u32,
        hash_func: Some(dpdk::rte_hash_crc),
        ..Default::default()
    };
    // SAFETY: the parameters are only read during the call.
    let hash = unsafe { dpdk::rte_hash_create(&raw const parameters) };
    ensure!(!hash.is_null(), "rte_hash_create failed");
    for stream in 0..streams {
        let (address, port) = destination(stream);
        let key = dpdk::stream_key {
            address: address.to_bits().to_be(),
            port: port.to_be(),
            zero: [0; 5],
        };
        let data = ptr::without_provenance_mut::<c_void>(usize::from(stream));
        // SAFETY: a live hash, and a key of the length it was made for; the data is no pointer.
        let status = unsafe { dpdk::rte_hash_add_key_data(hash, ptr::from_ref(&key).cast(), data) };
        ensure!(status == 0, "rte_hash_add_key_data: error {status}");
    }
    Ok(hash)
}

impl<N: Named> Operation for Route<N> {
    const NAME: &'static str = N::NAME;

    #[inline(never)]
    fn ours<const B: usize>(&mut self, turns: u64) -> u64 {
        let Self { demux, frames, .. } = self;
        let mut at = 0;
        timed(turns, || {
            let burst = &black_box(&*frames)[at..at + B];
            at = if at + B == FRAMES { 0 } else { at + B };
            burst.iter().all(|frame| {
                match parse(frame.data(), frame.total_len(), &ParseOptions::TRUSTED) {
                    Ok(Parsed::Udp(udp)) => demux.route(&udp).is_some(),
                    _ => false,
                }
            })
        })
    }

    fn dpdk(&mut self, burst: u32, turns: u64) -> u64 {
        let (frames, count) = (
            self.their_frames.as_mut_ptr(),
            self.their_frames.len() as u32,
        );
        let streams = self.their_streams.as_mut_ptr();
        // SAFETY: `count` live frames, a multiple of the burst; all streams of the hash counted.
        unsafe { dpdk::timed_demux(self.hash, frames, count, streams, burst, turns) }
    }
}

/// One element is a block of 1024 bytes.
struct Sum {
    blocks: Vec<u8>,
    /// Ours and DPDK's, so that the sums are not left out.
    sums: (u16, u16),
}

impl Operation for Sum {
    const NAME: &'static str = "checksum";
    const ELEMENTS: u64 = 1 << 13;

    #[inline(never)]
    fn ours<const B: usize>(&mut self, turns: u64) -> u64 {
        let mut at = 0;
        timed(turns, || {
            for block in self.blocks[at * BLOCK..(at + B) * BLOCK].chunks_exact(BLOCK) {
                let mut sum = Checksum::new();
                sum.add(block);
                self.sums.0 ^= sum.finish();
            }
            black_box(&mut self.sums);
            at = if at + B == FRAMES { 0 } else { at + B };
            true
        })
    }

    fn dpdk(&mut self, burst: u32, turns: u64) -> u64 {
        let blocks = self.blocks.as_ptr();
        let sum = &raw mut self.sums.1;
        // SAFETY: as many blocks of this length, a multiple of the burst.
        unsafe { dpdk::timed_checksum(blocks, FRAMES as u32, BLOCK, sum, burst, turns) }
    }
}
