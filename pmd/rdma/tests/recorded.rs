//! Conversations of libibverbs' and perftest's programs, recorded: in place of either end, this crate says
//! what it said, byte for byte.

// Outside of the test functions too, a test fails loudly.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use pollux_rdma::exchange::perftest::{Keys, Over, Report, Role, Session, Test};
use pollux_rdma::exchange::{Channel, pingpong};
use pollux_rdma::{Mtu, QpAddress};

const PATIENCE: Duration = Duration::from_secs(20);
const CLIENT: u8 = b'c';
const SERVER: u8 = b's';

fn unhex(text: &str) -> Vec<u8> {
    let pair = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    text.as_bytes().chunks(2).map(pair).collect()
}

/// The messages of a program, with their sender.
fn recorded(program: &str) -> Vec<(u8, Vec<u8>)> {
    let of = |line: &str| {
        let (name, rest) = line.split_once(' ')?;
        let (from, bytes) = rest.split_once(' ')?;
        (name == program).then(|| (from.as_bytes()[0], unhex(bytes)))
    };
    include_str!("data/tools.txt")
        .lines()
        .filter_map(of)
        .collect()
}

/// Replays all but one end; the result is what that end said, and what it said when it was recorded.
fn replay(program: &str, ours: u8) -> (Channel<UnixStream>, thread::JoinHandle<[Vec<u8>; 2]>) {
    let (our, mut peer) = UnixStream::pair().unwrap();
    peer.set_read_timeout(Some(PATIENCE)).unwrap();
    let messages = recorded(program);
    assert!(!messages.is_empty(), "{program}");
    let player = thread::spawn(move || {
        let [mut said, mut expected] = [Vec::new(), Vec::new()];
        for (from, bytes) in messages {
            if from == ours {
                let mut heard = vec![0; bytes.len()];
                peer.read_exact(&mut heard).unwrap();
                said.extend(heard);
                expected.extend(bytes);
            } else {
                peer.write_all(&bytes).unwrap();
            }
        }
        drop(peer.shutdown(std::net::Shutdown::Write));
        peer.read_to_end(&mut said).unwrap();
        [said, expected]
    });
    (Channel::new(our, PATIENCE), player)
}

#[test]
fn pingpong_as_recorded() {
    for program in ["ibv_rc_pingpong", "ibv_uc_pingpong"] {
        for end in [CLIENT, SERVER] {
            let told = |from| {
                let messages = recorded(program);
                let (_, text) = messages.into_iter().find(|one| one.0 == from).unwrap();
                pingpong::from_text(&text.try_into().unwrap()).unwrap()
            };
            let (own, other): (QpAddress, _) = match end {
                CLIENT => (told(CLIENT), told(SERVER)),
                _ => (told(SERVER), told(CLIENT)),
            };
            let (mut channel, player) = replay(program, end);
            let found = match end {
                CLIENT => pingpong::client(&mut channel, &own, |_| Ok(())),
                _ => pingpong::server(&mut channel, &own, |_| Ok(())),
            };
            assert_eq!(found.unwrap(), other);
            drop(channel);
            let [said, expected] = player.join().unwrap();
            assert_eq!(said, expected, "{program}");
        }
    }
}

#[test]
fn perftest_as_recorded() {
    for (program, test) in Test::ALL {
        let messages = recorded(program);
        let told = |end| {
            let mut keys = messages
                .iter()
                .filter(|(from, bytes)| *from == end && bytes.len() == 108);
            let (_, text) = keys.next().unwrap();
            Keys::from_text(text.as_slice().try_into().unwrap()).unwrap()
        };
        // What the client measured; a server's report is of uninitialised memory.
        let mut report = messages
            .iter()
            .filter(|(from, bytes)| *from == CLIENT && bytes.len() == 8)
            .map(|(_, bytes)| u64::from_be_bytes(bytes.as_slice().try_into().unwrap()));
        let mut number = || report.next().unwrap_or_default();
        let report = Report {
            bytes: number(),
            messages: number(),
            peak: f64::from_bits(number()),
            mean: f64::from_bits(number()),
            message_rate: f64::from_bits(number()),
        };
        for (end, role) in [(CLIENT, Role::Client), (SERVER, Role::Server)] {
            let (channel, player) = replay(program, end);
            let (session, common) =
                Session::open(channel, test, role, Over::Tcp, Mtu::B4096).unwrap();
            assert_eq!(common.mtu, Mtu::B4096);
            let ready = session.connect(&told(end), |_| Ok(())).unwrap();
            let last = if end == CLIENT { 3 } else { 2 };
            assert_eq!(ready.peer().qp.ip, Ipv4Addr::new(192, 168, 77, last));
            let theirs = ready.finish(&report, PATIENCE).unwrap();
            let [said, mut expected] = player.join().unwrap();
            if let (SERVER, Some(theirs)) = (end, theirs) {
                assert_eq!((theirs.bytes, theirs.messages), (4096, 20));
                let at = expected.len() - 5 - 108 - 40;
                expected[at..at + 40].copy_from_slice(&said[at..at + 40]);
            }
            assert_eq!(said, expected, "{program}, {role:?}");
        }
    }
}
