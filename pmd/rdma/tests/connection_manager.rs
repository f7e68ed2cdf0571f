//! Datagrams of connection management: against recorded ones, and as tshark reads them.

// Outside of the test functions too, a test fails loudly.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;

use pollux_pmd::mempool::time::Ns;
use pollux_rdma::cm::{CmEvent, CmOptions, ConnectionManager, Offer};
use pollux_rdma::{MAD_BYTES, Mad, Mtu, PathOptions, QpNumber};

const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 168, 77, 2);
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 168, 77, 3);
/// rping's port.
const PORT: u16 = 7174;
/// Where the message begins, behind the common header.
const BODY: usize = 24;

/// As rping does it with Linux's rdma_rxe.
fn rping() -> Offer {
    Offer {
        qp: QpNumber::new(0x21).unwrap(),
        path: PathOptions {
            mtu: Mtu::B4096,
            timeout: 19,
            retry: 7,
            rnr_retry: 7,
            gets: 1,
            ..PathOptions::default()
        },
        answers: 1,
    }
}

fn manager(ip: Ipv4Addr) -> ConnectionManager {
    let options = CmOptions {
        timeout: 20,
        ..CmOptions::new(ip)
    };
    let mut cm = ConnectionManager::new(options).unwrap();
    cm.listen(PORT);
    cm
}

/// A recorded datagram.
fn recorded(message: &str) -> [u8; MAD_BYTES] {
    let line = include_str!("data/rping.txt")
        .lines()
        .find(|line| line.starts_with(message))
        .unwrap();
    let hex = line.rsplit(' ').next().unwrap().as_bytes();
    let mut mad = [0; MAD_BYTES];
    for (byte, pair) in mad.iter_mut().zip(hex.chunks(2)) {
        *byte = u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    }
    mad
}

/// Takes fields of `from`: those that are new each time, or that this end has no need of.
fn patch(mad: &mut [u8; MAD_BYTES], from: &[u8; MAD_BYTES], fields: &[(usize, usize)]) {
    for &(at, len) in fields {
        mad[at..at + len].copy_from_slice(&from[at..at + len]);
    }
}

const TRANSACTION: (usize, usize) = (8, 8);
const LOCAL_ID: (usize, usize) = (BODY, 4);
const REMOTE_ID: (usize, usize) = (BODY + 4, 4);

fn from(host: Ipv4Addr, bytes: [u8; MAD_BYTES]) -> Mad {
    Mad { host, bytes }
}

fn sent(cm: &mut ConnectionManager) -> [u8; MAD_BYTES] {
    cm.transmit().unwrap().bytes
}

#[test]
fn a_client_says_what_rping_says() {
    let mut cm = manager(CLIENT);
    let id = cm.connect(SERVER, PORT, &rping(), &[], Ns(0)).unwrap();
    let (ours, mut theirs) = (sent(&mut cm), recorded("REQ"));
    let guid_psn_source = [(BODY + 16, 8), (BODY + 44, 3), (BODY + 142, 2)];
    patch(&mut theirs, &ours, &[TRANSACTION, LOCAL_ID]);
    patch(&mut theirs, &ours, &guid_psn_source);
    // Flow label and packet rate: none and any.
    patch(&mut theirs, &ours, &[(BODY + 88, 4)]);
    assert_eq!(ours, theirs);

    let mut rep = recorded("REP");
    rep[BODY + 4..BODY + 8].copy_from_slice(&ours[BODY..BODY + 4]);
    cm.receive(&from(SERVER, rep), Ns(0));
    let Some(CmEvent::Accepted { agreed, .. }) = cm.event() else {
        panic!("no answer");
    };
    assert_eq!(agreed.peer.number.get(), 0x21);
    assert_eq!(agreed.path.first_psn.unwrap().get(), 0xa1_4945);
    assert_eq!(agreed.peer.ip, SERVER);
    assert_eq!((agreed.path.rnr_retry, agreed.path.gets), (7, 1));
    cm.confirm(id, Ns(0)).unwrap();
    let (ours, mut theirs) = (sent(&mut cm), recorded("RTU"));
    patch(&mut theirs, &ours, &[TRANSACTION, LOCAL_ID]);
    assert_eq!(ours, theirs);
    cm.disconnect(id, Ns(0)).unwrap();
    let (ours, mut theirs) = (sent(&mut cm), recorded("DREQ"));
    patch(&mut theirs, &ours, &[TRANSACTION, LOCAL_ID]);
    assert_eq!(ours, theirs);
    let mut drep = recorded("DREP");
    drep[BODY + 4..BODY + 8].copy_from_slice(&ours[BODY..BODY + 4]);
    cm.receive(&from(SERVER, drep), Ns(0));
    assert_eq!(cm.event(), Some(CmEvent::Disconnected { id }));
}

