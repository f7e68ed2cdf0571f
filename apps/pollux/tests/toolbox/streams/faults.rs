//! What is wrong is said clearly, and the exit status tells whose fault it is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use serde_json::json;

use super::{counts_alone, pollux, refused, run};
use crate::support::{Capture, datagram, json_of, text};

#[test]
fn bad_usage_ends_with_2() {
    assert!(refused(&[], 2).contains("<PORT>"));
    let unknown = refused(&["--port", "pcpa:rx=a"], 2);
    assert!(
        unknown.contains("no driver `pcpa`; there are: loopback, null, pcap"),
        "{unknown}"
    );
    let typo = refused(&["--port", "pcap:rxx=a"], 2);
    assert!(
        typo.contains("no option `rxx`; it has: rx, tx, pace"),
        "{typo}"
    );
    let value = refused(&["--port", "pcap:rx=a,pace=slow"], 2);
    assert!(
        value.contains("`slow` is not a valid pace: fast or recorded"),
        "{value}"
    );
    // A wrong option is reported before a port that cannot be opened.
    let second = refused(&["--port", "pcap:rx=/nowhere", "--port", "null:size=x"], 2);
    assert!(second.contains("`x` is not a valid size"), "{second}");
    assert!(refused(&["--port", ""], 2).contains("names no driver"));
    for duration in ["-1", "x", "nan", "1e300"] {
        let text = refused(&["--port", "null", &format!("--duration={duration}")], 2);
        assert!(
            text.contains("invalid value") && text.contains("--duration"),
            "{text}"
        );
    }
    assert!(refused(&["--port", "null", "--jsno"], 2).contains("--json"));
}

#[test]
fn a_port_that_cannot_receive_is_refused_before_it_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.pcapng");
    let message = refused(&["--port", &format!("pcap:tx={}", path.display())], 2);
    assert!(message.contains("1 receive queues requested, but the device offers at most 0"));
    assert!(!path.exists());
}

#[test]
fn a_typo_is_reported_before_a_file_that_is_not_there() {
    let message = refused(
        &["--port", "pcap:rx=/no/such/file", "--port", "pcap:xr=b"],
        2,
    );
    assert!(message.contains("no option `xr`"), "{message}");
}

#[test]
fn files_that_cannot_be_read_end_with_1() {
    let missing = refused(&["--port", "pcap:rx=/no/such/file"], 1);
    assert_eq!(
        missing.matches("No such file or directory").count(),
        1,
        "{missing}"
    );
    assert!(missing.contains("cannot open /no/such/file") && missing.contains("check the path"));

    let text = Capture::of_bytes(b"source,port,packets\n10.0.0.1,7502,3\n");
    assert!(refused(&["--port", &text.spec()], 1).contains("is not a capture"));
    let empty = Capture::of_bytes(b"");
    assert!(refused(&["--port", &empty.spec()], 1).contains(&empty.spec()));
    let folder = format!("pcap:rx={}", text.folder().display());
    assert!(refused(&["--port", &folder], 1).contains("is not a regular file"));
    let fifo = "pcap:rx=/dev/null";
    assert!(refused(&["--port", fifo], 1).contains("is not a regular file"));
}

#[test]
fn a_file_without_permission_says_so() {
    let capture = Capture::new(&[(0, datagram(1, 10, &[]))]);
    let mode = |path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    mode(capture.folder(), 0o755);
    mode(&capture.path, 0o000);
    let mut command = pollux();
    command.args(["--port", &capture.spec()]);
    if fs::read(&capture.path).is_ok() {
        // Root may read everything, so run as user nobody.
        command.uid(65_534).gid(65_534);
    }
    let Ok(output) = command.output() else {
        println!("skipped: another user may not execute the program");
        return;
    };
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("Permission denied"), "{message}");
    assert!(
        message.contains("change the file's permissions"),
        "{message}"
    );
}

#[test]
fn a_damaged_file_is_reported_up_to_the_damage() {
    let whole = Capture::new(&[
        (0, datagram(1, 10, &[0; 50])),
        (0, datagram(1, 10, &[0; 50])),
    ]);
    let bytes = fs::read(&whole.path).unwrap();
    let cut = Capture::of_bytes(&bytes[..bytes.len() - 1]);
    let output = run(&["--port", &cut.spec(), "--json"]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("error: ") && message.contains(&cut.spec()),
        "{message}"
    );
    assert_eq!(
        counts_alone(json_of(&output)),
        json!({
            "streams": [{"src_ip": "0.0.0.1", "dst_port": 10, "packets": 1, "bytes": 50}],
            "dropped": {"device-error": 1},
            "from_wire": 2,
            "delivered": 1,
            "balanced": true,
        })
    );
}

#[test]
fn a_report_that_cannot_be_written_is_an_error() {
    let capture = Capture::new(&[(0, datagram(1, 10, &[]))]);
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = pollux()
        .args(["--port", &capture.spec()])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot write to standard output: No space left"));
}

#[test]
fn help_teaches_the_specs() {
    for flag in ["-h", "--help"] {
        let output = run(&[flag]);
        assert!(output.status.success());
        let help = text(&output.stdout);
        for part in [
            "--json",
            "--duration",
            "--top",
            "rx=FILE",
            "af_packet:IF",
            "loopback",
        ] {
            assert!(help.contains(part), "{flag}: no {part}");
        }
    }
}
