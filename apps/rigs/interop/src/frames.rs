//! Frames that are reproducible from their number, and the check of returned ones.

use std::net::{Ipv4Addr, SocketAddrV4};

use anyhow::{Context as _, Result, ensure};
use pollux_pmd::Cause;
use pollux_pmd::mempool::{ChecksumRequest, Mbuf};
use pollux_pmd::net::{
    Addresses, Checksum, MacAddr, ParseOptions, Parsed, UDP_HEADERS, UdpChecksum, UdpEndpoint,
    UdpTemplate, classify,
};
use rand::{Rng, SeedableRng};
use rand_xoshiro::SplitMix64;

/// Bytes of the frame check sequence, which `--sizes` counts, as testpmd does, and ports do not.
const FCS: usize = 4;
/// Bytes of the number in front of each payload.
const NUMBER: usize = 8;
/// Flows that the frames belong to, told apart by their source port.
const FLOWS: u16 = 16;
/// Bytes of both stations' addresses.
const STATIONS: usize = 12;
/// Where the ICMP payload begins: behind Ethernet, IPv4 and the echo header.
const ICMP_PAYLOAD: usize = 42;

/// Smallest and largest frame that can be asked for, with frame check sequence.
pub const SIZES: std::ops::RangeInclusive<usize> = 64..=65_535;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// A UDP datagram
    Udp,
    /// An ICMP echo request
    Ping,
}

/// What the peer does to a frame before it comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Returned {
    /// Nothing: every byte is as it was sent
    Same,
    /// Stations, addresses and ports are swapped; every other byte is as it was sent
    Swapped,
    /// A new frame with the payload, addresses and ports swapped (a socket that echoes)
    Reply,
    /// The stations may be others; every byte behind them is as it was sent
    Forwarded,
}

/// What a frame that came in is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Frame number so-and-so, right in every byte that was to be checked.
    Intact(u64),
    /// One of ours, but wrong.
    Corrupt,
    /// None of ours.
    Foreign,
}

/// Makes frames by number.
pub struct Frames {
    there: Vec<UdpTemplate>,
    back: Vec<UdpTemplate>,
    ends: (UdpEndpoint, UdpEndpoint),
    kind: Kind,
    seed: u64,
    sizes: Vec<usize>,
    returned: Returned,
    /// Checksums are left to the port.
    left: bool,
    /// Room for the largest frame.
    expected: Vec<u8>,
    /// Room for the largest that has come.
    received: Vec<u8>,
}

impl Frames {
    /// Frames between two ends, of these sizes in turn.
    ///
    /// # Errors
    /// No size, or one outside of [`SIZES`].
    pub fn new(
        ends: (UdpEndpoint, UdpEndpoint),
        kind: Kind,
        seed: u64,
        sizes: &[usize],
        returned: Returned,
    ) -> Result<Self> {
        let largest = sizes.iter().copied().max();
        let largest = largest.context("--sizes names no size")?;
        for size in sizes {
            ensure!(
                SIZES.contains(size),
                "--sizes {size}: from {} to {} bytes, frame check sequence included",
                SIZES.start(),
                SIZES.end()
            );
        }
        let flows = (0..FLOWS).map(|flow| {
            let mut src = ends.0;
            src.socket
                .set_port(src.socket.port().wrapping_add(flow).max(1));
            src
        });
        Ok(Self {
            there: flows
                .clone()
                .map(|src| UdpTemplate::new(src, ends.1))
                .collect(),
            back: flows.map(|src| UdpTemplate::new(ends.1, src)).collect(),
            ends,
            kind,
            seed,
            sizes: sizes.to_vec(),
            returned,
            left: false,
            expected: vec![0; largest - FCS],
            received: Vec::new(),
        })
    }

    /// The same, with the checksums of datagrams left to the device that sends them.
    #[must_use]
    pub fn leaving_checksums(mut self) -> Self {
        self.left = self.kind == Kind::Udp;
        self
    }

    /// What is left to the device that sends a frame.
    #[must_use]
    pub fn request(&self) -> Option<ChecksumRequest> {
        UdpTemplate::checksum_request(0).filter(|_| self.left)
    }

    /// Frame number `number` as it is sent.
    pub fn make(&mut self, number: u64) -> &[u8] {
        let mut buffer = std::mem::take(&mut self.expected);
        let frame = self.write(number, Direction::There, &mut buffer);
        if self.left {
            let template = self.there[flow(number)].clone();
            let length = frame.len() - UDP_HEADERS;
            // It fits, as before.
            let _ = template
                .with_checksum(UdpChecksum::Left)
                .write(frame, length);
        }
        let length = frame.len();
        self.expected = buffer;
        &self.expected[..length]
    }

