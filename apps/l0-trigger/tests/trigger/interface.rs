//! On a Linux interface: boards at the other end of a veth pair, links that go down, pings.

use std::fmt::Display;
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::Command;
use std::time::Duration;

use crate::common::capture::boards;
use crate::common::{AT_REST, Folder, Run, Running, drops, number, over_streams, start_by};
use pollux_emulator::config::EmulatorConfig;
use pollux_emulator::link::SocketLink;
use pollux_emulator::run::{EmulatorLoop, EmulatorReport};
use pollux_mempool::time::{Ns, Tsc};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::{Clock, Count, TscClock};
use pollux_pmd_testkit::netns::{Cable, Namespace};
use serde_json::Value;

const TRIGGER_IP: &str = "198.18.0.1";
const TRIGGER_MAC: &str = "02:00:00:00:00:0a";

/// The trigger's end `va` has no address of the kernel's, the boards' end `vb` has one.
struct Net {
    trigger: Namespace,
    boards: Namespace,
}

impl Net {
    /// `None`, and the reason on stdout, where namespaces cannot be made.
    fn new() -> Option<Self> {
        let Cable {
            a: trigger,
            b: boards,
        } = Cable::bare(1500)?;
        boards.ip("address add 198.18.0.2/24 dev vb");
        Some(Self { trigger, boards })
    }

    /// Starts the trigger, and waits until it answers pings: which takes its ARP, too.
    fn start_trigger(&self, arguments: &[&str]) -> Running {
        let by = ["ip", "netns", "exec", self.trigger.name()];
        let port = ["--port", "af_packet:va"];
        let running = start_by(&by, &[&port[..], &AT_REST, arguments].concat());
        for _ in 0..20 {
            if self.ping(1) == 1 {
                return running;
            }
        }
        panic!("no answer to a ping: {}", running.stderr());
    }

    /// Pings the trigger; how many were answered.
    fn ping(&self, count: u32) -> u32 {
        self.ping_to(TRIGGER_IP, count)
    }

    fn ping_to(&self, ip: impl Display, count: u32) -> u32 {
        // One at a time: behind the first answer, ping waits for others no longer than twice what
        // that took.
        let ping = format!("ping -c 1 -W 10 {ip}");
        let answered = |_: &u32| self.boards.exec(&ping).status.success();
        (0..count).filter(answered).count() as u32
    }

    /// Boards that send over plain sockets, and hear the decisions.
    fn emulator(
        &self,
        config: &EmulatorConfig,
        stop: &StopFlag,
    ) -> EmulatorLoop<SocketLink, RestingClock> {
        let link = self.boards.within(|| SocketLink::open(config).unwrap());
        let clock = RestingClock(TscClock::get());
        EmulatorLoop::new(config, link, clock, stop.clone()).unwrap()
    }

    /// Has the boards send all their events.
    fn emulate(&self, config: &EmulatorConfig) -> EmulatorReport {
        self.emulator(config, &StopFlag::new()).run()
    }
}

/// A clock for boards of which frames may be late by as long as a thread sleeps: they leave their CPU to
/// others between two frames.
#[derive(Clone)]
struct RestingClock(TscClock);

impl Clock for RestingClock {
    fn now(&self) -> Tsc {
        self.0.now()
    }

    fn to_ns(&self, cycles: u64) -> Ns {
        self.0.to_ns(cycles)
    }

    fn to_cycles(&self, ns: Ns) -> u64 {
        self.0.to_cycles(ns)
    }

