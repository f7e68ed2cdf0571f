//! The output to EJFAT by a port that fails during the run: no lost event counts as delivered, and the
//! run goes on to its end.

use std::net::UdpSocket;
use std::time::Duration;

use crate::common::capture::{boards, read, record};
use crate::common::small_disk::SmallDisk;
use crate::common::{Folder, number, pcap_port, start_by};
use pollux_pmd_testkit::netns::Cable;

/// A capture on a disk that fills up: delivered are the events whose frames are in the file.
#[test]
fn events_that_a_full_disk_loses_are_unsent() {
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    record(&boards(20_000), &capture);
    let Some(disk) = SmallDisk::new(&folder, "1m") else {
        return;
    };
    let output = format!(
        "ejfat:10.0.0.9:19522,port=pcap:tx={}",
        disk.arg("out.pcapng")
    );
    let arguments = ["--port", &pcap_port(&capture), "--output", &output];
    let ended = disk.run(&arguments, "out.pcapng", &folder.path("copy.pcapng"));
    let ended = ended.expect(0).expect_message(&[
        "No space left",
        "the port has not sent frames that it took: such events are counted as unsent",
    ]);
    let output = &ended.report()["outputs"][0];
    // Events fit a datagram each.
    let written = read(&folder.path("copy.pcapng")).len() as u64;
    assert!(written > 1000, "{output}");
    assert_eq!(number(output, "delivered"), written, "{output}");
    let lost = number(output, "handed") - written;
    assert!(lost > 0, "{output}");
    assert_eq!(number(&output["lost"], "unsent"), lost, "{output}");
    assert_eq!(output["balanced"], true);
}

/// An interface that is deleted under a replay, which waits for outputs, but not for this one.
#[test]
fn a_replay_ends_without_the_interface_of_its_output() {
    let Some(cable) = Cable::new(1500) else {
        return;
    };
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    record(&boards(30_000), &capture);
    // The address of the far end, which takes datagrams of the near one.
    let receiver = cable
        .b
        .within(|| UdpSocket::bind("10.77.0.1:19522"))
        .unwrap();
    receiver
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let config = folder.write("l0.toml", "[trigger]\nip = \"10.77.0.2\"\n");
    let by = ["ip", "netns", "exec", cable.a.name()];
    let running = start_by(
        &by,
        &[
            "--port",
            &format!("{},pace=recorded,loop=8", pcap_port(&capture)),
            "--config",
            &config,
            "--output",
            "ejfat:10.77.0.1:19522,mac=02:00:00:00:00:0b,port=af_packet:va",
        ],
    );
    receiver.recv(&mut [0; 2048]).unwrap();
    cable.a.ip("link del va");
    let ended = running.wait().expect(0);
    let ended = ended.expect_message(&["the device of af_packet:va is gone", "as unsent"]);
    let output = &ended.report()["outputs"][0];
    let [handed, delivered] = ["handed", "delivered"].map(|key| number(output, key));
    assert!(delivered > 0 && delivered < handed, "{output}");
    assert_eq!(number(&output["lost"], "unsent"), handed - delivered);
    assert_eq!(output["balanced"], true);
}
