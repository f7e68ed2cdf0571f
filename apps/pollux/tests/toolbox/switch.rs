//! `pollux switch`: between files, and between hosts in namespaces, beside the kernel's bridge.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pollux_pmd::mempool::Burst;
use pollux_pmd::{PortConfig, Registry, RxQueue, StartedPort, TxQueue};
use pollux_pmd_testkit::netns::{Namespace, PATIENCE};
use pollux_pmd_testkit::ports::pool;

use crate::support::{Capture, Folder, Running, packets, refused, reported, run, text};

/// A frame between addresses that end in these bytes; `None`: to all.
fn frame(dst: Option<u8>, src: u8, len: usize) -> Vec<u8> {
    let mac = |last| [2, 0, 0, 0, 1, last];
    let mut frame = [&dst.map_or([0xff; 6], mac)[..], &mac(src), &[0x88, 0xb5]].concat();
    frame.extend((0..len - frame.len()).map(|n| n as u8));
    frame
}

#[test]
fn a_recording_is_switched_to_files() {
    let capture = Capture::of_frames(&[
        frame(None, 1, 100),
        frame(Some(9), 1, 1514),
        // Its destination is where it came from.
        frame(Some(1), 2, 60),
        vec![0x02; 13],
    ]);
    let folder = Folder::new();
    let (one, two) = (folder.sink("1.pcapng"), folder.sink("2.pcapng"));
    let report = reported("switch", &[&capture.spec(), &one, &two], 0);
    let out = ["1.pcapng", "2.pcapng"].map(|name| packets(&folder.path(name)));
    let bytes: Vec<_> = out[0].iter().map(|packet| &packet.1).collect();
    assert_eq!(bytes, [&frame(None, 1, 100), &frame(Some(9), 1, 1514)]);
    assert_eq!(out[0], out[1]);
    let ledger = &report["ledger"];
    assert_eq!(ledger["from_wire"], 4);
    assert_eq!(ledger["delivered"], 2);
    assert_eq!(ledger["dropped"]["same-port"], 1);
    assert_eq!(ledger["dropped"]["malformed"], 1);
    assert_eq!(report["flooded"], 2);
    assert_eq!(report["copies"], 2);
    assert_eq!(report["addresses"], 2);
}

#[test]
fn an_incast_of_files_loses_what_exceeds_the_buffer() {
    // Three times ten frames of 100 bytes, into a buffer of ten; a frame takes 0.8 s.
    let captures = [1, 2, 3].map(|src| Capture::of_frames(&vec![frame(Some(9), src, 100); 10]));
    let folder = Folder::new();
    let [a, b, c] = captures.each_ref().map(Capture::spec);
    let out = folder.sink("out.pcapng");
    let limits = ["--rate", "1000", "--buffer", "1000", "--duration", "0.2"];
    let report = reported(
        "switch",
        &[&[a.as_str(), &b, &c, &out][..], &limits].concat(),
        0,
    );
    let output = &report["outputs"][0];
    assert_eq!(output["port"], out);
    assert_eq!(output["offered"], 30);
    // On a machine that stood still in between, one may have left.
    let count = |name: &str| output[name].as_u64().unwrap();
    assert!((19..=20).contains(&count("output_full")), "{output}");
    assert_eq!(count("sent") + count("aborted"), 30 - count("output_full"));
    let dropped = &report["ledger"]["dropped"];
    assert_eq!(dropped["output-full"], output["output_full"]);
    assert_eq!(dropped["aborted"], output["aborted"]);
}

#[test]
fn a_count_is_met() {
    let folder = Folder::new();
    let out = folder.sink("out.pcapng");
    let report = reported("switch", &["null", &out, "--count", "1000"], 0);
    assert_eq!(report["ledger"]["from_wire"], 1000);
    let printed = text(&run("switch", &["null", &out, "--count", "10", "--json"]).stdout);
    let report: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(report["ledger"]["from_wire"], 10);
    let printed = text(&run("switch", &["null", &out, "--count", "10", "-q"]).stdout);
    assert!(printed.contains("output-full"), "{printed}");
}