    fn relax(&self) {
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Slow enough for a test build on a machine that has other work.
fn slow_boards(events: u64) -> EmulatorConfig {
    EmulatorConfig {
        rate: 20_000,
        events_per_frame: 8,
        ..boards(events)
    }
}

/// Waits until the boards have counted so much more.
fn wait_for_more(running: &mut Running, what: &str, count: &Count, more: u64) {
    let enough = count.get() + more;
    running.wait_until(what, |_| count.get() >= enough);
}

/// Frames of the boards that reached the trigger, or that it says were lost on the way.
fn accounted(report: &Value) -> u64 {
    let lost = drops(report)
        .into_iter()
        .filter(|&(cause, _)| cause == "kernel-drop");
    over_streams(report, "packets") + lost.map(|(_, n)| n).sum::<u64>()
}

#[test]
fn boards_at_the_other_end_of_a_cable_are_heard_and_answered() {
    let Some(net) = Net::new() else { return };
    let running = net.start_trigger(&[]);
    let sent = net.emulate(&slow_boards(20_000));
    assert!(sent.complete && sent.send_errors == 0, "{sent:?}");
    running.signal("INT");
    let ended = running.wait().expect(0);
    let report = ended.report();
    assert_eq!(report["end"], "stopped");
    assert_eq!(accounted(report), sent.frames_sent);
    assert_eq!(report["ports"][0]["spec"], "af_packet:va");
    assert_eq!(report["ports"][0]["arrival_time"], "kernel");
    let events = &report["events"];
    let built = number(events, "built");
    // Where the boards stood still between two frames of one time, for longer than a deadline, events
    // were made of the first board, and again of the others.
    let again = built.saturating_sub(20_000);
    assert!(again == 0 || number(events, "resyncs") > 0, "{events}");
    assert_eq!(
        number(events, "accepted") + number(events, "rejected"),
        built
    );
    let answers = &report["answers"];
    let decided = sent.decisions.unwrap().counts.decided;
    assert_eq!(number(answers, "sent"), built, "{answers}");
    // A machine that is busy with something else may have no room left for frames, and says so.
    let lost = drops(report).into_iter().map(|(_, n)| n).sum::<u64>();
    assert!(
        decided == 20_000 || lost > 0 && decided > 10_000,
        "{decided}, {lost} frames lost"
    );
}

/// The configuration that README names, with boards that have the addresses it says.
#[test]
fn the_example_for_an_interface_is_heard_and_answered() {
    let Some(net) = Net::new() else { return };
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/rich.toml");
    let example: toml::Table = toml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let trigger_ip: Ipv4Addr = example["trigger"]["ip"].as_str().unwrap().parse().unwrap();
    let to: SocketAddrV4 = example["answer"]["to"].as_str().unwrap().parse().unwrap();
    net.boards.ip("address flush dev vb");
    net.boards.ip(&format!("address add {}/24 dev vb", to.ip()));
    let by = ["ip", "netns", "exec", net.trigger.name()];
    let running = start_by(&by, &["--port", "af_packet:va", "--config", path]);
    assert!(
        (0..20).any(|_| net.ping_to(trigger_ip, 1) == 1),
        "{}",
        running.stderr()
    );
    let mut boards = slow_boards(5000);
    boards.addresses.trigger_ip = trigger_ip;
    boards.addresses.decision_port = to.port();
    let sent = net.emulate(&boards);
    assert_eq!(sent.decisions.unwrap().counts.decided, 5000);
    running.signal("INT");
    let ended = running.wait().expect(0);
    let answers = &ended.report()["answers"];
    assert_eq!(number(answers, "unresolved"), 0, "{answers}");
    assert!(!ended.stdout.contains("WRONG"), "{}", ended.stdout);
}

/// A run whose answers go to an address; boards have 198.18.0.2.
fn run_with_answers(net: &Net, to: &str, says: &str) -> Run {
    let folder = Folder::new();
    let config = folder.write("trigger.toml", format!("[answer]\nto = \"{to}\"\n"));
    let mut running = net.start_trigger(&["--config", &config]);
    let sent = net.emulate(&slow_boards(2000));
    assert_eq!(sent.decisions.unwrap().counts.decided, 0);
    running.wait_for_message(says);
    running.signal("INT");
    running.wait()
}

#[test]
fn undelivered_answers_are_warned_of_and_fail_the_run() {
    let Some(net) = Net::new() else { return };
    let said = "WARN no answer was delivered";
    let ended = run_with_answers(&net, "198.18.0.77:30100", said).expect(1);
    let told = "no host has answered ARP for 198.18.0.77 on af_packet:va";
    assert!(
        ended.stdout.contains("WRONG      no answer was delivered"),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains(told), "{}", ended.stdout);
    // All events, those that were made twice of boards that stood still included.
    let (answers, built) = (
        &ended.report()["answers"],
        number(&ended.report()["events"], "built"),
    );
    assert!(built >= 2000);
    assert_eq!(number(answers, "unresolved"), built);
    let said: Vec<_> = ended.stderr.matches(said).collect();
    assert_eq!(said.len(), 1, "{}", ended.stderr);
    ended.expect_message(&["error: no answer was delivered", told, "answer.mac"]);
}

#[test]
fn a_run_without_answers_says_so() {
    let Some(net) = Net::new() else { return };
    let ended = run_with_answers(&net, "nobody", "no answers are sent").expect(0);
    // All events, those that were made twice of boards that stood still included.
    let (answers, built) = (
        &ended.report()["answers"],
        number(&ended.report()["events"], "built"),
    );
    assert!(built >= 2000);
    assert_eq!(number(answers, "untold"), built);
    assert!(!ended.stdout.contains("WRONG"), "{}", ended.stdout);
    assert!(!ended.stderr.contains("WARN no answer"), "{}", ended.stderr);
}

#[test]
fn pings_and_arp_are_answered() {
    let Some(net) = Net::new() else { return };
    let running = net.start_trigger(&[]);
    assert_eq!(net.ping(3), 3);
    let neighbours = net.boards.ip(&format!("neighbour show {TRIGGER_IP}"));
    assert!(neighbours.contains(TRIGGER_MAC), "{neighbours}");
    if Command::new("arping").arg("-V").output().is_ok() {
        let arping = format!("arping -c 2 -w 3 -I vb {TRIGGER_IP}");
        let output = net.boards.exec(&arping);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}");
    }
    // Another host's address is none of the trigger's business.
    let other = net.boards.exec("ping -c 1 -W 1 198.18.0.77");
    assert!(!other.status.success());
    running.signal("TERM");
    let ended = running.wait().expect(0);
    let report = ended.report();
    let answered = number(&report["ledger"], "delivered");
    assert!(answered >= 4, "{answered} ARP requests and pings");
    assert!(number(&report["ports"][0], "tx_packets") >= 4);
    // The kernel asks for the other host again and again, up to the end.
    let others = ["aborted", "not-for-us"];
    assert!(
        drops(report)
            .iter()
            .all(|(cause, _)| others.contains(cause)),
        "{report}"
    );
}

#[test]
fn every_port_answers_for_itself() {
    let Some(net) = Net::new() else { return };
    let Some(other) = Net::new() else { return };
    // The other pair's end moves beside the first's, so that one trigger has both.
    let (mac, trigger) = ("02:00:00:00:00:0c", &net.trigger);
    other.trigger.ip("link set va down");
    other.trigger.ip(&format!(
        "link set va name vc address {mac} netns {}",
        trigger.name()
    ));
    trigger.ip("link set vc up");
    other.boards.ip("address flush dev vb");
    other.boards.ip("address add 198.18.0.3/24 dev vb");
    let by = ["ip", "netns", "exec", trigger.name()];
    let ports = ["--port", "af_packet:vc", "--port", "af_packet:va"];
    let running = start_by(&by, &ports);
    for (end, mac) in [(&other, mac), (&net, TRIGGER_MAC)] {
        assert!(
            (0..20).any(|_| end.ping(1) == 1),
            "{mac}: {}",
            running.stderr()
        );
        assert_eq!(end.ping(3), 3);
        let shown = end.boards.ip(&format!("neighbour show {TRIGGER_IP}"));
        assert!(shown.contains(mac), "{shown}");
    }
    // Decisions go where the boards are: not to the first port.
    let sent = net.emulate(&slow_boards(2000));
    let decisions = sent.decisions.unwrap().counts;
    assert_eq!(decisions.decided, 2000, "{decisions:?}");
    running.signal("INT");
    let ended = running.wait().expect(0);
    for port in ended.report()["ports"].as_array().unwrap() {
        assert!(number(port, "tx_packets") >= 5, "{port}");
    }
}

#[test]
fn a_link_that_goes_down_and_comes_back_is_told_and_survived() {
    let Some(net) = Net::new() else { return };
    // At the trigger's end, and at the other, where the trigger's loses its carrier.
    for (namespace, device) in [(&net.trigger, "va"), (&net.boards, "vb")] {
        let mut running = net.start_trigger(&[]);
        let stop = StopFlag::new();
        // More than are needed: a minute and a half of them.
        let mut emulator = net.emulator(&slow_boards(2_000_000), &stop);
        let progress = emulator.progress();
        let sent = std::thread::scope(|scope| {
            let boards = scope.spawn(move || emulator.run());
            wait_for_more(&mut running, "decisions", &progress.decided, 2000);
            namespace.ip(&format!("link set {device} down"));
            running.wait_for_message("down");
            wait_for_more(&mut running, "frames that are lost", &progress.frames, 400);
            namespace.ip(&format!("link set {device} up"));
            running.wait_for_message("up again");
            wait_for_more(&mut running, "decisions again", &progress.decided, 2000);
            stop.stop();
            boards.join().unwrap()
        });
        running.signal("INT");
        let ended = running.wait().expect(0);
        let report = ended.report();
        // What never came is missing, to the frame; what came before and after is used.
        let (came, missing) = (over_streams(report, "packets"), number(report, "missing"));
        let went = sent.frames_made - sent.frames_unsent;
        assert_eq!(came + missing, went, "{report:#}");
        assert!(
            missing >= 300 && over_streams(report, "gaps") >= 4,
            "{report:#}"
        );
        let built = number(&report["events"], "built");
        let decided = sent.decisions.unwrap().counts.decided;
        let counts = [4000, decided, built, sent.events_sent];
        assert!(counts.is_sorted() && built < sent.events_sent, "{counts:?}");
    }
}

#[test]
fn a_link_that_stays_down_holds_up_no_end() {
    let Some(net) = Net::new() else { return };
    let mut running = net.start_trigger(&[]);
    net.trigger.ip("link set va down");
    running.wait_for_message("down");
    running.signal("INT");
    let ended = running.wait().expect(0);
    assert_eq!(ended.report()["end"], "stopped");
}

#[test]
fn an_interface_that_is_deleted_ends_the_run_with_its_report() {
    let Some(net) = Net::new() else { return };
    let running = net.start_trigger(&[]);
    net.trigger.ip("link delete va");
    let ended = running.wait().expect(1);
    assert_eq!(ended.report()["end"], "gone");
    ended.expect_message(&["port af_packet:va: its device is gone"]);
}

#[test]
fn several_queues_share_an_interface() {
    let Some(net) = Net::new() else { return };
    let running = net.start_trigger(&["--queues", "3"]);
    let sent = net.emulate(&EmulatorConfig {
        rate: 5_000,
        ..slow_boards(2000)
    });
    running.signal("INT");
    let ended = running.wait().expect(0);
    let report = ended.report();
    assert_eq!(accounted(report), sent.frames_sent);
    let (events, lost) = (&report["events"], drops(report));
    // As above, of a machine that is busy with something else.
    let busy = number(events, "resyncs") > 0 || lost.iter().any(|&(_, n)| n > 0);
    let built = number(events, "built");
    assert!(built == 2000 || busy && built > 1000, "{events} {lost:?}");
}

#[test]
fn without_permission_the_message_names_the_capability() {
    let drop = [
        "setpriv",
        "--bounding-set=-net_raw",
        "--inh-caps=-net_raw",
        "--no-new-privs",
    ];
    if !Command::new("setpriv")
        .arg("--version")
        .output()
        .is_ok_and(|out| out.status.success())
    {
        println!("skipped: no `setpriv` program");
        return;
    }
    let raw = fs::read_to_string("/proc/self/status").unwrap();
    let root = raw.lines().any(|line| line == "Uid:\t0\t0\t0\t0");
    // Who is not root has no capability to drop.
    let by = if root { &drop[..] } else { &[] };
    let ended = start_by(by, &["--port", "af_packet:lo"]).wait();
    ended
        .expect(1)
        .expect_message(&["af_packet:lo", "CAP_NET_RAW", "setcap"]);
}
