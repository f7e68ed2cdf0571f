//! The run page, without a browser: its data are those of the run, and no client can harm the run.
//! scripts/page-test tests it with a browser.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::common::wire::Wire;
use crate::common::{AT_REST, Folder, ask, number, run, start};
use pollux_emulator::config::EmulatorConfig;
use pollux_emulator::truth::Truth;
use pollux_na62::physics::model::TruthEvent;
use pollux_na62::physics::score::TruthScore;
use pollux_na62::rich::find::Ring;
use serde_json::Value;

/// A demonstration that does not end by itself while a test lasts.
const ENDLESS: &str = "50000000";

fn json(address: &str, path: &str) -> Value {
    let answer = ask(address, path).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 200") && head.contains("application/json"),
        "{head}"
    );
    serde_json::from_str(body).unwrap()
}

fn ring(ring: &Value) -> Ring {
    let length = |name: &str| ring[name].as_f64().unwrap() as f32;
    Ring {
        disk: number(ring, "disk") as _,
        x: length("x"),
        y: length("y"),
        r: length("r"),
        hits: number(ring, "hits") as u16,
        ..Ring::default()
    }
}

#[test]
fn the_page_shows_the_run() {
    let folder = Folder::new();
    let file = folder.arg("run.events");
    let arguments = ["--events", ENDLESS, "--http", "127.0.0.1:0", "--events-out"];
    let mut running = start(&[&arguments[..], &[&file]].concat());
    let address = running.address("the run page is at http://");

    let page = ask(&address, "/").unwrap();
    assert!(
        page.starts_with("HTTP/1.1 200") && page.contains("default-src 'none'"),
        "{page}"
    );
    let styles = ["page.css", "events.css"];
    let scripts = ["parts.js", "plots.js", "poll.js", "events.js", "page.js"];
    for asset in styles.into_iter().chain(scripts) {
        assert!(page.contains(&format!("\"{asset}\"")), "{page}");
        assert!(
            ask(&address, &format!("/{asset}"))
                .unwrap()
                .starts_with("HTTP/1.1 200")
        );
    }
    assert!(
        ask(&address, "/metrics")
            .unwrap()
            .contains("pollux_l0_rings_total")
    );
    assert!(
        ask(&address, "/../Cargo.toml")
            .unwrap()
            .starts_with("HTTP/1.1 404")
    );
    assert!(
        ask(&address, "/events.json?after=x")
            .unwrap()
            .starts_with("HTTP/1.1 400")
    );

    let first = json(&address, "/run.json");
    running.wait_until("counters move", |_| {
        let now = json(&address, "/run.json");
        number(&now["events"], "built") > number(&first["events"], "built")
    });
    let stages: Vec<_> = first["histograms"].as_array().unwrap().iter().collect();
    assert!(
        stages.iter().any(|stage| stage["stage"] == "rings"),
        "{stages:?}"
    );

    assert_eq!(first["rules"][0]["rules"][0]["asks"], "rings: 1 or more");
    assert_eq!(
        (&first["record"], &first["recording"]["lost"]),
        (&Value::Null, &0.into())
    );
    running.wait_until("events are recorded", |_| {
        number(&json(&address, "/run.json")["recording"], "written") > 0
    });

    // Rings are where the truth has them.
    let config = EmulatorConfig {
        events: ENDLESS.parse().unwrap(),
        ..EmulatorConfig::default()
    };
    let truth = Truth::of(&config).unwrap();
    let (mut score, mut seen) = (TruthScore::default(), 0);
    let (mut owned, mut on_rings) = (0, 0);
    running.wait_until("there are events", |_| {
        let events = json(&address, &format!("/events.json?after={seen}"));
        for event in events.as_array().unwrap() {
            assert!(number(event, "number") > seen);
            let (own, told) = hits_of_ring(event);
            (owned, on_rings) = (owned + own, on_rings + told);
            seen = number(event, "number");
            let n = truth.timeline().event_number(number(event, "timestamp"));
            let mut true_event = TruthEvent::default();
            truth.event(n.expect("an event of the run"), &mut true_event);
            let rings = event["rings"].as_array().unwrap();
            let rings: Vec<_> = rings.iter().map(ring).collect();
            if event["complete"] == true {
                score.add(&true_event.rings, &rings);
            }
        }
        score.findable >= 20 && on_rings > 50
    });
    assert!(score.efficiency().unwrap() > 0.8, "{score:?}");
    // But for a hit at the edge of its road.
    assert!(
        owned.abs_diff(on_rings) * 20 < on_rings,
        "{owned} of {on_rings}"
    );

    running.signal("INT");
    let ended = running.wait().expect(0);
    let report = ended.report();
    let (recording, built) = (&report["recording"], number(&report["events"], "built"));
    assert_eq!(
        number(recording, "written") + number(recording, "lost"),
        built
    );
}

/// Checks that an event was decided just now. Returns the number of its hits that are assigned to
/// its ring, and the number that the ring states; zeros for an event with several rings, as a hit
/// may be on more than one.
fn hits_of_ring(event: &Value) -> (u64, u64) {
    let decided = event["decided_unix_s"].as_f64().unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let ago = now.as_secs_f64() - decided;
    assert!((-1.0..60.0).contains(&ago), "{ago} s ago");
    let list = |key: &str| event[key].as_array().unwrap();
    let (hits, of, rings) = (list("hits"), list("ring_of_hit"), list("rings"));
    assert_eq!(hits.len(), of.len());
    match &rings[..] {
        [ring] => {
            let own = of.iter().filter(|of| **of == 0).count() as u64;
            (own, number(ring, "hits"))
        }
        _ => (0, 0),
    }
}

