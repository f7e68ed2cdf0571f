//! Two programs at the ends of a cable between namespaces. Their rings hold the frames that arrive
//! while a busy machine delays the other end.

use std::process::Output;

use pollux_pmd_testkit::netns::{Cable, Namespace};
use serde_json::json;

use crate::support::{Folder, Running, json_of, text};

#[test]
fn what_is_generated_is_verified() {
    let Some(cable) = Cable::bare(3000) else {
        return;
    };
    let verify = "verify af_packet:va,frame=4096 --ring 8192 --count 20000 --seed 5";
    let mut verify = Running::start(&cable.a, verify);
    verify.wait_for_ports();
    let generate = "generate af_packet:vb,frame=4096 --rate 30k --count 20000 --seed 5 \
                    --flows 100 --size 60-3014";
    let sent = Running::start(&cable.b, generate).report(0);
    let came = verify.report(0);
    assert_eq!(
        (&sent["sent"], &sent["unsent"]),
        (&20_000.into(), &0.into())
    );
    let counts = (&came["received"], &came["flows"], &came["reordered"]);
    assert_eq!(counts, (&20_000.into(), &100.into(), &0.into()));
    assert_eq!(came["bytes"], sent["sent_bytes"]);
    // Of the clock that both read.
    let latency = &came["latency_ns"];
    assert_eq!(latency["count"], 20_000);
    assert!(latency["p50"].as_u64().unwrap() > 100, "{latency}");
}

#[test]
fn frames_are_sent_back_by_who_swaps_them() {
    let Some(cable) = Cable::bare(1500) else {
        return;
    };
    let forward = "forward af_packet:va --mode 5tswap --retries 100000 --ring 8192";
    let mut forward = Running::start(&cable.a, forward);
    let verify = "verify af_packet:vb --count 5000 --ring 8192";
    let mut verify = Running::start(&cable.b, verify);
    forward.wait_for_ports();
    verify.wait_for_ports();
    let generate = "generate af_packet:vb --rate 20k --count 5000 --flows 10";
    let sent = Running::start(&cable.b, generate).report(0);
    let came = verify.report(0);
    forward.interrupt();
    let forwarded = forward.report(0);
    assert_eq!(sent["sent"], 5000);
    assert_eq!(
        (&came["received"], &came["corrupt"]),
        (&5000.into(), &0.into())
    );
    assert_eq!(forwarded["forwarded"], 5000);
    assert_eq!(forwarded["ports"][0]["tx_packets"], 5000);
}

/// A cable whose near end is in a bridge, `bridge0`: an interface that filters by address, as a NIC does
/// and a veth does not.
fn bridged() -> Option<Cable> {
    let cable = Cable::bare(1500)?;
    cable
        .a
        .ip("link add name bridge0 address 02:00:00:00:00:0e type bridge");
    cable.a.ip("link set va master bridge0");
    cable.a.ip("link set bridge0 up");
    Some(cable)
}

#[test]
fn what_is_sent_to_whomever_is_verified() {
    let Some(cable) = bridged() else {
        return;
    };
    for port in ["af_packet", "af_xdp"] {
        let verify = format!("verify {port}:bridge0 --ring 8192 --count 500");
        let mut verify = Running::start(&cable.a, &verify);
        verify.wait_for_ports();
        let generate = "generate af_packet:vb --rate 20k --count 500";
        Running::start(&cable.b, generate).report(0);
        let came = verify.report(0);
        assert_eq!(came["received"], 500, "{port}");
        assert_eq!(came["ports"][0]["spec"], format!("{port}:bridge0"));
    }
    // In the same way: who sends, and the frames.
    let folder = Folder::new();
    let path = folder.path("x.pcapng");
    let capture = format!("capture af_packet:bridge0 --count 10 -o {}", path.display());
    let mut capture = Running::start(&cable.a, &capture);
    capture.wait_for_ports();
    Running::start(&cable.b, "generate af_packet:vb --rate 1k --count 20").report(0);
    assert_eq!(capture.report(0)["written"], 10);
}