#[test]
fn what_cannot_be_is_refused() {
    let says = |args: &[&str], status, what: &str| {
        let message = refused("switch", args, status);
        assert!(message.contains(what), "{args:?}: {message}");
    };
    says(&[], 2, "<PORT>");
    says(&["null"], 2, "1 ports: a switch has 2 to 256");
    says(&["null", "nul"], 2, "no driver `nul`");
    says(&["null", "null", "--rate", "999"], 2, "1k");
    says(&["null", "null", "--buffer", "59"], 2, "from 60");
    says(&["null", "null", "--age", "0"], 2, "above 0");
    says(&["null", "null", "--addresses", "0"], 2, "--addresses");
    says(&["null", "null", "--cores", "0,1"], 2, "a single loop");
    let capture = Capture::of_frames(&[]);
    says(&[&capture.spec(), &capture.spec()], 2, "no port sends");
}

/// Hosts in namespaces, each at the end of a cable to one more namespace.
struct Hosts {
    middle: Namespace,
    hosts: Vec<Namespace>,
}

impl Hosts {
    const COUNT: usize = 3;

    fn new() -> Option<Self> {
        let middle = Namespace::new()?;
        let hosts: Option<Vec<_>> = (0..Self::COUNT).map(|_| Namespace::new()).collect();
        let hosts = hosts?;
        for (n, host) in hosts.iter().enumerate() {
            middle.ip(&format!(
                "link add p{n} type veth peer name va address 02:00:00:00:01:0{n} netns {}",
                host.name()
            ));
            middle.ip(&format!("link set p{n} up"));
            host.ip("link set va up");
        }
        Some(Self { middle, hosts })
    }

    /// Connects the cables by the kernel's bridge.
    fn bridge(&self) {
        self.middle
            .ip("link add br0 type bridge mcast_snooping 0 stp_state 0 forward_delay 0");
        self.middle.ip("link set br0 up");
        for n in 0..Self::COUNT {
            self.middle.ip(&format!("link set p{n} master br0"));
        }
    }

    /// Connects the cables by our switch.
    fn switch(&self, driver: &str) -> Running {
        let ports = (0..Self::COUNT).map(|n| format!("{driver}:p{n}"));
        let ports = ports.collect::<Vec<_>>().join(" ");
        let mut switch = Running::start(&self.middle, &format!("switch {ports} --idle sleep"));
        switch.wait_for_ports();
        switch
    }
}

/// The ends of the cables, as raw ports.
struct Ends {
    ports: Vec<StartedPort>,
    cache: pollux_pmd::mempool::PoolCache,
}

impl Ends {
    fn open(hosts: &Hosts) -> Self {
        let pool = pool(1024, 2048);
        let open = |host: &Namespace| {
            let config = PortConfig::new(pool.clone());
            host.within(|| {
                let port = Registry::builtin()
                    .open_promiscuous("af_packet:va")
                    .unwrap();
                port.configure(config).unwrap().start().unwrap()
            })
        };
        Self {
            ports: hosts.hosts.iter().map(open).collect(),
            cache: pool.cache(64).unwrap(),
        }
    }

    fn queues(&mut self, host: usize) -> (&mut RxQueue, &mut TxQueue) {
        let port = &mut self.ports[host];
        (&mut port.rx[0], &mut port.tx[0])
    }

    fn send(&mut self, host: usize, frame: &[u8]) {
        let mut burst = Burst::<1>::new();
        burst.push(self.cache.alloc_from(frame).unwrap()).unwrap();
        let mut cache = self.cache.pool().cache(2).unwrap();
        assert_eq!(self.queues(host).1.tx(&mut cache, &mut burst), 1);
    }

    /// The test's frames that have reached a host, as often as each did.
    fn receive(&mut self, host: usize, into: &mut BTreeMap<Vec<u8>, usize>) {
        let mut cache = self.cache.pool().cache(2).unwrap();
        let mut burst = Burst::<32>::new();
        self.queues(host).0.rx(&mut cache, &mut burst);
        burst.take_all(|frame| {
            if frame.data().get(12..14) == Some(&[0x88, 0xb5]) {
                *into.entry(frame.data().to_vec()).or_default() += 1;
            }
        });
    }

