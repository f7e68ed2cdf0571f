//! Peers that are late, leave or lie, and waits that are stopped.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use pollux_pmd::lcore::StopFlag;
use pollux_rdma::exchange::perftest::{self, Hello, Keys, Over, Report, Role, Session, Test};
use pollux_rdma::exchange::{Channel, Description, ExchangeError, Listener, Patience, pingpong};
use pollux_rdma::{ConnectError, Mtu};

use super::{KEYS, PATIENCE, PINGPONG, address, description, keys, pair, take};

/// A way to begin an exchange, with a peer that has said all that it will.
type Begin = fn(Channel<UnixStream>) -> Result<(), ExchangeError>;

const WAYS: [(&str, Begin); 5] = [
    ("pingpong client", |mut channel| {
        pingpong::client(&mut channel, &address(9, 1), |_| Ok(())).map(drop)
    }),
    ("pingpong server", |mut channel| {
        pingpong::server(&mut channel, &address(9, 1), |_| Ok(())).map(drop)
    }),
    ("perftest client", |channel| run(channel, Role::Client)),
    ("perftest server", |channel| run(channel, Role::Server)),
    ("json", |mut channel| {
        description().exchange(&mut channel).map(drop)
    }),
];

fn run(channel: Channel<UnixStream>, role: Role) -> Result<(), ExchangeError> {
    let (session, _) = Session::open(channel, Test::WriteBw, role, Over::Tcp, Mtu::B1024)?;
    let ready = session.connect(&keys(9, 1), |_| Ok(()))?;
    ready.finish(&Report::default(), PATIENCE).map(drop)
}

#[test]
fn a_peer_that_hangs_is_left_at_the_deadline() {
    for (way, begin) in WAYS {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let started = Instant::now();
        let failed = begin(Channel::new(ours, Duration::from_millis(40)));
        assert!(
            matches!(failed, Err(ExchangeError::Deadline { .. })),
            "{way}: {failed:?}"
        );
        assert!(started.elapsed() >= Duration::from_millis(40), "{way}");
        drop(theirs);
    }
    let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let none = listener.accept(Duration::from_millis(30));
    assert!(matches!(none, Err(ExchangeError::Deadline { .. })));
    let at = listener.address().unwrap();
    drop(listener);
    let none = Channel::<TcpStream>::connect(at, Duration::from_millis(60));
    assert!(matches!(none, Err(ExchangeError::Deadline { .. })));
}

#[test]
fn a_flag_ends_a_wait() {
    let stopped = |found: Result<(), ExchangeError>, what: &str| {
        assert!(
            matches!(found, Err(ExchangeError::Stopped { .. })),
            "{what}: {found:?}"
        );
    };
    let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    thread::scope(|scope| {
        // The flags are set while the peers are waited for, which do nothing.
        let soon = || {
            let stop = StopFlag::new();
            let patience = Patience::until(&stop, PATIENCE);
            scope.spawn(move || {
                thread::sleep(Duration::from_millis(40));
                stop.stop();
            });
            patience
        };
        for (way, begin) in WAYS {
            let (ours, theirs) = UnixStream::pair().unwrap();
            stopped(begin(Channel::new(ours, soon())), way);
            drop(theirs);
        }
        stopped(listener.accept(soon()).map(drop), "accept");
        let at = listener.address().unwrap();
        drop(listener);
        stopped(Channel::connect(at, soon()).map(drop), "connect");
    });
}

#[test]
fn two_ends_of_a_kind_note_it() {
    let note = *b"of test\0";
    let hello = Hello {
        mtu: Mtu::B1024,
        note,
    };
    let (ours, theirs) = UnixStream::pair().unwrap();
    let open = |stream, role| {
        let channel = Channel::new(stream, PATIENCE);
        let opened = Session::open(channel, Test::SendBw, role, Over::Tcp, hello);
        opened.unwrap().1.note
    };
    thread::scope(|scope| {
        let server = scope.spawn(|| open(theirs, Role::Server));
        assert_eq!(open(ours, Role::Client), note);
        assert_eq!(server.join().unwrap(), note);
    });
    // perftest has zeros there.
    let (channel, mut peer) = pair();
    peer.write_all(b"6.06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0\0\x403\0")
        .unwrap();
    let opened = Session::open(channel, Test::SendBw, Role::Server, Over::Tcp, hello);
    assert_eq!(opened.unwrap().1.note, [0; perftest::NOTE]);
    let mut version = [0; 16];
    version[..4].copy_from_slice(b"6.06");
    version[8..].copy_from_slice(&note);
    assert_eq!(take(&mut peer, 16), version);
}

/// A peer that says this, and closes the stream.
fn against(begin: Begin, says: &[u8]) -> ExchangeError {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(says).unwrap();
    theirs.shutdown(std::net::Shutdown::Write).unwrap();
    begin(Channel::new(ours, PATIENCE)).unwrap_err()
}

#[test]
fn a_peer_that_leaves_is_an_error() {
    for (way, begin) in WAYS {
        for says in [&b""[..], b"0000", b"6.06\0"] {
            let failed = against(begin, says);
            assert!(
                matches!(failed, ExchangeError::CutShort { .. }),
                "{way}: {failed}"
            );
        }
    }
}