#[test]
fn a_filter_that_lets_nothing_through_is_named() {
    let Some(cable) = bridged() else {
        return;
    };
    for options in ["--no-promisc", ""] {
        let spec = if options.is_empty() {
            ",promisc=off"
        } else {
            ""
        };
        let verify = format!("verify af_packet:bridge0{spec} {options} --count 50 --wait 1");
        let mut verify = Running::start(&cable.a, &verify);
        verify.wait_for_ports();
        Running::start(&cable.b, "generate af_packet:vb --count 50").report(0);
        let (came, message) = verify.report_and_message(1);
        assert_eq!(
            (&came["received"], &came["missing"]),
            (&0.into(), &50.into())
        );
        assert!(message.contains("02:00:00:00:00:0e"), "{message}");
        assert!(message.contains("--dst-mac"), "{message}");
        assert!(message.contains("within 1 s (--wait)"), "{message}");
    }
    // Sent to its own address, frames come.
    let mut verify = Running::start(&cable.a, "verify af_packet:bridge0 --no-promisc --count 50");
    verify.wait_for_ports();
    let generate = "generate af_packet:vb --count 50 --dst-mac 02:00:00:00:00:0e";
    Running::start(&cable.b, generate).report(0);
    let (_, message) = verify.report_and_message(0);
    assert!(!message.contains("hint"), "{message}");
    let streams =
        "ip netns exec NAME POLLUX streams --port af_packet:bridge0 --no-promisc --duration 0.1";
    let streams = streams.replace("NAME", cable.a.name());
    let streams = streams.replace("POLLUX", env!("CARGO_BIN_EXE_pollux"));
    let output = pollux_pmd_testkit::netns::run(&streams);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("hint: nothing came; af_packet:bridge0"));
}

/// The near end of a cable has four queues.
fn of_four_queues() -> Option<Cable> {
    let cable = Cable {
        a: Namespace::new()?,
        b: Namespace::new()?,
    };
    let queues = "numrxqueues 4 numtxqueues 4";
    let far = cable.b.name();
    cable.a.ip(&format!(
        "link add va {queues} type veth peer name vb {queues} netns {far}"
    ));
    cable.a.ip("link set va up");
    cable.b.ip("link set vb up");
    Some(cable)
}

/// From each of the far end's queues, which are those of the near end, a part of 4000 frames.
fn send_over_all_queues(cable: &Cable) {
    let generate = "generate af_xdp:vb --queues 4 --rate 20k --count 4000 --burst 8";
    let sent = Running::start(&cable.b, generate).report(0);
    assert_eq!(sent["sent"], 4000);
}

#[test]
fn all_queues_of_an_interface_are_captured() {
    let Some(cable) = of_four_queues() else {
        return;
    };
    let folder = Folder::new();
    let capture = |name, options| {
        let output = folder.path(name);
        let capture = format!("capture af_xdp:va -o {} {options}", output.display());
        let mut capture = Running::start(&cable.a, &capture);
        capture.wait_for_ports();
        send_over_all_queues(&cable);
        capture
    };
    let all = capture("all.pcapng", "--filter udp.dst=9000 --count 4000").report(0);
    assert_eq!(all["accepted"], 4000);
    assert_eq!(all["ports"][0].get("unpolled_queues"), None);

    // Half of them, and it says so while it runs, in its text and in its report.
    let half = capture("half.pcapng", "--filter udp.dst=9000 --queues 2");
    let message = half.stderr();
    assert!(
        message.contains("2 of the 4 queues of va are not received, 2-3"),
        "{message}"
    );
    half.interrupt();
    let (half, printed) = half.report_and_text(0);
    // How many go by which queue is the sender's affair.
    let accepted = half["accepted"].as_u64().unwrap();
    assert!((1..4000).contains(&accepted), "{accepted}");
    assert_eq!(half["ports"][0]["unpolled_queues"], json!([2, 3]));
    assert!(printed.contains("2 of its device's queues not received, 2-3"));
}

#[test]
fn a_program_that_has_the_interface_is_named() {
    let Some(cable) = of_four_queues() else {
        return;
    };
    let folder = Folder::new();
    let output = folder.path("held.pcapng");
    let holder = format!("capture af_xdp:va -o {} --queues 2", output.display());
    let mut holder = Running::start(&cable.a, &holder);
    holder.wait_for_ports();
    let who = format!(
        "another Pollux program, process {} (pollux) has",
        holder.id()
    );
    // Who is refused waits first: meanwhile the holder need not poll.
    holder.signal("STOP");
    for (port, what) in [
        ("af_xdp:va", "take another queue="),
        ("af_xdp:va,queue=2", "an interface has one"),
    ] {
        let streams = pollux_streams(&cable, port);
        assert_eq!(streams.status.code(), Some(1));
        let message = text(&streams.stderr);
        assert!(
            message.contains(&who) && message.contains(what),
            "{message}"
        );
    }
    holder.signal("CONT");
    holder.interrupt();
    holder.report(0);
    let streams = pollux_streams(&cable, "af_xdp:va,queue=1");
    let report = json_of(&streams);
    assert_eq!(report["unseen"][0]["unpolled_queues"], json!([0, 2, 3]));
    let message = text(&pollux_streams(&cable, "af_xdp:va --queues 3").stderr);
    assert!(message.contains("1 of the 4 queues"), "{message}");
}

/// Listens for a moment.
fn pollux_streams(cable: &Cable, port: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_pollux");
    let line = format!("{program} streams --json --duration 0.05 --port {port}");
    cable.a.exec(&line)
}
