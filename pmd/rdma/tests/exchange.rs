//! Exchanges with scripted peers: what goes over the wire, and peers that are late, leave or lie.

// Outside of the test functions too, a test fails loudly.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use pollux_pmd::lcore::StopFlag;
use pollux_rdma::exchange::perftest::{self, Hello, Keys, Over, Report, Role, Session, Test};
use pollux_rdma::exchange::{
    Channel, Description, ExchangeError, Listener, Offered, Patience, pingpong,
};
use pollux_rdma::{Access, ConnectError, Key, Mtu, Psn, QpAddress, QpKind, QpNumber, RemoteBuffer};

const PATIENCE: Duration = Duration::from_secs(20);

fn address(number: u32, last: u8) -> QpAddress {
    QpAddress {
        number: QpNumber::new(number).unwrap(),
        psn: Psn::new(0x12_3456),
        ip: Ipv4Addr::new(192, 168, 77, last),
        mac: None,
    }
}

fn keys(number: u32, last: u8) -> Keys {
    Keys {
        qp: address(number, last),
        reads: 16,
        buffer: RemoteBuffer {
            address: 0x7f12_3456_7000,
            key: Key(0x0102_0304),
        },
    }
}

/// What `printf` makes of the tools' formats.
const PINGPONG: &[u8; 52] = b"0000:0000ab:123456:00000000000000000000ffffc0a84d02\0";
const KEYS: &[u8; 108] = b"0000:0010:0000ab:123456:01020304:00007f1234567000:\
    00:00:00:00:00:00:00:00:00:00:ff:ff:c0:a8:4d:02:00000000:\0";

fn pair() -> (Channel<UnixStream>, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_read_timeout(Some(PATIENCE)).unwrap();
    (Channel::new(ours, PATIENCE), theirs)
}