    /// Judges a frame that came in.
    pub fn judge(&mut self, mbuf: &Mbuf) -> Verdict {
        let mut received = std::mem::take(&mut self.received);
        let length = mbuf.total_len();
        if received.len() < length {
            received.resize(length, 0);
        }
        mbuf.copy_to(0, &mut received[..length]);
        let verdict = self.judge_bytes(mbuf, &received[..length]);
        self.received = received;
        verdict
    }

    fn judge_bytes(&mut self, mbuf: &Mbuf, received: &[u8]) -> Verdict {
        let payload = match (self.kind, classify(mbuf, &ParseOptions::default())) {
            (Kind::Udp, Ok(Parsed::Udp(udp))) => {
                if !self.is_ours(udp.addresses, udp.src_port, udp.dst_port) {
                    return Verdict::Foreign;
                }
                udp.payload(received)
            }
            // A padded frame has more bytes than its echo reply: its IP length says how many.
            (Kind::Ping, Ok(Parsed::Other)) if is_echo_reply(received) => {
                let end = 14 + usize::from(u16::from_be_bytes([received[16], received[17]]));
                received.get(ICMP_PAYLOAD..end).unwrap_or_default()
            }
            (_, Err(Cause::Malformed | Cause::BadChecksum | Cause::IpFragment)) => {
                return Verdict::Corrupt;
            }
            _ => return Verdict::Foreign,
        };
        let Some(number) = payload.first_chunk::<NUMBER>() else {
            return Verdict::Corrupt;
        };
        let (number, length) = (u64::from_be_bytes(*number), payload.len());
        let mut buffer = std::mem::take(&mut self.expected);
        let direction = match self.returned {
            Returned::Same | Returned::Forwarded => Direction::There,
            Returned::Swapped | Returned::Reply => Direction::Back,
        };
        let expected = self.write(number, direction, &mut buffer);
        let right = match self.returned {
            Returned::Same | Returned::Swapped if self.kind == Kind::Udp => *received == *expected,
            // Checksums that the peer makes anew are those that we had made.
            Returned::Forwarded => received.get(STATIONS..) == expected.get(STATIONS..),
            // Of a ping's answer the headers are the peer's own.
            _ => expected.len() == UDP_HEADERS + length && expected[UDP_HEADERS..] == *payload,
        };
        self.expected = buffer;
        if right {
            Verdict::Intact(number)
        } else {
            Verdict::Corrupt
        }
    }

    /// Whether addresses and ports are those that a frame of ours can come back with.
    fn is_ours(&self, addresses: Addresses, src_port: u16, dst_port: u16) -> bool {
        let Addresses::V4 { src, dst } = addresses else {
            return false;
        };
        let (near, far) = (self.ends.0.socket, self.ends.1.socket);
        let of_a_flow = |port: u16| port.wrapping_sub(near.port()) < FLOWS;
        match self.returned {
            Returned::Same | Returned::Forwarded => {
                (src, dst, dst_port) == (*near.ip(), *far.ip(), far.port()) && of_a_flow(src_port)
            }
            Returned::Swapped | Returned::Reply => {
                (dst, src, src_port) == (*near.ip(), *far.ip(), far.port()) && of_a_flow(dst_port)
            }
        }
    }

    /// Writes every byte of a frame into a buffer that has room for the largest.
    fn write<'a>(&self, number: u64, direction: Direction, buffer: &'a mut [u8]) -> &'a mut [u8] {
        let length = self.sizes[(number % self.sizes.len() as u64) as usize] - FCS;
        let frame = &mut buffer[..length];
        let payload = &mut frame[UDP_HEADERS..];
        SplitMix64::seed_from_u64(self.seed ^ number).fill_bytes(payload);
        payload[..NUMBER].copy_from_slice(&number.to_be_bytes());
        let templates = match direction {
            Direction::There => &self.there,
            Direction::Back => &self.back,
        };
        // It fits: the frame was made for it, and sizes are below the largest datagram.
        let _ = templates[flow(number)].write(frame, length - UDP_HEADERS);
        if self.kind == Kind::Ping {
            to_echo_request(frame, number);
        }
        frame
    }
}

/// Whose turn it is.
fn flow(number: u64) -> usize {
    usize::from((number % u64::from(FLOWS)) as u16)
}

#[derive(Clone, Copy)]
enum Direction {
    There,
    Back,
}

