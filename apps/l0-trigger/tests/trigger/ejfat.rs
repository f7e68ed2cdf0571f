//! The output to EJFAT: events that a reader of the published description puts together are those of
//! the event file.

use std::fs;
use std::path::Path;

use crate::common::capture::{boards, read, record};
use crate::common::reassembly::{Event, Listener, Reassembler, sync};
use crate::common::{Folder, number, pcap_port, run};
use pollux_pmd::net::{ParseOptions, Parsed, parse};
use serde_json::Value;

/// Few enough to fit the buffer of a socket that is read late.
const EVENTS: u64 = 96;

/// Records of accepted events, from an event file: those whose flags at offset 3 have bit 0
/// (docs/formats/event-record.md).
fn accepted(path: &Path) -> Vec<[u8; 64]> {
    let bytes = fs::read(path).unwrap();
    let (records, _) = bytes.as_chunks::<64>();
    let accepted = records[1..].iter().filter(|record| record[3] & 1 != 0);
    accepted.copied().collect()
}

fn reassemble<'a>(datagrams: impl IntoIterator<Item = &'a [u8]>) -> Reassembler {
    let mut reassembler = Reassembler::default();
    datagrams.into_iter().for_each(|it| reassembler.take(it));
    assert!(reassembler.is_complete());
    reassembler
}

/// The events are those of the file, in its order.
#[track_caller]
fn assert_events(events: &[Event], records: &[[u8; 64]], data_id: u16) {
    assert_eq!(events.len(), records.len());
    for (event, record) in events.iter().zip(records) {
        assert_eq!(&event.bytes[..64], record);
        assert_eq!(event.data_id, data_id);
        // The time stamp: the low half at 8, the high half at 12.
        let timestamp = u64::from_le_bytes(*record[8..].first_chunk().unwrap());
        assert_eq!(event.number, timestamp);
        let hits = usize::from(u16::from_le_bytes([record[0], record[1]]));
        let (pairs, rest) = event.bytes[64..].as_chunks::<4>();
        assert_eq!((pairs.len(), rest.len()), (hits, 0));
        for &[a, b, c, d] in pairs {
            assert!(u16::from_le_bytes([a, b]) < 1952 && u16::from_le_bytes([c, d]) < 256);
        }
    }
}

/// An output in the report: all was delivered.
#[track_caller]
fn assert_delivered(output: &Value, events: usize, datagrams: u64, bytes: usize) {
    assert_eq!(number(output, "handed"), events as u64, "{output}");
    assert_eq!(number(output, "delivered"), events as u64, "{output}");
    assert_eq!(output["balanced"], true);
    for cause in ["queue-full", "refused", "unsent", "repeated"] {
        assert_eq!(number(&output["lost"], cause), 0);
    }
    assert_eq!(number(output, "messages"), datagrams);
    assert_eq!(number(output, "bytes"), bytes as u64);
}

/// The payloads of the datagrams in a capture.
fn payloads(path: &Path) -> Vec<Vec<u8>> {
    let packets = read(path).into_iter().map(|packet| packet.bytes);
    let payload = |bytes: Vec<u8>| {
        let Ok(Parsed::Udp(udp)) = parse(&bytes, bytes.len(), &ParseOptions::default()) else {
            panic!("a frame that is no datagram: {bytes:?}");
        };
        assert_eq!(udp.dst_port, 19_522);
        let payload = &bytes[udp.payload_offset.into()..][..udp.payload_len.into()];
        payload.to_vec()
    };
    packets.map(payload).collect()
}