    /// Which hosts each frame reaches, sent one after the other. Behind each frame a host sends one
    /// to all, and the next frame is sent when that has come: frames keep their order.
    fn reached(&mut self, sent: &[(usize, Vec<u8>)]) -> Vec<Vec<usize>> {
        let mut reached = Vec::new();
        for (n, (from, frame)) in sent.iter().enumerate() {
            let mut marker = self::frame(None, 0xf0 + *from as u8, 60);
            marker[14..16].copy_from_slice(&(n as u16).to_be_bytes());
            self.send(*from, frame);
            self.send(*from, &marker);
            let begun = Instant::now();
            let mut came = vec![BTreeMap::new(); Hosts::COUNT];
            let others = (0..Hosts::COUNT).filter(|host| host != from);
            for host in others {
                while !came[host].contains_key(&marker) {
                    self.receive(host, &mut came[host]);
                    assert!(begun.elapsed() < PATIENCE, "frame {n} did not reach {host}");
                    std::thread::sleep(Duration::from_micros(100));
                }
            }
            self.receive(*from, &mut came[*from]);
            assert!(came[*from].is_empty(), "frame {n} came back");
            let has = |&host: &usize| came[host].get(frame) == Some(&1);
            reached.push((0..Hosts::COUNT).filter(has).collect());
        }
        reached
    }
}

/// Frames of hosts that are learned, that answer, that move; to groups and to reserved addresses.
fn conversation() -> Vec<(usize, Vec<u8>)> {
    let to = |mac: [u8; 6], src| {
        let mut frame = frame(None, src, 80);
        frame[..6].copy_from_slice(&mac);
        frame
    };
    let mut sent = vec![
        (0, frame(Some(11), 10, 80)),
        (1, frame(Some(10), 11, 80)),
        (0, frame(Some(11), 10, 81)),
        (2, frame(Some(10), 12, 82)),
        (2, frame(Some(13), 12, 82)),
        // Two hosts at one cable.
        (0, frame(None, 14, 83)),
        (0, frame(Some(14), 10, 83)),
        (1, frame(Some(14), 11, 84)),
        // Host 10 moves.
        (2, frame(None, 10, 85)),
        (1, frame(Some(10), 11, 86)),
        (2, frame(Some(10), 12, 87)),
        // From a group; from zero.
        (1, to([2, 0, 0, 0, 1, 12], 11)),
    ];
    let mut from_group = frame(Some(12), 11, 88);
    from_group[6] |= 1;
    sent.push((1, from_group));
    let mut from_zero = frame(Some(12), 11, 89);
    from_zero[6..12].fill(0);
    sent.push((1, from_zero));
    for group in [
        [0x01, 0, 0x5e, 1, 2, 3],
        [0x33, 0x33, 0, 0, 0, 5],
        [1, 0, 0, 0, 0, 0],
    ] {
        sent.push((2, to(group, 12)));
    }
    // Without a spanning tree, the kernel's bridge forwards its messages, to ...:00.
    sent.extend((1..16).map(|last| (0, to([0x01, 0x80, 0xc2, 0, 0, last], 14))));
    sent.push((0, to([0x01, 0x80, 0xc2, 0, 0, 0x10], 14)));
    // What is sent to reserved addresses is learned from.
    sent.push((1, to([0x01, 0x80, 0xc2, 0, 0, 0x0e], 15)));
    sent.push((0, frame(Some(15), 14, 90)));
    sent
}

#[test]
fn frames_reach_the_hosts_that_the_kernels_bridge_sends_them_to() {
    let Some(hosts) = Hosts::new() else {
        return;
    };
    let sent = conversation();
    let switch = hosts.switch("af_packet");
    let ours = Ends::open(&hosts).reached(&sent);
    switch.interrupt();
    let report = switch.report(0);
    assert_eq!(report["ledger"]["dropped"]["bad-source"], 2);
    assert_eq!(report["ledger"]["dropped"]["reserved-address"], 16);
    hosts.bridge();
    let theirs = Ends::open(&hosts).reached(&sent);
    for (n, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(ours, theirs, "frame {n}: {:02x?}", &sent[n].1[..12]);
    }
    // The kernel's bridge has forwarded, flooded and filtered.
    assert!(theirs.iter().any(|hosts| hosts.len() == 1));
    assert!(theirs.iter().any(|hosts| hosts.len() == 2));
    assert!(theirs.iter().any(Vec::is_empty));
}

