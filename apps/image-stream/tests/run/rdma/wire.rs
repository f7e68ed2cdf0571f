//! A wire between two ports that loses packets.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::capture::Capture;

/// Opcode of a RoCEv2 packet: behind the headers of Ethernet, IPv4 and UDP.
const OPCODE: usize = 42;
/// UC WRITE LAST with immediate, and its immediate value behind the BTH.
const LAST_WITH_IMMEDIATE: u8 = 0x29;
const IMMEDIATE: usize = OPCODE + 12;

/// From the port `s` to the port `r` by the sockets `ws` and `wr`, and back.
pub(super) struct Wire {
    stop: Arc<AtomicBool>,
    there: JoinHandle<u64>,
    back: JoinHandle<u64>,
}

impl Wire {
    /// Loses one packet in `every` on the way from `s` to `r`, and the last packets of the lines that announce
    /// `stacks`.
    pub(super) fn new(capture: &Capture, every: u64, stacks: &[u32]) -> Self {
        let bind = |name| UnixDatagram::bind(capture.path(name)).unwrap();
        let (ws, wr) = (bind("ws"), bind("wr"));
        let stop = Arc::new(AtomicBool::new(false));
        let mut stacks = stacks.to_vec();
        let mut packets = 0;
        let loses = move |frame: &[u8]| {
            packets += 1;
            let announced = frame.get(IMMEDIATE..IMMEDIATE + 4);
            let announced = announced.filter(|_| frame[OPCODE] == LAST_WITH_IMMEDIATE);
            let announced = announced.map(|number| u32::from_be_bytes(number.try_into().unwrap()));
            let at = stacks.iter().position(|&stack| Some(stack) == announced);
            at.map(|at| stacks.remove(at)).is_some() || packets % every == 0
        };
        let ends = (ws.try_clone().unwrap(), wr.try_clone().unwrap());
        let (to_r, to_s) = (capture.path("r"), capture.path("s"));
        Self {
            there: carry(ws, wr, to_r, Arc::clone(&stop), loses),
            back: carry(ends.1, ends.0, to_s, Arc::clone(&stop), |_| false),
            stop,
        }
    }

    /// Ends it; packets that it has lost.
    pub(super) fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.back.join().unwrap();
        self.there.join().unwrap()
    }
}

fn carry(
    from: UnixDatagram,
    by: UnixDatagram,
    to: PathBuf,
    stop: Arc<AtomicBool>,
    mut loses: impl FnMut(&[u8]) -> bool + Send + 'static,
) -> JoinHandle<u64> {
    from.set_read_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    std::thread::spawn(move || {
        let (mut lost, mut frame) = (0, vec![0; 1 << 16]);
        while !stop.load(Ordering::Relaxed) {
            let Ok(len) = from.recv(&mut frame) else {
                continue;
            };
            if loses(&frame[..len]) {
                lost += 1;
            } else {
                // A port that is not there yet, or any more, gets nothing.
                let _ = by.send_to(&frame[..len], &to);
            }
        }
        lost
    })
}
