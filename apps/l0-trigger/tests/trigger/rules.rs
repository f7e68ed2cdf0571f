//! Rules of decision: in the configuration, and changed while a run goes on.

use std::fs;

use crate::common::capture::{boards, read, record};
use crate::common::{Folder, Run, Running, drops, number, pcap_port, run, start};
use pollux_na62::formats::mtp::MtpPacket;
use pollux_na62::l0::{L0Record, PrimitiveId};
use pollux_pmd::event::EventRecord;
use serde_json::Value;

/// A configuration whose rules are these.
fn config(rules: &str) -> String {
    format!(
        r#"
        [[stage]]
        name = "decompress"
        [[stage]]
        name = "build"
        [[stage]]
        name = "rings"
        [[stage]]
        name = "decide"
        {rules}
        "#
    )
}

const TWO_RULES: &str = r#"
    downscale = 10
    [[stage.rule]]
    name = "pair"
    min_rings = 2
    [[stage.rule]]
    name = "large"
    radius_mm = [150, 200]
    prescale = 3
"#;

const ANY: &str = r#"
    [[stage.rule]]
    name = "any"
"#;

/// The records of an event file.
fn records(path: &std::path::Path) -> Vec<L0Record> {
    let bytes = fs::read(path).unwrap();
    let records = bytes[64..].as_chunks::<64>().0;
    let of = |bytes: &[u8; 64]| L0Record::from_event(&EventRecord::from_bytes(bytes));
    records.iter().map(|bytes| of(bytes).unwrap()).collect()
}

/// The sets of a report, whose sums are those of all events.
#[track_caller]
fn sets(report: &Value) -> &[Value] {
    let sets = report["rules"].as_array().unwrap();
    let sum = |key| sets.iter().map(|set| number(set, key)).sum::<u64>();
    let events = &report["events"];
    assert_eq!(sum("events"), number(events, "built"), "{report}");
    assert_eq!(sum("accepted"), number(events, "accepted"), "{report}");
    for (place, set) in sets.iter().enumerate() {
        assert_eq!(number(set, "set"), place as u64);
        for rule in set["rules"].as_array().unwrap() {
            let prescaled = number(rule, "held").div_ceil(number(rule, "prescale"));
            assert_eq!(number(rule, "accepted"), prescaled, "{rule}");
        }
    }
    sets
}

#[test]
fn a_decision_says_which_rules_accepted_in_report_record_and_answer() {
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    record(&boards(3000), &capture);
    let config = folder.write("rules.toml", config(TWO_RULES) + DESTINATION);
    let port = format!("{},tx={}", pcap_port(&capture), folder.arg("answers"));
    let out = folder.arg("events");
    let arguments = ["--port", &port, "--config", &config, "--events-out", &out];
    let ended = run(&arguments).expect(0);
    let report = ended.report();
    let [set] = sets(report) else {
        panic!("{report}")
    };
    let records = records(&folder.path("events"));
    assert_eq!(records.len(), 3000);
    let with = |bit: u8| {
        records
            .iter()
            .filter(move |record| record.rules >> bit & 1 == 1)
    };
    for (bit, name) in [(0, "pair"), (1, "large")] {
        let rule = &set["rules"][usize::from(bit)];
        assert_eq!(rule["name"], name);
        let n = with(bit).count() as u64;
        assert!(n > 0 && n == number(rule, "accepted"), "{n} by {rule}");
    }
    assert!(with(0).all(|record| record.ring_count >= 2));
    assert!(
        records
            .iter()
            .all(|record| record.accepted == (record.rules != 0))
    );
    assert!(
        records
            .iter()
            .all(|record| record.rule_set == 0 && !record.late)
    );
    let rejected = records.iter().filter(|record| !record.accepted);
    let kept = rejected.clone().step_by(10);
    assert!(kept.clone().all(|record| record.monitored));
    let monitored = records.iter().filter(|record| record.monitored);
    assert!(monitored.eq(kept.clone()) && kept.count() as u64 == number(set, "monitored"));

    let mut told = Vec::new();
    for packet in read(&folder.path("answers")) {
        let packet = MtpPacket::parse(&packet.bytes[42..]).unwrap();
        let ids = packet.primitives().map(|primitive| primitive.id);
        told.extend(ids.map(|id| PrimitiveId::from_bits(id).unwrap().rules));
    }
    assert!(
        told.iter()
            .copied()
            .eq(records.iter().map(|record| record.rules))
    );
    let text = format!(
        "set 0: 3000 events, pair {}",
        number(&set["rules"][0], "accepted")
    );
    assert!(ended.stdout.contains(&text), "{}", ended.stdout);
}

/// A destination that needs no ARP.
const DESTINATION: &str = r#"
    [answer]
    to = "198.18.0.2:30100"
    mac = "02:00:00:00:00:02"
"#;

