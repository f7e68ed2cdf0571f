//! A receiver of EJFAT, from the published description of the headers alone
//! (docs/formats/ejfat.md names it): puts events together in any order, and looks at every field.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A complete event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) number: u64,
    pub(crate) data_id: u16,
    pub(crate) bytes: Vec<u8>,
}

/// A synchronization message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sync {
    pub(crate) source: u64,
    pub(crate) event: u64,
    pub(crate) rate_hz: u64,
    pub(crate) unix_ns: u64,
}

/// An event of which bytes are missing.
#[derive(Default)]
struct Partial {
    bytes: Vec<u8>,
    seen: usize,
}

/// Puts the events of one sender together.
#[derive(Default)]
pub(crate) struct Reassembler {
    partial: BTreeMap<(u64, u16), Partial>,
    /// In the order of completion.
    pub(crate) events: Vec<Event>,
    pub(crate) datagrams: u64,
    pub(crate) longest: usize,
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |sum, &byte| sum * 256 + u64::from(byte))
}

impl Reassembler {
    /// Takes a datagram as a sender sends it to the load balancer.
    pub(crate) fn take(&mut self, datagram: &[u8]) {
        self.datagrams += 1;
        self.longest = self.longest.max(datagram.len());
        let (balancer, rest) = datagram.split_at(16);
        assert_eq!(&balancer[..2], b"LB");
        assert_eq!((balancer[2], balancer[3]), (2, 1), "versions");
        assert_eq!(number(&balancer[4..6]), 0, "reserved");
        let (header, piece) = rest.split_at(20);
        assert_eq!((header[0] >> 4, header[0] & 15, header[1]), (1, 0, 0));
        let data_id = number(&header[2..4]) as u16;
        let offset = number(&header[4..8]) as usize;
        let length = number(&header[8..12]) as usize;
        let event = number(&header[12..20]);
        assert_eq!(
            number(&balancer[8..16]),
            event,
            "both headers have the event"
        );
        assert!(!piece.is_empty() && offset + piece.len() <= length);
        let key = (event, data_id);
        let partial = self.partial.entry(key).or_default();
        partial.bytes.resize(length, 0);
        partial.bytes[offset..offset + piece.len()].copy_from_slice(piece);
        partial.seen += piece.len();
        if partial.seen == length {
            let Partial { bytes, .. } = self.partial.remove(&key).unwrap();
            self.events.push(Event {
                number: event,
                data_id,
                bytes,
            });
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.partial.is_empty()
    }
}

pub(crate) fn sync(datagram: &[u8]) -> Sync {
    assert_eq!(datagram.len(), 28);
    assert_eq!(&datagram[..4], b"LC\x01\0");
    Sync {
        source: number(&datagram[4..8]),
        event: number(&datagram[8..16]),
        rate_hz: number(&datagram[16..20]),
        unix_ns: number(&datagram[20..28]),
    }
}

/// A socket that a thread reads, until it is to end.
pub(crate) struct Listener {
    pub(crate) address: String,
    end: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Vec<u8>>>,
}

impl Listener {
    pub(crate) fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let wait = Duration::from_millis(20);
        socket.set_read_timeout(Some(wait)).unwrap();
        let end = Arc::<AtomicBool>::default();
        let (address, ends) = (socket.local_addr().unwrap(), Arc::clone(&end));
        let thread = std::thread::spawn(move || {
            let (mut datagrams, mut buffer) = (Vec::new(), vec![0; 65_536]);
            loop {
                let ends = ends.load(Ordering::Acquire);
                match socket.recv(&mut buffer) {
                    Ok(len) => datagrams.push(buffer[..len].to_vec()),
                    Err(_) if ends => return datagrams,
                    Err(_) => {}
                }
            }
        });
        Self {
            address: address.to_string(),
            end,
            thread,
        }
    }

    /// All datagrams, after their sender has ended.
    pub(crate) fn finish(self) -> Vec<Vec<u8>> {
        self.end.store(true, Ordering::Release);
        self.thread.join().unwrap()
    }
}