fn take(stream: &mut UnixStream, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn pingpong_both_roles() {
    let own = address(0xab, 2);
    assert_eq!(&pingpong::to_text(&own), PINGPONG);
    assert_eq!(pingpong::from_text(PINGPONG).unwrap(), own);

    let (mut channel, mut peer) = pair();
    let tool = thread::spawn(move || {
        let asked = take(&mut peer, 52);
        peer.write_all(PINGPONG).unwrap();
        (asked, take(&mut peer, 5))
    });
    let mut connected = None;
    let found = pingpong::client(&mut channel, &address(0xcd, 1), |peer| {
        connected = Some(*peer);
        Ok(())
    });
    assert_eq!(found.unwrap(), own);
    assert_eq!(connected, Some(own));
    let (asked, done) = tool.join().unwrap();
    assert_eq!(
        asked,
        b"0000:0000cd:123456:00000000000000000000ffffc0a84d01\0"
    );
    assert_eq!(done, b"done\0");

    let (mut channel, mut peer) = pair();
    let tool = thread::spawn(move || {
        peer.write_all(PINGPONG).unwrap();
        let answer = take(&mut peer, 52);
        peer.write_all(b"done\0").unwrap();
        answer
    });
    let found = pingpong::server(&mut channel, &address(0xcd, 1), |_| Ok(()));
    assert_eq!(found.unwrap(), own);
    assert_eq!(tool.join().unwrap()[5..11], *b"0000cd");
}

/// Messages of perftest's programs until the first packet, and behind the last, by their bytes.
fn script(test: &str) -> (&'static [usize], &'static [usize]) {
    const K: usize = 108;
    match test {
        "ib_send_bw" | "ib_send_lat" | "ib_read_lat" => (&[16, 4, 4, 2, K, K, K, K], &[K]),
        "ib_write_bw" | "ib_read_bw" => (&[16, 4, 4, 2, K, K, K], &[K, 8, 8, 8, 8, 8, K]),
        "ib_write_lat" => (&[16, 4, 4, 2, K, K, K, K], &[]),
        _ => panic!("{test}"),
    }
}

/// What a program says in a step, if the step has so many bytes.
fn line(step: usize, len: usize) -> Vec<u8> {
    match (len, step) {
        (16, _) => b"6.06\0\0\0\0\0\0\0\0\0\0\0\0".to_vec(),
        (4, 1) => 16384_u32.to_be_bytes().to_vec(),
        (4, _) => 64_u32.to_be_bytes().to_vec(),
        (2, _) => b"3\0".to_vec(),
        (8, _) => 1.5_f64.to_bits().to_be_bytes().to_vec(),
        _ => KEYS.to_vec(),
    }
}

/// A program in a role, and all that it was told.
fn tool(mut peer: UnixStream, role: Role, test: &'static str) -> Vec<Vec<u8>> {
    let (before, behind) = script(test);
    let mut heard = Vec::new();
    for (step, &len) in before.iter().chain(behind).enumerate() {
        if role == Role::Client {
            peer.write_all(&line(step, len)).unwrap();
        }
        heard.push(take(&mut peer, len));
        if role == Role::Server {
            peer.write_all(&line(step, len)).unwrap();
        }
    }
    if !behind.is_empty() {
        peer.write_all(b"done\0").unwrap();
        heard.push(take(&mut peer, 5));
    }
    heard
}

#[test]
fn perftest_both_roles() {
    assert_eq!(&keys(0xab, 2).to_text(), KEYS);
    assert_eq!(Keys::from_text(KEYS).unwrap(), keys(0xab, 2));
    for (name, test) in Test::ALL {
        assert_eq!(name.parse::<Test>().unwrap(), test);
        for (ours, theirs) in [(Role::Client, Role::Server), (Role::Server, Role::Client)] {
            let (channel, peer) = pair();
            let tool = thread::spawn(move || tool(peer, theirs, name));
            let (session, common) =
                Session::open(channel, test, ours, Over::Tcp, Mtu::B4096).unwrap();
            assert_eq!(common.mtu, Mtu::B1024);
            assert_eq!((common.cycle, common.cache_line), (16384, 64));
            let ready = session.connect(&keys(0xcd, 1), |_| Ok(())).unwrap();
            assert_eq!(*ready.peer(), keys(0xab, 2));
            let report = Report {
                bytes: 65536,
                messages: 5000,
                mean: 14.0,
                ..Report::default()
            };
            let theirs = ready.finish(&report, PATIENCE).unwrap();
            let heard = tool.join().unwrap();
            assert_eq!(heard[0][..5], *b"6.06\0");
            assert_eq!(heard[3], b"5\0");
            assert_eq!(
                theirs.is_some(),
                name.ends_with("e_bw") || name == "ib_read_bw"
            );
            if let Some(theirs) = theirs {
                assert!((theirs.mean - 1.5).abs() < 1e-9);
                let n = heard.len();
                assert_eq!(heard[n - 7], 65536_u64.to_be_bytes());
                assert_eq!(heard[n - 4], 14.0_f64.to_bits().to_be_bytes());
            }
        }
    }
}

/// With option -R the exchange is one of SENDs, here recorded of `ib_write_bw -R` with Linux's rdma_rxe.
#[test]
fn perftest_over_a_queue_pair() {
    const THEIRS: [u8; 56] = [
        0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x1e, 0, 0x62, 0x84, 0x56, 0, 0, 0x0e, 0xb3, 0, 0, 0, 0,
        0, 0, 0x55, 0xc3, 0x43, 0x1c, 0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 168,
        77, 3, 0, 0, 0, 0, 0, 0, 0, 1,
    ];
    let keys_of_server = Keys::from_packed(&THEIRS).unwrap();
    assert_eq!(keys_of_server.qp.number.get(), 0x1e);
    assert_eq!(keys_of_server.qp.psn.get(), 0x62_8456);
    assert_eq!(keys_of_server.qp.ip, Ipv4Addr::new(192, 168, 77, 3));
    assert_eq!(keys_of_server.buffer.key, Key(0xeb3));
    assert_eq!(keys_of_server.buffer.address, 0x55c3_431c_a000);
    let again = keys_of_server.to_packed();
    assert_eq!(again[..52], THEIRS[..52]);

    let (channel, mut peer) = pair();
    let tool = thread::spawn(move || {
        let (before, behind) = script("ib_write_bw");
        let rounds = [108, 108].iter().chain(&before[4..]).chain(behind);
        for (step, &len) in before[..4].iter().chain(rounds).enumerate() {
            let says = match (len, step) {
                (108, 4 | 5) => vec![0; 56],
                (108, _) => THEIRS.to_vec(),
                _ => line(step, len),
            };
            take(&mut peer, says.len());
            peer.write_all(&says).unwrap();
        }
        let mut rest = Vec::new();
        peer.read_to_end(&mut rest).unwrap();
        rest
    });
    let (mut session, _) = Session::open(
        channel,
        Test::WriteBw,
        Role::Client,
        Over::QueuePair,
        Mtu::B1024,
    )
    .unwrap();
    session.around(|| Ok(())).unwrap();
    let ready = session.connect(&keys(0xcd, 1), |_| Ok(())).unwrap();
    assert_eq!(*ready.peer(), keys_of_server);
    ready.finish(&Report::default(), PATIENCE).unwrap();
    assert_eq!(tool.join().unwrap(), b"");
}

fn description() -> Description {
    Description {
        qp: address(0xab, 2),
        kind: QpKind::Unreliable,
        mtu: Mtu::B4096,
        buffers: vec![Offered {
            name: "images".into(),
            buffer: RemoteBuffer {
                address: u64::MAX - 4095,
                key: Key(7),
            },
            bytes: 4096,
            access: Access::WRITE,
        }],
    }
}

#[test]
fn descriptions_over_a_socket_and_a_file() {
    let mut theirs = description();
    theirs.mtu = Mtu::B1024;
    let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let to = listener.address().unwrap();
    let expected = theirs.clone();
    let peer = thread::spawn(move || {
        let mut channel = Channel::connect(to, PATIENCE).unwrap();
        theirs.exchange(&mut channel).unwrap()
    });
    let mut channel = listener.accept(PATIENCE).unwrap();
    let ours = description();
    let found = ours.exchange(&mut channel).unwrap();
    assert_eq!(found, expected);
    assert_eq!(peer.join().unwrap(), ours);
    assert_eq!(ours.agree(&found).unwrap(), Mtu::B1024);
    assert!(found.buffer("images").is_some() && found.buffer("other").is_none());

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("end.json");
    let later = path.clone();
    let writer = thread::spawn(move || description().to_file(&later).unwrap());
    assert_eq!(Description::from_file(&path, PATIENCE).unwrap(), ours);
    writer.join().unwrap();
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "keys are for the owner alone");
    let absent = Description::from_file(&folder.path().join("absent"), Duration::from_millis(30));
    assert!(matches!(absent, Err(ExchangeError::Deadline { .. })));
}

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