#[test]
fn the_page_tells_which_run_it_is_and_how_it_went() {
    let folder = Folder::new();
    let truth = folder.write(
        "boards.toml",
        "rate = 5000\n[faults]\nlost = 0.05\nduplicated = 0.05\n",
    );
    let config = folder.write("rich.toml", "");
    let arguments = [
        "--events",
        ENDLESS,
        "--http",
        "127.0.0.1:0",
        "--truth",
        &truth,
        "--run",
        "12",
    ];
    let mut running = start(&[&arguments[..], &["--config", &config]].concat());
    let address = running.address("the run page is at http://");
    let told = json(&address, "/run.json");
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert_eq!(told["about"]["host"], host.trim());
    assert_eq!(told["about"]["config"], config);
    assert_eq!(told["about"]["run"], 12);
    assert_eq!(told["ports"][0]["spec"], "loopback");

    let notes = |path: &str| json(&address, path)["notes"].as_array().unwrap().clone();
    running.wait_until("there are notes", |_| notes("/minute.json").len() > 3);
    let (minute, run) = (notes("/minute.json"), notes("/history.json"));
    assert!(minute.starts_with(&run[..3]), "{minute:?} {run:?}");
    let grows = |key: &str| {
        let values = minute.iter().map(|note| number(note, key));
        assert!(values.is_sorted(), "{key}: {minute:?}");
        let (first, last) = (
            number(&minute[0], key),
            number(&minute[minute.len() - 1], key),
        );
        assert!(last > first, "{key}: {minute:?}");
    };
    for key in ["events", "accepted", "frames", "missing"] {
        grows(key);
    }
    let last = &minute[minute.len() - 1];
    let streams = last["streams"].as_array().unwrap();
    let datagrams: u64 = streams.iter().filter_map(Value::as_u64).sum();
    assert!(
        datagrams > 0 && datagrams <= number(last, "frames"),
        "{last}"
    );
    assert!(number(&last["dropped"], "duplicate") > 0, "{last}");
    running.wait_until("it is said what is so now", |_| {
        let now = &json(&address, "/run.json")["now"];
        let faults = now["faults"].as_array().unwrap();
        now["window_s"].as_f64().unwrap() > 0.0
            && number(&now["latency_ns"], "count") > 0
            && faults
                .iter()
                .all(|faults| faults.as_array().unwrap().contains(&"loss".into()))
    });
    running.signal("INT");
    let ended = running.wait().expect(0);
    assert!(number(ended.report(), "missing") >= number(last, "missing"));
}

#[test]
fn who_asks_badly_does_not_hurt_the_run() {
    let folder = Folder::new();
    let wire = Wire::new(&folder);
    let arguments = ["--port", &wire.port(), "--http", "127.0.0.1:0"];
    let mut running = start(&[&arguments[..], &AT_REST].concat());
    let address = running.address("the run page is at http://");
    // More than are served at a time, and none of them says anything sensible, or leaves.
    let open: Vec<_> = (0..100)
        .map(|n| {
            let mut stream = TcpStream::connect(&address).unwrap();
            let _ = stream.write_all(if n % 2 == 0 {
                b"GET / HT"
            } else {
                b"\xff\xfe\0\0"
            });
            stream
        })
        .collect();
    wire.send(2000);
    running.wait_until("others have their turn", |_| {
        ask(&address, "/").is_some_and(|page| page.contains("L0 trigger"))
    });
    running.signal("INT");
    let ended = running.wait().expect(0);
    assert!(number(&ended.report()["events"], "built") >= 2000);
    drop(open);
}

#[test]
fn an_address_that_cannot_be_served_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    // Files that stay would be in the way of the next attempt.
    let folder = Folder::new();
    for (option, what) in [("--http", "the run page"), ("--metrics", "metrics")] {
        let files = [folder.arg("run.events"), folder.arg("report.json")];
        let [events, report] = &files;
        let outputs = ["--events-out", events, "--report", report];
        let arguments = [&["--events", "1000", option, &address], &outputs[..]].concat();
        run(&arguments).expect(1).expect_message(&[what, &address]);
        assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 0);
    }
    for (address, named) in [
        (address.as_str(), "in use"),
        ("192.0.2.1:80", "Cannot assign"),
    ] {
        run(&["--events", "1000", "--http", address])
            .expect(1)
            .expect_message(&["the run page", address, named]);
    }
    for address in ["80", "localhost", "127.0.0.1:99999", "::1:80"] {
        run(&["--http", address]).expect_usage(&["--http", address]);
    }
}

/// Ports below 1024 are root's, unless the machine says otherwise.
#[test]
fn a_port_without_the_right_to_it_is_named() {
    let first = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    if first.is_ok_and(|first| first.trim().parse().unwrap_or(0) <= 80) {
        println!("skipped: every user may listen on port 80 here");
        return;
    }
    let setpriv = [
        "setpriv",
        "--bounding-set=-net_bind_service",
        "--inh-caps=-net_bind_service",
    ];
    let works = Command::new(setpriv[0])
        .args(&setpriv[1..])
        .arg("true")
        .status();
    if !works.is_ok_and(|status| status.success()) {
        println!("skipped: setpriv cannot take a right away here");
        return;
    }
    let running =
        crate::common::start_by(&setpriv, &["--events", "1000", "--http", "127.0.0.1:80"]);
    running
        .wait()
        .expect(1)
        .expect_message(&["the run page", "127.0.0.1:80", "Permission denied"]);
}
