//! Exchanges with a peer that sends arbitrary bytes: they end, in an error or with values that can be
//! written and read again.
#![no_main]

use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use pollux_pmd_fuzz::Input;
use pollux_rdma::exchange::perftest::{Keys, Over, Report, Role, Session, Test};
use pollux_rdma::exchange::{Channel, Description, Stream, pingpong};
use pollux_rdma::{Key, Mtu, Psn, QpAddress, QpNumber, RemoteBuffer};

/// A peer that has sent all that it ever will, in parts of so many bytes.
struct Peer<'a> {
    input: &'a [u8],
    part: usize,
}

impl Read for Peer<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = into.len().min(self.part);
        self.input.read(&mut into[..len])
    }
}

impl Write for Peer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len().min(self.part))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Peer<'_> {
    fn set_patience(&self, _: Duration) -> io::Result<()> {
        Ok(())
    }
}

fn own() -> QpAddress {
    QpAddress {
        number: QpNumber::new(17).expect("a number of 24 bits"),
        psn: Psn::new(1),
        ip: Ipv4Addr::new(192, 168, 77, 1),
        mac: None,
    }
}

fn perftest(channel: Channel<Peer>, test: Test, role: Role, over: Over) {
    let Ok((mut session, common)) = Session::open(channel, test, role, over, Mtu::B4096) else {
        return;
    };
    assert!((4096..=2 << 20).contains(&common.cycle));
    if over == Over::QueuePair && session.around(|| Ok(())).is_err() {
        return;
    }
    let keys = Keys {
        qp: own(),
        reads: 1,
        buffer: RemoteBuffer {
            address: 0,
            key: Key(0),
        },
    };
    let Ok(ready) = session.connect(&keys, |_| Ok(())) else {
        return;
    };
    let peer = *ready.peer();
    assert_eq!(
        Keys::from_text(&peer.to_text()).expect("written here"),
        peer
    );
    let packed = Keys::from_packed(&peer.to_packed());
    assert_eq!(packed.expect("written here"), peer);
    drop(ready.finish(&Report::default(), Duration::from_secs(60)));
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let (way, part) = (input.u8(), usize::from(input.u8()).max(1));
    let peer = Peer {
        input: input.0,
        part,
    };
    let mut channel = Channel::new(peer, Duration::from_secs(60));
    let (role, over) = match way & 3 {
        0 => (Role::Client, Over::Tcp),
        1 => (Role::Server, Over::Tcp),
        2 => (Role::Client, Over::QueuePair),
        _ => (Role::Server, Over::QueuePair),
    };
    match way >> 2 {
        0 => {
            if let Ok(found) = pingpong::client(&mut channel, &own(), |_| Ok(())) {
                let again = pingpong::from_text(&pingpong::to_text(&found));
                assert_eq!(again.expect("written here"), found);
            }
        }
        1 => drop(pingpong::server(&mut channel, &own(), |_| Ok(()))),
        2 => {
            if let Ok(found) = Description::from_json(input.0) {
                let again = Description::from_json(found.to_json().as_bytes());
                assert_eq!(again.expect("written here"), found);
                drop(found.exchange(&mut channel));
            }
        }
        which => {
            let (_, test) = Test::ALL[usize::from(which) % Test::ALL.len()];
            perftest(channel, test, role, over);
        }
    }
});