/// Two sockets and a port at once, with other MTUs: each gets all of it, once and in order.
#[test]
fn events_are_those_of_the_file_by_sockets_and_by_a_port() {
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    record(&boards(EVENTS), &capture);
    let (small, large) = (Listener::start(), Listener::start());
    let outputs = [
        format!("ejfat:{},mtu=200,data-id=513", small.address),
        format!("ejfat:{},mtu=9000", large.address),
        format!(
            "ejfat:10.0.0.9:19522,mtu=300,port=pcap:tx={}",
            folder.arg("out.pcapng")
        ),
    ];
    let config = folder.write(
        "l0.toml",
        format!("[[output]]\nspec = \"{}\"\n", outputs[0]),
    );
    let ended = run(&[
        "--config",
        &config,
        "--port",
        &pcap_port(&capture),
        "--events-out",
        &folder.arg("run.events"),
        "--output",
        &outputs[1],
        "--output",
        &outputs[2],
    ]);
    let ended = ended.expect(0);
    let report = &ended.report()["outputs"];
    let records = accepted(&folder.path("run.events"));
    assert!(records.len() > 10, "{}", records.len());
    let all = [
        small.finish(),
        large.finish(),
        payloads(&folder.path("out.pcapng")),
    ];
    let wholes = all
        .each_ref()
        .map(|datagrams| reassemble(datagrams.iter().map(Vec::as_slice)));
    for (n, whole) in wholes.iter().enumerate() {
        assert_events(&whole.events, &records, if n == 0 { 513 } else { 1 });
        let bytes = all[n].iter().map(Vec::len).sum();
        assert_delivered(&report[n], records.len(), whole.datagrams, bytes);
        assert_eq!(report[n]["spec"], outputs[n]);
        // With the headers of UDP and IPv4, the longest datagram is as long as the MTU.
        let headers = 28;
        assert!(n == 1 || whole.longest + headers == [200, 0, 300][n], "{n}");
    }
    assert_eq!(wholes[1].datagrams, records.len() as u64);
    let bytes = |n: usize| wholes[n].events.iter().map(|event| &event.bytes);
    assert!(bytes(0).eq(bytes(1)) && bytes(1).eq(bytes(2)));
    assert_eq!(ended.stdout.matches("events delivered").count(), 3);
}

/// Hits are those of a recording of the same run.
#[cfg(feature = "hdf5")]
#[test]
fn hits_are_those_of_the_recording() {
    use pollux_recording::Events;

    let folder = Folder::new();
    let (capture, path) = (folder.path("boards.pcapng"), folder.path("run.h5"));
    record(&boards(EVENTS), &capture);
    let listener = Listener::start();
    let output = format!("ejfat:{}", listener.address);
    let port = pcap_port(&capture);
    let shown = folder.arg("run.h5");
    run(&["--port", &port, "--record", &shown, "--output", &output]).expect(0);
    let datagrams = listener.finish();
    let whole = reassemble(datagrams.iter().map(Vec::as_slice));
    let mut file = Events::open(&path).unwrap();
    let recorded = file.read(0..usize::MAX).unwrap();
    let accepted: Vec<_> = recorded.iter().filter(|it| it.facts.accepted).collect();
    assert_eq!(accepted.len(), whole.events.len());
    for (recorded, event) in accepted.into_iter().zip(&whole.events) {
        assert_eq!(recorded.facts.timestamp, event.number);
        let hits = recorded.hits.iter().flatten();
        let bytes = hits.flat_map(|hit| [hit.pm.to_le_bytes(), hit.fine.to_le_bytes()].concat());
        assert_eq!(bytes.collect::<Vec<_>>(), event.bytes[64..]);
    }
}

/// Events in a run with a number have their burst, as those of its file.
#[test]
fn a_run_with_a_number_has_bursts_in_its_records() {
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    record(&boards(EVENTS), &capture);
    let listener = Listener::start();
    let output = format!("ejfat:{}", listener.address);
    let events = folder.arg("run.events");
    let port = pcap_port(&capture);
    let given = ["--port", &port, "--run", "7", "--events-out", &events];
    run(&[&given[..], &["--output", &output]].concat()).expect(0);
    let datagrams = listener.finish();
    let whole = reassemble(datagrams.iter().map(Vec::as_slice));
    let records = accepted(&folder.path("run.events"));
    assert!(records.iter().all(|record| record[5] == 1), "the burst");
    assert_events(&whole.events, &records, 1);
}

/// A receiver that is not there: the kernel says so for each datagram, and the run ends well.
#[test]
fn an_absent_receiver_costs_its_events_and_nothing_else() {
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    record(&boards(EVENTS), &capture);
    let listener = Listener::start();
    let ended = run(&[
        "--port",
        &pcap_port(&capture),
        "--output",
        // The port of a service that no machine has.
        "ejfat:127.0.0.1:9,mtu=200",
        "--output",
        &format!("ejfat:{}", listener.address),
    ]);
    let ended = ended
        .expect(0)
        .expect_message(&["events were not delivered"]);
    let outputs = &ended.report()["outputs"];
    let lost = &outputs[0]["lost"];
    let handed = number(&outputs[0], "handed");
    assert!(handed > 10);
    assert_eq!(number(lost, "refused"), handed, "{lost}");
    assert_eq!(outputs[0]["balanced"], true);
    assert_eq!(number(&outputs[1], "delivered"), handed);
    let datagrams = listener.finish();
    let whole = reassemble(datagrams.iter().map(Vec::as_slice));
    assert_eq!(whole.events.len() as u64, handed);
}