#[test]
fn a_server_says_what_rping_says() {
    let mut cm = manager(SERVER);
    cm.receive(&from(CLIENT, recorded("REQ")), Ns(0));
    let Some(CmEvent::Requested {
        id,
        peer,
        port,
        mtu,
        ..
    }) = cm.event()
    else {
        panic!("no request");
    };
    assert_eq!((peer, port, mtu), (CLIENT, PORT, Mtu::B4096));
    let agreed = cm.accept(id, &rping(), &[]).unwrap();
    assert_eq!(cm.transmit(), None, "the queue pair is connected first");
    cm.confirm(id, Ns(0)).unwrap();
    assert_eq!(agreed.peer.number.get(), 0x21);
    assert_eq!(agreed.path.first_psn.unwrap().get(), 0xf4_9e07);
    let (ours, mut theirs) = (sent(&mut cm), recorded("REP"));
    let psn_delay_guid = [(BODY + 20, 3), (BODY + 26, 1), (BODY + 28, 8)];
    patch(&mut theirs, &ours, &[LOCAL_ID]);
    patch(&mut theirs, &ours, &psn_delay_guid);
    assert_eq!(ours, theirs);

    let with_id = |message| {
        let mut mad = recorded(message);
        mad[REMOTE_ID.0..REMOTE_ID.0 + 4].copy_from_slice(&ours[BODY..BODY + 4]);
        mad
    };
    cm.receive(&from(CLIENT, with_id("RTU")), Ns(0));
    assert_eq!(cm.event(), Some(CmEvent::Established { id }));
    cm.receive(&from(CLIENT, with_id("DREQ")), Ns(0));
    assert_eq!(cm.event(), Some(CmEvent::Disconnected { id }));
    let (ours, mut theirs) = (sent(&mut cm), recorded("DREP"));
    patch(&mut theirs, &ours, &[LOCAL_ID]);
    assert_eq!(ours, theirs);
}

