//! Streams that come to multicast groups, through a switch that snoops.

use std::net::{Ipv4Addr, UdpSocket};

use crate::common::{AT_REST, Folder, drops, number, run, start_by};
use pollux_pmd_testkit::netns::Switch;

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
const TRIGGER: &str = "198.18.0.1";
const CONFIG: &str = "
[trigger]
ip = \"198.18.0.1\"
[[stream]]
udp_port = 7001
group = \"239.1.2.3\"
[[stream]]
udp_port = 7002
";
const FRAMES: u64 = 20;

fn a_run_is_a_member(version: u8) {
    let Some(switch) = Switch::new(version) else {
        return;
    };
    let [trigger, _, sender] = &switch.hosts;
    sender.ip("address add 198.18.0.2/24 dev va");
    sender.ip("route add 239.0.0.0/8 dev va");
    let folder = Folder::new();
    let config = folder.write("groups.toml", CONFIG);
    let by = ["ip", "netns", "exec", trigger.name()];
    let port = ["--port", "af_packet:va", "--config", &config];
    let port = [&port[..], &AT_REST].concat();
    let mut running = start_by(&by, &port);
    running.wait_until("the switch knows the trigger", |_| {
        switch.members(GROUP) == ["p0"]
    });

    let socket = sender.within(|| UdpSocket::bind("198.18.0.2:0").unwrap());
    let send = |ip: Ipv4Addr, port: u16| socket.send_to(b"no frame of a board", (ip, port));
    let unicast = TRIGGER.parse().unwrap();
    for _ in 0..FRAMES {
        send(GROUP, 7001).unwrap();
        send(unicast, 7002).unwrap();
        // None of the first stream's: they are not for the group.
        send(unicast, 7001).unwrap();
    }
    // A query is answered at a random time: the switch asks every second at first.
    running.wait_until("an answer, and all frames", |_| {
        let rx = trigger.ip("-s link show va");
        let lines: Vec<_> = rx.lines().collect();
        let at = lines.iter().position(|line| line.contains("TX:"));
        let sent = at.and_then(|at| lines.get(at + 1)?.split_whitespace().nth(1));
        // Two joins, one or two answers to ARP, and those to queries.
        sent.and_then(|n| n.parse::<u64>().ok()).unwrap() >= 6
    });
    running.signal("INT");
    // None of the frames is of a board.
    let ended = running.wait().expect(1);
    let ended = ended.expect_message(&["no event was built; of "]);
    let report = ended.report();
    let [group, host] = [&report["streams"][0], &report["streams"][1]];
    assert_eq!(
        (&group["group"], host.get("group")),
        (&"239.1.2.3".into(), None)
    );
    assert_eq!(number(group, "packets"), FRAMES, "{report:#}");
    assert_eq!(number(host, "packets"), FRAMES, "{report:#}");
    let missed = drops(report)
        .into_iter()
        .find(|(cause, _)| *cause == "demux-miss");
    assert_eq!(missed, Some(("demux-miss", FRAMES)));
    let groups = &report["groups"][0];
    assert_eq!(groups["port"], "af_packet:va");
    let counted = ["version", "joins", "leaves", "bad", "unsent"];
    let counted = counted.map(|name| number(groups, name));
    assert_eq!(counted, [version.into(), 1, 1, 0, 0], "{groups}");
    let [queries, answers] = ["queries", "answers"].map(|name| number(groups, name));
    assert!(queries > 0 && answers > 0, "{groups}");
    // Queries are delivered, as ARP is.
    assert!(number(&report["ledger"], "delivered") >= queries);
    let line = format!("groups     af_packet:va: 1 joined, by IGMPv{version}");
    assert!(ended.stdout.contains(&line), "{}", ended.stdout);
    // A switch asks once more, and forgets it.
    let began = std::time::Instant::now();
    while !switch.members(GROUP).is_empty() {
        assert!(
            began.elapsed() < pollux_pmd_testkit::netns::PATIENCE,
            "never left"
        );
    }
}

#[test]
fn a_run_is_a_member_of_its_groups_by_version_2() {
    a_run_is_a_member(2);
}

#[test]
fn a_run_is_a_member_of_its_groups_by_version_3() {
    a_run_is_a_member(3);
}

#[test]
fn a_check_shows_groups_and_refuses_those_that_are_none() {
    let folder = Folder::new();
    let config = folder.write("groups.toml", CONFIG);
    let port = ["--port", "null", "--config", &config, "--check"];
    let shown = run(&port).expect(0).stdout;
    assert!(
        shown.contains("UDP port 7001 of group 239.1.2.3"),
        "{shown}"
    );
    run(&["--config", &config, "--check"])
        .expect(2)
        .expect_message(&["group", "--port", "demonstration"]);
    let wrong = CONFIG.replace("239.1.2.3", "10.1.2.3");
    let config = folder.write("wrong.toml", wrong);
    run(&["--config", &config, "--check"])
        .expect(2)
        .expect_message(&[
            "[[stream]] 0: group",
            "10.1.2.3 is no multicast group",
            "239.1.2.3",
        ]);
}