/// Messages to the control plane come at their interval, and name events of the run.
#[test]
fn synchronization_messages_follow_the_events() {
    let (data, control) = (Listener::start(), Listener::start());
    let output = format!(
        "ejfat:{},sync={},source-id=4294967295",
        data.address, control.address
    );
    let ended = run(&["--duration", "1.5", "--output", &output]).expect(0);
    drop(data.finish());
    let messages: Vec<_> = control.finish().iter().map(|bytes| sync(bytes)).collect();
    assert!(messages.len() > 1, "{messages:?}");
    for pair in messages.windows(2) {
        // A message that is late brings the next one nearer.
        assert!(pair[1].unix_ns > pair[0].unix_ns);
        assert!(pair[1].event >= pair[0].event);
    }
    let span = messages[messages.len() - 1].unix_ns - messages[0].unix_ns;
    assert!(
        messages.len() as u64 - 1 <= span / 100_000_000 + 1,
        "too often"
    );
    assert!(messages.iter().all(|sync| sync.source == 0xffff_ffff));
    assert!(messages.iter().any(|sync| sync.rate_hz > 0));
    assert_eq!(ended.report()["outputs"][0]["balanced"], true);
}

#[test]
fn wrong_outputs_are_refused_before_anything_is_opened() {
    for (spec, named) in [
        ("", "names no kind of output"),
        (
            "udp:127.0.0.1:1",
            "there is no output `udp`; there are: ejfat, kafka",
        ),
        ("ejfat", "it needs the load balancer"),
        ("ejfat:127.0.0.1", "ADDRESS:PORT"),
        ("ejfat:127.0.0.1:1,mtu=64", "a number of 65 to 65535"),
        ("ejfat:127.0.0.1:1,mtu=0", "`0` is not a valid mtu"),
        (
            "ejfat:127.0.0.1:1,data-id=-1",
            "`-1` is not a valid data-id",
        ),
        (
            "ejfat:127.0.0.1:1,mtu=100,mtu=200",
            "option `mtu` is given twice",
        ),
        ("ejfat:127.0.0.1:1,topic=x", "ejfat has no option `topic`"),
        ("ejfat:127.0.0.1:1,port=nothing:x", "no driver `nothing`"),
        ("ejfat:127.0.0.1:1,port=pcap:rxx=a", "no option `rxx`"),
    ] {
        let folder = Folder::new();
        let events = folder.arg("events");
        let given = ["--events-out", &events, "--output", spec];
        run(&given).expect_usage(&["--output", named]);
        assert!(!folder.path("events").exists());
        let config = folder.write("l0.toml", format!("[[output]]\nspec = \"{spec}\"\n"));
        let given = ["--events-out", &events, "--config", &config, "--check"];
        run(&given).expect_usage(&["[[output]]", named]);
    }
    let ended = run(&["--output", "ejfat:127.0.0.1:1", "--check"]).expect(0);
    assert!(ended.stdout.contains("output     ejfat:127.0.0.1:1"));
}

/// What is right and cannot be opened fails the run, with status 1.
#[test]
fn an_output_that_cannot_be_opened_is_named() {
    let folder = Folder::new();
    let missing = folder.arg("none/out.pcap");
    let spec = format!("ejfat:127.0.0.1:1,port=pcap:tx={missing}");
    let (events, record) = (folder.arg("run.events"), folder.arg("run.h5"));
    let mut arguments = vec![
        "--events",
        "100",
        "--output",
        &spec,
        "--events-out",
        &events,
    ];
    if cfg!(feature = "hdf5") {
        arguments.extend(["--record", &record]);
    }
    // A second attempt fails for the same reason: the first leaves no file with a name of its own.
    for _ in 0..2 {
        run(&arguments)
            .expect(1)
            .expect_message(&[&format!("output `{spec}`: "), "none/out.pcap"]);
    }
    assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 0);
}

/// Events of a replay wait for the receiver's address, and not for ever.
#[test]
fn a_receiver_that_answers_no_arp_is_named_and_given_up() {
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    // More than the queue of the output has room for.
    record(&boards(30_000), &capture);
    let output = "ejfat:10.0.0.9:19522,port=null";
    let ended = run(&["--port", &pcap_port(&capture), "--output", output]);
    let unheard = "no host has answered ARP for 10.0.0.9 on null";
    let ended = ended.expect_message(&["WARN", unheard, "counted as unsent"]);
    let output = &ended.report()["outputs"][0];
    let handed = number(output, "handed");
    assert!(handed > 8192, "{output}");
    assert_eq!(number(&output["lost"], "unsent"), handed, "{output}");
    assert_eq!(output["balanced"], true);
}