/// A datagram of queue pair 1 in a frame; the ICRC, which tshark does not check, is 0.
fn frame(from: Ipv4Addr, to: Ipv4Addr, mad: &[u8; MAD_BYTES]) -> Vec<u8> {
    let mut frame = [2, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 2, 8, 0].to_vec();
    // IPv4, UDP to port 4791.
    frame.extend([0x45, 0, 1, 52, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    frame.extend(from.octets().iter().chain(&to.octets()));
    frame.extend([0xc0, 0, 0x12, 0xb7, 1, 32, 0, 0]);
    // BTH: UD SEND ONLY to queue pair 1; DETH: Q_Key of management, from queue pair 1.
    frame.extend([0x64, 0, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 0]);
    frame.extend([0x80, 1, 0, 0, 0, 0, 0, 1]);
    frame.extend(mad);
    frame.extend([0; 4]);
    frame
}

/// Frames in a capture file (pcap 2.4, Ethernet).
fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 65535, 1] {
        file.extend(word.to_le_bytes());
    }
    for (second, frame) in frames.iter().enumerate() {
        let len = frame.len() as u32;
        for word in [second as u32, 0, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// All six messages, and REJ, of two managers.
fn conversation() -> Vec<Vec<u8>> {
    let (mut client, mut server) = (manager(CLIENT), manager(SERVER));
    let mut frames = Vec::new();
    let mut pass =
        |sender: &mut ConnectionManager, to: &mut ConnectionManager, ips: [Ipv4Addr; 2]| {
            while let Some(datagram) = sender.transmit() {
                assert_eq!(datagram.host, ips[1]);
                frames.push(frame(ips[0], ips[1], &datagram.bytes));
                to.receive(&from(ips[0], datagram.bytes), Ns(0));
            }
        };
    let (there, back) = ([CLIENT, SERVER], [SERVER, CLIENT]);
    let id = client
        .connect(SERVER, PORT, &rping(), b"stack of lines", Ns(0))
        .unwrap();
    pass(&mut client, &mut server, there);
    let Some(CmEvent::Requested { id: asked, .. }) = server.event() else {
        panic!("no request");
    };
    server.accept(asked, &rping(), b"welcome").unwrap();
    server.confirm(asked, Ns(0)).unwrap();
    pass(&mut server, &mut client, back);
    client.confirm(id, Ns(0)).unwrap();
    pass(&mut client, &mut server, there);
    client.disconnect(id, Ns(0)).unwrap();
    pass(&mut client, &mut server, there);
    pass(&mut server, &mut client, back);
    client
        .connect(SERVER, PORT + 1, &rping(), &[], Ns(0))
        .unwrap();
    pass(&mut client, &mut server, there);
    pass(&mut server, &mut client, back);
    frames
}

/// A capture that tshark reads.
struct Capture {
    folder: tempfile::TempDir,
}

impl Capture {
    const FILE: &str = "cm.pcap";

    fn new(frames: &[Vec<u8>]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(Self::FILE), capture(frames)).unwrap();
        Self { folder }
    }

    fn tshark(&self, options: &[&str]) -> String {
        let mut command = Command::new("tshark");
        command.arg("-r").arg(self.folder.path().join(Self::FILE));
        let output = command.args(options).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Fields of each frame; numbers are decimal.
    fn fields(&self, fields: &[&str]) -> Vec<Vec<String>> {
        let mut options = vec!["-T", "fields", "-E", "separator=,"];
        for field in fields {
            options.extend(["-e", field]);
        }
        let number = |text: &str| match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).unwrap().to_string(),
            None => text.into(),
        };
        let text = self.tshark(&options);
        text.lines()
            .map(|line| line.split(',').map(number).collect())
            .collect()
    }
}

/// Fields of REQ, and what they are.
const REQ: [(&str, &str); 18] = [
    ("localqpn", "33"),
    ("responderres", "1"),
    ("initdepth", "1"),
    ("remoteresptout", "20"),
    ("transpsvctype", "0"),
    ("localresptout", "20"),
    ("retrcount", "7"),
    ("pkey", "65535"),
    ("pppmtu", "5"),
    ("rnrretrcount", "7"),
    ("maxcmretr", "15"),
    ("prim_localgid_ipv4", "192.168.77.2"),
    ("prim_remotegid_ipv4", "192.168.77.3"),
    ("prim_localacktout", "19"),
    ("serviceid.dport", "7174"),
    ("ip_cm.ipv", "4"),
    ("ip_cm.sip4", "192.168.77.2"),
    ("ip_cm.dip4", "192.168.77.3"),
];

#[test]
fn tshark_reads_what_was_meant() {
    if Command::new("tshark").arg("--version").output().is_err() {
        println!("skipped: no tshark: apt-get install tshark");
        return;
    }
    let frames = conversation();
    let capture = Capture::new(&frames);
    let wrong = "_ws.malformed or _ws.expert.severity >= \"Warning\"";
    assert_eq!(capture.tshark(&["-Y", wrong]), "");
    let kinds = capture.fields(&["infiniband.mad.attributeid", "infiniband.deth.q_key"]);
    let kinds = kinds.iter().map(|line| line.join(" "));
    // REQ, REP, RTU, DREQ, DREP; then a port without a program: REQ, REJ.
    let expected =
        [0x10, 0x13, 0x14, 0x15, 0x16, 0x10, 0x12].map(|kind| format!("{kind} 2147549184"));
    assert_eq!(kinds.collect::<Vec<_>>(), expected);

    let names = REQ.map(|(name, _)| format!("infiniband.cm.req.{name}"));
    let req = capture.fields(&names.each_ref().map(String::as_str));
    assert_eq!(req[0], REQ.map(|(_, value)| value));
    let rep = &capture.fields(&[
        "infiniband.cm.rep.localqpn",
        "infiniband.cm.rep.remotecommid",
        "infiniband.cm.rep.rnrretrcount",
    ])[1];
    // The identifier in REQ, behind the headers of the frame.
    let at = 14 + 20 + 8 + 12 + 8 + BODY;
    let id = u32::from_be_bytes(frames[0][at..at + 4].try_into().unwrap());
    assert_eq!(*rep, ["33", &id.to_string(), "7"]);
    let psn = capture.fields(&["infiniband.cm.req.startpsn", "infiniband.cm.rep.startpsn"]);
    assert_ne!(psn[0][0], psn[1][1], "each end's first number is its own");
    let rej = &capture.fields(&["infiniband.cm.rej.reason", "infiniband.cm.rej.msgrej"])[6];
    assert_eq!(*rej, ["8", "0"]);
    let dreq = &capture.fields(&["infiniband.cm.req.remoteqpneecn"])[3];
    assert_eq!(*dreq, ["33"]);
    let private = "infiniband.cm.req.ip_cm.private contains \"stack of lines\"";
    assert_eq!(capture.tshark(&["-Y", private]).lines().count(), 1);
}
