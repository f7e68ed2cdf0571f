//! Runs that end as they should.

use std::os::unix::net::UnixStream;
use std::sync::Arc;

use pollux_images::control::State;
use serde_json::{Value, json};

use crate::nodes::{Habit, Program, Wire};
use crate::{Bench, wait_until};

const CENTRE: &str = "[[receiver.transfer]]\nname = \"centre\"\n\
                      region = [{ first_row = 4, rows = 8, first_column = 8, columns = 16 }]\n";

fn transfer(report: &Value, receiver: usize) -> &Value {
    &report["receivers"][receiver]["transfers"][0]
}

#[test]
fn a_run_ends_with_the_source() {
    let (bench, wire) = (Bench::new(), Arc::new(Wire::default()));
    let source = Program::source(&bench.path("source"), &wire);
    let a = Program::receiver(&bench.path("a"), &wire, Habit::Fast);
    let b = Program::receiver_at(&"127.0.0.1:0".parse().unwrap(), &wire, Habit::Fast);
    let b_address = b.address();
    let third = "[[receiver.transfer]]\nname = \"third\"\nevery = 3\n";
    let receivers = [("a", CENTRE), (&b_address, third)];
    let report = bench
        .manage("", "frames = 300\nrate_hz = 1000", &receivers)
        .wait()
        .report(0);
    assert_eq!(
        (&report["schema"], &report["end"]),
        (&json!(1), &json!("finished"))
    );
    assert_eq!(report["errors"], json!([]));
    assert_eq!(report["source"]["frames"], 300);
    assert_eq!(report["source"]["program"], "test 1");
    for receiver in report["receivers"].as_array().unwrap() {
        assert_eq!(
            (&receiver["frames"], &receiver["finished"]),
            (&json!(300), &json!(true))
        );
    }
    let region = json!({"first_row": 4, "rows": 8, "first_column": 8, "columns": 16, "offset": 0});
    assert_eq!(
        *transfer(&report, 0),
        json!({"name": "centre", "region": [region], "images": 300, "bytes": 300 * 8 * 16 * 2, "overrun": 0})
    );
    assert_eq!(transfer(&report, 1)["images"], 100);
    assert_eq!(
        (&report["pause_count"], &report["pauses"]),
        (&json!(0), &json!([]))
    );
    assert_eq!(
        *wire.starts.lock().unwrap(),
        "rrs",
        "the source is the last to start"
    );
    for program in [source, a, b] {
        assert_eq!(program.session.state(), State::Idle);
    }
}

#[test]
fn an_overrun_pauses_the_source_until_there_is_room() {
    let (bench, wire) = (Bench::new(), Arc::new(Wire::default()));
    let _source = Program::source(&bench.path("source"), &wire);
    let _slow = Program::receiver(&bench.path("slow"), &wire, Habit::Slow);
    let few = format!("{CENTRE}buffers = 4\n");
    let ended = bench.manage("", "frames = 500", &[("slow", &few)]).wait();
    assert!(
        ended.messages.contains("the source is paused"),
        "{}",
        ended.messages
    );
    assert!(
        ended.messages.contains("the source resumes: room"),
        "{}",
        ended.messages
    );
    let report = ended.report(0);
    assert_eq!(
        (&report["end"], &report["source"]["frames"]),
        (&json!("finished"), &json!(500))
    );
    let pauses = report["pauses"].as_array().unwrap();
    assert_eq!(report["pause_count"], pauses.len());
    let first = &pauses[0];
    assert_eq!(
        (&first["node"], &first["receiver"]),
        (&json!("slow"), &json!("centre"))
    );
    assert_eq!(first["ended_by"], "room");
    assert!(first["images"].as_u64() > Some(0) && first["duration_s"].as_f64() > Some(0.0));
    let counts = transfer(&report, 0);
    let [images, overrun] = ["images", "overrun"].map(|key| counts[key].as_u64().unwrap());
    assert_eq!(images + overrun, 500);
    assert!(overrun > 0 && images >= 4, "{counts}");
}

#[test]
fn a_pause_without_news_ends_in_time() {
    let (bench, wire) = (Bench::new(), Arc::new(Wire::default()));
    let _source = Program::source(&bench.path("source"), &wire);
    let _mute = Program::receiver(&bench.path("mute"), &wire, Habit::Mute);
    let few = format!("{CENTRE}buffers = 2\n");
    let top = "resume_after_s = 0.2";
    let report = bench
        .manage(top, "frames = 200", &[("mute", &few)])
        .wait()
        .report(0);
    assert_eq!(report["source"]["frames"], 200);
    let first = &report["pauses"][0];
    assert_eq!(first["ended_by"], "time");
    assert!(first["duration_s"].as_f64() >= Some(0.2), "{first}");
}

#[test]
fn a_signal_ends_the_run_in_order() {
    let (bench, wire) = (Bench::new(), Arc::new(Wire::default()));
    let source = Program::source(&bench.path("source"), &wire);
    let receiver = Program::receiver(&bench.path("a"), &wire, Habit::Fast);
    // Frames without end.
    let manager = bench.manage("", "frames = 0", &[("a", CENTRE)]);
    wait_until("frames are sent", || {
        wire.frames.load(std::sync::atomic::Ordering::SeqCst) > 20
    });
    manager.interrupt();
    let report = manager.wait().report(0);
    assert_eq!(report["end"], "stopped");
    // The receiver was stopped after the source: it has all frames.
    assert_eq!(report["receivers"][0]["frames"], report["source"]["frames"]);
    assert_eq!(report["receivers"][0]["finished"], true);
    for program in [source, receiver] {
        assert_eq!(program.session.state(), State::Idle);
    }
    assert!(
        UnixStream::connect(bench.path("a")).is_err(),
        "the socket is removed"
    );
}