/// Makes an ICMP echo request (RFC 792) of a UDP frame: both have headers of 42 bytes.
fn to_echo_request(frame: &mut [u8], number: u64) {
    const ICMP: u8 = 1;
    frame[23] = ICMP;
    frame[24..26].fill(0);
    let mut sum = Checksum::new();
    sum.add(&frame[14..34]);
    let sum = sum.finish();
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    // Type 8, code 0, checksum, identifier, sequence number.
    frame[34..38].copy_from_slice(&[8, 0, 0, 0]);
    frame[38..40].copy_from_slice(b"PX");
    frame[40..42].copy_from_slice(&(number as u16).to_be_bytes());
    let mut sum = Checksum::new();
    sum.add(&frame[34..]);
    let sum = sum.finish();
    frame[36..38].copy_from_slice(&sum.to_be_bytes());
}

fn is_echo_reply(frame: &[u8]) -> bool {
    let Some(head) = frame.get(..ICMP_PAYLOAD) else {
        return false;
    };
    let end = 14 + usize::from(u16::from_be_bytes([head[16], head[17]]));
    let mut sum = Checksum::new();
    sum.add(frame.get(34..end).unwrap_or_default());
    head[12..15] == [8, 0, 0x45]
        && head[23] == 1
        && head[34] == 0
        && head[38..40] == *b"PX"
        && sum.is_valid()
}

/// `MAC/IP:PORT`, one end of the traffic.
///
/// # Errors
/// Text that is something else.
pub fn endpoint(text: &str) -> Result<UdpEndpoint, String> {
    let expected =
        || format!("`{text}` is not MAC/IP:PORT, as in 02:00:00:00:00:0a/10.77.0.2:9000");
    let (mac, socket) = text.split_once('/').ok_or_else(expected)?;
    let mac: MacAddr = mac.parse().map_err(|_| expected())?;
    let socket: SocketAddrV4 = socket.parse().map_err(|_| expected())?;
    Ok(UdpEndpoint { mac, socket })
}

/// The ends that the tests use, unless told others.
#[must_use]
pub fn default_ends() -> (UdpEndpoint, UdpEndpoint) {
    let end = |mac: u8, host: u8, port| UdpEndpoint {
        mac: MacAddr([2, 0, 0, 0, 0, mac]),
        socket: SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, host), port),
    };
    (end(0x0a, 2, 40_000), end(0x0b, 1, 9000))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use pollux_pmd::mempool::{Mempool, PoolConfig};

    fn frames(kind: Kind, returned: Returned) -> Frames {
        Frames::new(default_ends(), kind, 7, &[64, 1518, 9018], returned).unwrap()
    }

    fn judge(frames: &mut Frames, bytes: &[u8]) -> Verdict {
        let pool = Mempool::new(PoolConfig {
            buffers: 64,
            ..PoolConfig::default()
        })
        .unwrap();
        let mut cache = pool.cache(32).unwrap();
        frames.judge(&cache.alloc_from(bytes).unwrap())
    }

    #[test]
    fn a_frame_is_known_by_its_number_and_one_flipped_bit_is_seen() {
        let mut frames = frames(Kind::Udp, Returned::Same);
        for number in 0..6 {
            let mut frame = frames.make(number).to_vec();
            assert_eq!(frame.len(), [60, 1514, 9014][number as usize % 3]);
            assert_eq!(judge(&mut frames, &frame), Verdict::Intact(number));
            // The destination station is covered by no checksum.
            frame[0] ^= 1;
            assert_eq!(judge(&mut frames, &frame), Verdict::Corrupt);
            frame[0] ^= 1;
            *frame.last_mut().unwrap() ^= 1;
            assert_eq!(judge(&mut frames, &frame), Verdict::Corrupt);
        }
    }

    #[test]
    fn swapped_frames_are_right_only_where_they_are_to_be_swapped() {
        let mut swapping = frames(Kind::Udp, Returned::Swapped);
        let mut buffer = vec![0; 9014];
        let swapped = swapping.write(5, Direction::Back, &mut buffer);
        assert_eq!(judge(&mut swapping, swapped), Verdict::Intact(5));
        assert_eq!(
            judge(&mut frames(Kind::Udp, Returned::Same), swapped),
            Verdict::Foreign
        );
    }

    #[test]
    fn a_ping_is_answered_by_its_payload() {
        let mut frames = frames(Kind::Ping, Returned::Reply);
        let mut frame = frames.make(4).to_vec();
        assert_eq!(judge(&mut frames, &frame), Verdict::Foreign);
        frame[34] = 0;
        // RFC 1624: the type went from 8 to 0.
        let sum = u16::from_be_bytes([frame[36], frame[37]]);
        let (sum, carry) = sum.overflowing_add(0x0800);
        let sum = sum + u16::from(carry);
        frame[36..38].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(judge(&mut frames, &frame), Verdict::Intact(4));
    }
}