#[test]
fn a_peer_that_sends_something_else_is_an_error() {
    for (way, begin) in WAYS {
        for says in [
            vec![b'\n'; 4096],
            vec![0xff; 1 << 17],
            b"HTTP/1.1 400 Bad Request\r\n".repeat(9),
        ] {
            let failed = against(begin, &says);
            assert!(
                matches!(failed, ExchangeError::Malformed { .. }),
                "{way}: {failed}"
            );
            assert!(failed.to_string().len() < 1000, "{way}: {failed}");
        }
    }
}

/// A text with some bytes changed.
fn with<const N: usize>(text: &[u8; N], at: usize, new: &str) -> [u8; N] {
    let mut text = *text;
    text[at..at + new.len()].copy_from_slice(new.as_bytes());
    text
}

#[test]
fn texts_that_lie_are_refused() {
    // Numbers of more than 24 bits, management's and multicast's queue pairs, other addresses, signs.
    for (at, new) in [
        (5, "1000000"),
        (5, "000000"),
        (5, "000001"),
        (5, "ffffff"),
        (5, "+000ab"),
        (5, " 0000ab"),
        (12, "1234567"),
        (19, "fe80"),
        (43, "e0000001"),
        (43, "00000000"),
        (51, "0"),
    ] {
        let text = with(PINGPONG, at, new);
        let failed = pingpong::from_text(&text);
        assert!(
            matches!(failed, Err(ExchangeError::Malformed { .. })),
            "{at} {new}"
        );
    }
    for (at, new) in [
        (5, "0100"),
        (10, "000001"),
        (10, "1000000"),
        (17, "-12345"),
        (50, "fe"),
        (86, "e0"),
        (107, ":"),
    ] {
        let text = with(KEYS, at, new);
        assert!(Keys::from_text(&text).is_err(), "{at} {new}");
    }
    // Keys of an end without a GID are 59 bytes.
    let mut short = *KEYS;
    short[58] = 0;
    assert!(
        Keys::from_text(&short)
            .unwrap_err()
            .to_string()
            .contains("-x")
    );
}

#[test]
fn perftest_that_lies_is_refused() {
    let begin = b"6.06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0\0\x403\0";
    for (at, new) in [
        (0, &b"5.69"[..]),
        (0, b"6,06"),
        (0, b"+6.1"),
        (0, b"\xff\xff\xff\xff"),
        (16, &[0xff; 4]),
        (16, &[0; 4]),
        (20, &[0x7f; 4]),
        (24, b"0"),
        (24, b"6"),
        (24, b"33"),
    ] {
        let mut says = begin.to_vec();
        says[at..at + new.len()].copy_from_slice(new);
        let failed = against(WAYS[2].1, &says);
        assert!(
            matches!(failed, ExchangeError::Malformed { .. }),
            "{at} {new:?}: {failed}"
        );
    }
    // Other keys in the second round.
    let other = with(KEYS, 10, "0000ac");
    let failed = against(WAYS[3].1, &[&begin[..], KEYS, &other].concat());
    assert!(failed.to_string().contains("before"), "{failed}");
}

#[test]
fn descriptions_that_lie_are_refused() {
    let good = description().to_json();
    assert!(Description::from_json(good.as_bytes()).is_ok());
    for (from, to, hint) in [
        ("\"version\":1", "\"version\":2", "1"),
        ("\"number\":171", "\"number\":1", "16777214"),
        ("\"number\":171", "\"number\":16777216", "16777214"),
        ("\"number\":171", "\"number\":-1", "version 1"),
        ("\"psn\":1193046", "\"psn\":16777216", "24 bits"),
        ("192.168.77.2", "224.0.0.1", "host"),
        ("192.168.77.2", "fe80::1", "version 1"),
        ("\"uc\"", "\"ud\"", "`rc` or `uc`"),
        ("4096,", "1500,", "2048"),
        ("\"bytes\":4096", "\"bytes\":4097", "2^64"),
        ("00000007", "7", "8 hexadecimal"),
        ("00000007", "+0000007", "8 hexadecimal"),
        ("\"write\"", "\"atomic\"", "`read`"),
        ("images", &"x".repeat(65), "64 bytes"),
        ("\"mtu\"", "\"extra\":0,\"mtu\"", "version 1"),
        ("\"kind\"", "\"mac\":\"02:00\",\"kind\"", "MAC"),
    ] {
        let bad = good.replace(from, to);
        assert_ne!(bad, good, "{from}");
        let failed = Description::from_json(bad.as_bytes()).unwrap_err();
        assert!(failed.to_string().contains(hint), "{to}: {failed}");
    }
    let long = good + &" ".repeat(1 << 16);
    assert!(Description::from_json(long.as_bytes()).is_err());
}

#[test]
fn a_queue_pair_that_cannot_be_connected_is_reported() {
    let (mut channel, mut peer) = pair();
    peer.write_all(PINGPONG).unwrap();
    let failed = pingpong::server(&mut channel, &address(9, 1), |peer| {
        Err(ConnectError::State(peer.number))
    });
    assert!(matches!(failed, Err(ExchangeError::Connect(_))));
    assert_eq!(perftest::PORT, pingpong::PORT);
}