#[test]
fn the_kernels_hosts_ping_each_other_through_the_switch() {
    let Some(hosts) = Hosts::new() else {
        return;
    };
    for (n, host) in hosts.hosts.iter().enumerate() {
        host.ip(&format!("address add 10.77.0.{}/24 dev va", n + 1));
    }
    for driver in ["af_packet", "af_xdp"] {
        let switch = hosts.switch(driver);
        for target in [2, 3] {
            let line = format!("ping -c 5 -i 0.01 -W 30 10.77.0.{target}");
            let output = hosts.hosts[0].exec(&line);
            let said = text(&output.stdout);
            assert!(
                output.status.success(),
                "{driver}: {said}{}",
                text(&output.stderr)
            );
            assert!(said.contains("5 received"), "{driver}: {said}");
        }
        switch.interrupt();
        let report = switch.report(0);
        // Requests and answers; what is flooded is the first frame to each host, and the questions
        // for its address.
        let count = |name: &str| report[name].as_u64().unwrap();
        assert!(count("unicast") >= 18, "{report}");
        assert!((2..=6).contains(&count("flooded")), "{report}");
        assert_eq!(
            report["ledger"]["dropped"],
            serde_json::json!({}),
            "{report}"
        );
    }
}

#[test]
fn a_host_that_floods_the_table_does_not_cut_off_the_others() {
    let Some(hosts) = Hosts::new() else {
        return;
    };
    let ports = "af_packet:p0 af_packet:p1 af_packet:p2";
    let line = format!("switch {ports} --idle sleep --addresses 16 --age 1h");
    let mut switch = Running::start(&hosts.middle, &line);
    switch.wait_for_ports();
    let mut sent = vec![(1, frame(None, 11, 60))];
    sent.extend((20..220).map(|n| (0, frame(None, n, 60))));
    sent.push((2, frame(Some(11), 12, 61)));
    sent.push((2, frame(Some(222), 12, 61)));
    let reached = Ends::open(&hosts).reached(&sent);
    // Known before; not known, and flooded.
    assert_eq!(reached[reached.len() - 2..], [vec![1], vec![0, 1]]);
    switch.interrupt();
    let report = switch.report(0);
    assert_eq!(report["addresses"], 16);
    assert!(report["table_full"].as_u64().unwrap() > 180, "{report}");
}

#[test]
fn a_slow_output_loses_and_counts() {
    let Some(hosts) = Hosts::new() else {
        return;
    };
    let ports = "af_packet:p0 af_packet:p1 af_packet:p2";
    let line = format!("switch {ports} --idle sleep --rate 1M --buffer 10k");
    let mut switch = Running::start(&hosts.middle, &line);
    switch.wait_for_ports();
    let mut ends = Ends::open(&hosts);
    // The switch learns where the receiver is.
    assert_eq!(ends.reached(&[(1, frame(None, 11, 60))]), [vec![0, 2]]);
    for _ in 0..200 {
        for sender in [0, 2] {
            ends.send(sender, &frame(Some(11), sender as u8, 1000));
        }
    }
    let (mut received, mut came) = (BTreeMap::new(), Instant::now());
    let total = |received: &BTreeMap<_, usize>| received.values().sum::<usize>();
    // A frame takes 8 ms.
    while came.elapsed() < Duration::from_secs(1) {
        let before = total(&received);
        ends.receive(1, &mut received);
        if total(&received) > before {
            came = Instant::now();
        }
    }
    switch.interrupt();
    let report = switch.report(0);
    let output = &report["outputs"][1];
    assert_eq!(output["sent"], total(&received));
    let full = output["output_full"].as_u64().unwrap();
    assert!(full > 0, "{report}");
    assert_eq!(report["ledger"]["dropped"]["output-full"], full);
    assert_eq!(full + total(&received) as u64, 400);
    assert!(output["peak_bytes"].as_u64().unwrap() <= 10_000);
}
