//! Datagrams of connection management: against recorded ones, and as tshark reads them.

use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;

use pollux_pmd::mempool::time::Ns;
use pollux_rdma::cm::{CmEvent, CmOptions, ConnectionManager, MAD_BYTES, Offer};
use pollux_rdma::{Mtu, PathOptions, QpNumber};

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
            ..PathOptions::default()
        },
        reads_in: 1,
        reads_out: 1,
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

fn sent(cm: &mut ConnectionManager) -> [u8; MAD_BYTES] {
    cm.transmit().unwrap().mad
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
    cm.receive(SERVER, &rep, Ns(0));
    let Some(CmEvent::Accepted { agreed, .. }) = cm.event() else {
        panic!("no answer");
    };
    assert_eq!(agreed.peer.number.get(), 0x21);
    assert_eq!(agreed.path.first_psn.unwrap().get(), 0xa1_4945);
    assert_eq!(agreed.peer.ip, SERVER);
    assert_eq!((agreed.path.rnr_retry, agreed.reads_out), (7, 1));
    cm.confirm(id).unwrap();
    let (ours, mut theirs) = (sent(&mut cm), recorded("RTU"));
    patch(&mut theirs, &ours, &[TRANSACTION, LOCAL_ID]);
    assert_eq!(ours, theirs);
    cm.disconnect(id, Ns(0)).unwrap();
    let (ours, mut theirs) = (sent(&mut cm), recorded("DREQ"));
    patch(&mut theirs, &ours, &[TRANSACTION, LOCAL_ID]);
    assert_eq!(ours, theirs);
    let mut drep = recorded("DREP");
    drep[BODY + 4..BODY + 8].copy_from_slice(&ours[BODY..BODY + 4]);
    cm.receive(SERVER, &drep, Ns(0));
    assert_eq!(cm.event(), Some(CmEvent::Disconnected { id }));
}

#[test]
fn a_server_says_what_rping_says() {
    let mut cm = manager(SERVER);
    cm.receive(CLIENT, &recorded("REQ"), Ns(0));
    let Some(CmEvent::Requested { id, peer, port, mtu, .. }) = cm.event() else {
        panic!("no request");
    };
    assert_eq!((peer, port, mtu), (CLIENT, PORT, Mtu::B4096));
    let agreed = cm.accept(id, &rping(), &[], Ns(0)).unwrap();
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
    cm.receive(CLIENT, &with_id("RTU"), Ns(0));
    assert_eq!(cm.event(), Some(CmEvent::Established { id }));
    cm.receive(CLIENT, &with_id("DREQ"), Ns(0));
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
    let mut pass = |from: &mut ConnectionManager, to: &mut ConnectionManager, ips: [Ipv4Addr; 2]| {
        while let Some(datagram) = from.transmit() {
            assert_eq!(datagram.to, ips[1]);
            frames.push(frame(ips[0], ips[1], &datagram.mad));
            to.receive(ips[0], &datagram.mad, Ns(0));
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
    server.accept(asked, &rping(), b"welcome", Ns(0)).unwrap();
    pass(&mut server, &mut client, back);
    client.confirm(id).unwrap();
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

#[test]
fn tshark_reads_what_was_meant() {
    if Command::new("tshark").arg("--version").output().is_err() {
        println!("skipped: no tshark: apt-get install tshark");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cm.pcap");
    let frames = conversation();
    fs::write(&file, capture(&frames)).unwrap();
    let tshark = |options: &[&str]| {
        let mut command = Command::new("tshark");
        let output = command.arg("-r").arg(&file).args(options).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let malformed = tshark(&["-Y", "_ws.malformed or _ws.expert.severity >= \"Warning\""]);
    assert_eq!(malformed, "");
    let fields = |fields: &[&str]| {
        let mut options = vec!["-T", "fields", "-E", "separator=,"];
        for field in fields {
            options.extend(["-e", field]);
        }
        let text = tshark(&options);
        let lines = text.lines().map(|line| line.split(',').map(String::from).collect());
        lines.collect::<Vec<Vec<String>>>()
    };
    let kinds = fields(&["infiniband.mad.attributeid", "infiniband.deth.q_key"]);
    let expected = ["0x0010", "0x0013", "0x0014", "0x0015", "0x0016", "0x0010", "0x0012"];
    assert_eq!(kinds.iter().map(|line| &line[0]).collect::<Vec<_>>(), expected);
    assert!(kinds.iter().all(|line| line[1].ends_with("80010000")));

    let req = &fields(&[
        "infiniband.cm.req.localqpn",
        "infiniband.cm.req.responderres",
        "infiniband.cm.req.initdepth",
        "infiniband.cm.req.remoteresptout",
        "infiniband.cm.req.transpsvctype",
        "infiniband.cm.req.localresptout",
        "infiniband.cm.req.retrcount",
        "infiniband.cm.req.pkey",
        "infiniband.cm.req.pppmtu",
        "infiniband.cm.req.rnrretrcount",
        "infiniband.cm.req.maxcmretr",
        "infiniband.cm.req.prim_localgid_ipv4",
        "infiniband.cm.req.prim_remotegid_ipv4",
        "infiniband.cm.req.prim_localacktout",
        "infiniband.cm.req.serviceid.dport",
        "infiniband.cm.req.ip_cm.ipv",
        "infiniband.cm.req.ip_cm.sip4",
        "infiniband.cm.req.ip_cm.dip4",
        "infiniband.cm.req.startpsn",
    ])[0];
    let expected = [
        "0x000021", "0x01", "0x01", "0x14", "0x00", "0x14", "0x07", "0xffff", "0x05", "0x07", "0x0f",
        "192.168.77.2", "192.168.77.3", "0x13", "0x1c06", "0x04", "192.168.77.2", "192.168.77.3",
    ];
    let numbers = |text: &str| {
        let hex = text.strip_prefix("0x").map(|hex| u64::from_str_radix(hex, 16));
        hex.map_or_else(|| text.into(), |number| number.unwrap().to_string())
    };
    let read: Vec<String> = req.iter().take(18).map(|text| numbers(text)).collect();
    assert_eq!(read, expected.map(numbers));
    let rep = &fields(&[
        "infiniband.cm.rep.localqpn",
        "infiniband.cm.rep.remotecommid",
        "infiniband.cm.rep.rnrretrcount",
        "infiniband.cm.rep.startpsn",
    ])[1];
    let word = |at: usize| u32::from_be_bytes(frames[0][at..at + 4].try_into().unwrap());
    let mad = 14 + 20 + 8 + 12 + 8;
    assert_eq!(numbers(&rep[0]), "33");
    assert_eq!(numbers(&rep[1]), word(mad + BODY).to_string());
    assert_eq!(numbers(&rep[2]), "7");
    assert_ne!(rep[3], req[18], "each end's first number is its own");
    let rej = &fields(&["infiniband.cm.rej.reason", "infiniband.cm.rej.msgrej"])[6];
    assert_eq!((numbers(&rej[0]).as_str(), numbers(&rej[1]).as_str()), ("8", "0"));
    let dreq = &fields(&["infiniband.cm.req.remoteqpneecn"])[3];
    assert_eq!(numbers(&dreq[0]), "33");
    assert!(tshark(&["-V"]).contains(&hex(b"stack of lines")));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
