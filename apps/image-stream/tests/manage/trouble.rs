//! Nodes that fail, and configurations that do not fit the nodes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use pollux_images::control::State;

use crate::nodes::{Habit, Program, Wire};
use crate::{Bench, wait_until};

/// A node that answers each line with this one, until its client ends; not at all if it is empty.
fn answers(socket: &Path, answer: &'static str) -> JoinHandle<()> {
    let listener = UnixListener::bind(socket).unwrap();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        while lines.read_line(&mut line).is_ok_and(|read| read > 0) {
            let _ = lines.get_mut().write_all(answer.as_bytes());
            line.clear();
        }
    })
}

#[test]
fn a_node_that_dies_ends_the_run() {
    let (bench, wire) = (Bench::new(), Arc::new(Wire::default()));
    let source = Program::source(&bench.path("source"), &wire);
    let _a = Program::receiver(&bench.path("a"), &wire, Habit::Fast);
    let mut b = Program::receiver(&bench.path("b"), &wire, Habit::Fast);
    let manager = bench.manage("", "", &[("a", ""), ("b", "")]);
    wait_until("frames are sent", || {
        wire.frames.load(Ordering::SeqCst) > 20
    });
    b.die();
    let ended = manager.wait();
    let said = format!(
        "receiver `b` at unix:{}: it closed",
        bench.path("b").display()
    );
    assert!(ended.messages.contains(&said), "{}", ended.messages);
    let report = ended.report(1);
    assert_eq!(report["end"], "failed");
    assert!(
        report["errors"][0]
            .as_str()
            .unwrap()
            .contains("look at its log")
    );
    // The others have ended in order.
    assert_eq!(report["source"]["finished"], true);
    assert_eq!(report["receivers"][0]["finished"], true);
    assert_eq!(report["receivers"][0]["frames"], report["source"]["frames"]);
    assert_eq!(report["receivers"][1]["finished"], false);
    assert_eq!(source.session.state(), State::Idle);
}

#[test]
fn nodes_that_cannot_be_understood_are_named() {
    for (answer, said) in [
        (
            "{\"version\":2,\"reply\":{\"abilities\":7}}\n",
            "version 2 is not supported: 1 is; use programs of one version",
        ),
        (
            "{\"version\":1,\"reply\":{\"error\":{\"text\":\"version 1 is not supported: 2 is\"}}}\n",
            "it says: version 1 is not supported: 2 is",
        ),
        // A terminal must not obey it.
        (
            "{\"version\":1,\"reply\":{\"error\":{\"text\":\"\\u001b[2Jgone\"}}}\n",
            "it says: \\u{1b}[2Jgone",
        ),
        (
            "HTTP/1.1 400 Bad Request\r\n",
            "this is no message of a node",
        ),
        (
            "{\"version\":1,\"reply\":{\"done\":{\"state\":\"idle\"}}}\n",
            "its reply to `capabilities` is another one",
        ),
        ("", "no reply within 0.3 s"),
    ] {
        let (bench, wire) = (Bench::new(), Arc::new(Wire::default()));
        let source = Program::source(&bench.path("source"), &wire);
        let other = answers(&bench.path("other"), answer);
        let manager = bench.manage("reply_timeout_s = 0.3", "", &[("other", "")]);
        manager
            .wait()
            .refused(1, &["receiver `other` at unix:", said]);
        assert_eq!(source.session.state(), State::Idle);
        other.join().unwrap();
    }
}

#[test]
fn a_line_without_end_is_refused() {
    let (bench, wire) = (Bench::new(), Arc::new(Wire::default()));
    let _source = Program::source(&bench.path("source"), &wire);
    let other = answers(
        &bench.path("other"),
        Box::leak("x".repeat(70_000).into_boxed_str()),
    );
    let ended = bench.manage("", "", &[("other", "")]).wait();
    ended.refused(1, &["a line is longer than 65536 bytes"]);
    other.join().unwrap();
}

#[test]
fn a_configuration_that_does_not_fit_is_refused_before_anything_starts() {
    let outside = "[[receiver.transfer]]\nname = \"edge\"\n\
                   region = [{ first_row = 10, rows = 7, columns = 1 }]\n";
    let large = "[[receiver.transfer]]\nname = \"all\"\nbuffers = 65536\n\
                 region = [{ rows = 1, columns = 1, offset = 1000000 }]\n";
    for (source, receiver, said) in [
        (
            "",
            outside,
            "receiver `edge`: region rows 10..17, columns 0..1: an image has 16 x 32 pixels",
        ),
        ("", large, "bytes of memory, and 4294967296 are allowed"),
        (
            "rate_hz = 5000",
            "",
            "rate_hz = 5000: its highest rate is 2000",
        ),
    ] {
        let (bench, wire) = (Bench::new(), Arc::new(Wire::default()));
        let programs = [
            Program::source(&bench.path("source"), &wire),
            Program::receiver(&bench.path("a"), &wire, Habit::Fast),
        ];
        bench
            .manage("", source, &[("a", receiver)])
            .wait()
            .refused(2, &[said]);
        for program in programs {
            assert_eq!(program.session.state(), State::Idle);
        }
        assert_eq!(*wire.starts.lock().unwrap(), "");
    }
}

#[test]
fn nodes_in_each_others_place_are_refused() {
    let (bench, wire) = (Bench::new(), Arc::new(Wire::default()));
    let _receiver = Program::receiver(&bench.path("source"), &wire, Habit::Fast);
    let _source = Program::source(&bench.path("a"), &wire);
    let ended = bench.manage("", "", &[("a", "")]).wait();
    ended.refused(
        2,
        &[
            "source `source`",
            "it is a receiver: give the address of a source",
        ],
    );
}

#[test]
fn a_node_that_does_not_listen_is_named() {
    let (bench, wire) = (Bench::new(), Arc::new(Wire::default()));
    let _source = Program::source(&bench.path("source"), &wire);
    let ended = bench.manage("", "", &[("a", "")]).wait();
    ended.refused(
        1,
        &[
            "receiver `a` at unix:",
            "it does not listen",
            "No such file",
        ],
    );
}

/// The others are left without a run.
#[test]
fn a_node_that_cannot_be_armed_is_named() {
    let (bench, wire) = (Bench::new(), Arc::new(Wire::default()));
    let source = Program::source(&bench.path("source"), &wire);
    let broken = Program::receiver(&bench.path("broken"), &wire, Habit::Broken);
    let ended = bench.manage("", "", &[("broken", "")]).wait();
    ended.refused(
        1,
        &[
            "receiver `broken`",
            "images.h5: no space left on the device",
        ],
    );
    for program in [&source, &broken] {
        wait_until("the node is idle", || {
            program.session.state() == State::Idle
        });
    }
    // A run that another manager has armed is not taken from it.
    let arm = br#"{"version":1,"request":{"arm":{"source":{}}}}"#;
    source.session.answer(Ok(arm));
    let a = Program::receiver(&bench.path("a"), &wire, Habit::Fast);
    let ended = bench.manage("", "", &[("a", "")]).wait();
    ended.refused(1, &["source `source`", "stop its run first"]);
    assert_eq!(source.session.state(), State::Armed);
    wait_until("the receiver is idle", || a.session.state() == State::Idle);
}
