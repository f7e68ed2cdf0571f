//! The output to Kafka without a broker.

use std::net::{Ipv4Addr, TcpListener};

use crate::common::{Folder, run};

/// An address at which nothing listens: a service tries it again.
fn away() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().to_string()
}

#[test]
fn a_broker_that_is_not_up_yet_is_no_wrong_option() {
    let folder = Folder::new();
    let (away, events) = (away(), folder.arg("events"));
    let with = |target: &str| {
        let spec = format!("kafka:{target},topic=l0");
        run(&["--events-out", &events, "--output", &spec])
    };
    with(&away)
        .expect(1)
        .expect_message(&[&format!("no broker at {away}: ")]);
    with("no-such-host.invalid:9092")
        .expect(2)
        .expect_message(&["the host of no-such-host.invalid:9092 has no address: "]);
    assert!(!folder.path("events").exists());
}
