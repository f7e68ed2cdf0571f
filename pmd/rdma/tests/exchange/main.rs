//! Exchanges with scripted peers: what goes over the wire, and peers that are late, leave or lie.

// Outside of the test functions too, a test fails loudly.
#![allow(clippy::unwrap_used, clippy::panic)]

mod faults;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use pollux_rdma::exchange::perftest::{Keys, Over, Report, Role, Session, Test};
use pollux_rdma::exchange::{Channel, Description, ExchangeError, Listener, Offered, pingpong};
use pollux_rdma::{Access, Key, Mtu, Psn, QpAddress, QpKind, QpNumber, RemoteBuffer};

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

/// No clock holds such a time.
#[test]
fn a_patience_without_end_is_one() {
    let (mut ours, theirs) = pair();
    ours.within(Duration::MAX);
    let peer = thread::spawn(move || {
        let mut channel = Channel::new(theirs, Duration::MAX);
        description().exchange(&mut channel).unwrap()
    });
    assert_eq!(description().exchange(&mut ours).unwrap(), description());
    assert_eq!(peer.join().unwrap(), description());
    let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let to = listener.address().unwrap();
    let peer = thread::spawn(move || Channel::connect(to, Duration::MAX).unwrap());
    listener.accept(Duration::MAX).unwrap();
    peer.join().unwrap();
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