#[test]
fn rules_that_can_never_or_always_accept_are_warned_of() {
    let folder = Folder::new();
    let config = folder.write(
        "rules.toml",
        config("[[stage.rule]]\nname = \"far\"\nradius_mm = [300, 400]\n[[stage.rule]]\nname = \"all\"\nmin_rings = 0"),
    );
    let ended = run(&["--config", &config, "--check"]).expect(0);
    ended.expect_message(&[
        "rule `far` can never accept: radius_mm = [300, 400]",
        "rule `all` accepts every event",
    ]);
    let wrong = folder.write("wrong.toml", common_wrong());
    run(&["--config", &wrong])
        .expect_usage(&["--config", "stage `decide`: rule `it`: prescale = 0"]);
}

fn common_wrong() -> String {
    config("[[stage.rule]]\nname = \"it\"\nprescale = 0")
}

/// Events that were built so far.
fn built(running: &mut Running) -> u64 {
    let page = running.metrics().unwrap_or_default();
    let name = "pollux_l0_events_total{outcome=\"complete\"} ";
    let sample = page.lines().find_map(|line| line.strip_prefix(name));
    sample.map_or(0, |n| n.parse().unwrap())
}

/// Has the run read its configuration again; waits until it says so, and goes on.
#[track_caller]
fn reload(running: &mut Running, says: &str) {
    running.signal("HUP");
    running.wait_for_message(says);
    let before = built(running);
    running.wait_until("events go on", |running| built(running) > before + 500);
}

#[test]
fn rules_change_in_a_run_and_no_event_is_lost() {
    let folder = Folder::new();
    let file = folder.write("rules.toml", config(ANY));
    let write = |text: String| drop(folder.write("rules.toml", text));
    let arguments = [
        "--events",
        "50000000",
        "--metrics",
        "127.0.0.1:0",
        "--config",
        &file,
    ];
    let mut running = start(&arguments);
    running.wait_until("events come", |running| built(running) > 500);
    reload(&mut running, "the rules are the same");
    write(config(TWO_RULES));
    reload(
        &mut running,
        "rules of set 1 from now on: pair, large; changed: pair is new (",
    );
    write(common_wrong());
    reload(
        &mut running,
        "rule `it`: prescale = 0: it must be at least 1",
    );
    assert!(running.stderr().contains("the rules are unchanged"));
    let other = config(ANY).replace("\"build\"", "\"build\"\ndeadline_us = 500");
    write("[trigger]\nbudget_us = 2000\n".to_owned() + &other);
    reload(&mut running, "rules of set 2 from now on: any");
    let named = "[trigger], [[stage]] other than the rules: changes there take effect";
    assert!(running.stderr().contains(named), "{}", running.stderr());
    running.signal("INT");
    let ended: Run = running.wait().expect(0);
    let report = ended.report();
    assert_eq!(report["end"], "stopped");
    let sets = sets(report);
    assert_eq!(sets.len(), 3);
    assert!(sets.iter().all(|set| number(set, "events") > 0), "{sets:?}");
    // Whatever the rules were, each event was decided and told.
    let (events, answers) = (&report["events"], &report["answers"]);
    assert_eq!(number(answers, "sent"), number(events, "built"));
    let decisions = &report["emulator"]["decisions"];
    assert_eq!(number(decisions, "decided"), number(events, "built"));
    assert_eq!(number(decisions, "accepted"), number(events, "accepted"));
    assert_eq!(number(report, "missing"), 0);
    let lost: Vec<_> = drops(report)
        .into_iter()
        .filter(|(cause, _)| !["late", "aborted"].contains(cause))
        .collect();
    assert_eq!(lost, []);
}

/// As the service runs it: rules change in no run without a word.
#[test]
fn a_quiet_run_says_which_rules_have_changed() {
    let folder = Folder::new();
    let file = folder.write("rules.toml", config(ANY));
    let out = folder.arg("events");
    let mut running = start(&[
        "--quiet",
        "--events",
        "50000000",
        "--config",
        &file,
        "--events-out",
        &out,
    ]);
    // Its signals are handled by then.
    let events = folder.path("events");
    let begun = |_: &mut Running| events.metadata().is_ok_and(|file| file.len() > 0);
    running.wait_until("events are written", begun);
    assert_eq!(running.stderr(), "");
    drop(folder.write("rules.toml", config(TWO_RULES)));
    running.signal("HUP");
    running.wait_for_message("rules of set 1 from now on: pair, large; changed: pair is new (");
    running.signal("INT");
    let ended = running.wait().expect(0);
    assert_eq!(sets(ended.report()).len(), 2);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}

#[test]
fn what_is_late_says_so() {
    let folder = Folder::new();
    let config = folder.write("late.toml", "[trigger]\nbudget_us = 1\n");
    let out = folder.arg("events");
    let ended = run(&[
        "--events",
        "3200",
        "--config",
        &config,
        "--events-out",
        &out,
    ])
    .expect(0);
    let report = ended.report();
    let (deadline, decisions) = (&report["deadline"], &report["emulator"]["decisions"]);
    let late = number(decisions, "late");
    let marked = number(deadline, "late_decisions") - number(deadline, "unmarked");
    // What had all but used up its budget is marked as well.
    assert!(late > 0 && late >= marked, "{report}");
    let records = records(&folder.path("events"));
    let recorded = records.iter().filter(|record| record.late);
    assert_eq!(number(&report["recording"], "written"), 3200);
    assert_eq!(recorded.count() as u64, late);
}
