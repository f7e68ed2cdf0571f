//! Notifications to a service manager.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use crate::common::{Folder, alone, start_by};

/// Messages until there is one that begins so.
fn until(socket: &UnixDatagram, wanted: &str) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        let mut message = [0; 4096];
        let n = socket.recv(&mut message);
        let n = n.unwrap_or_else(|error| panic!("no {wanted}: {error}; {seen:?}"));
        let text = String::from_utf8(message[..n].to_vec()).unwrap();
        let is_it = text.starts_with(wanted);
        seen.push(text);
        if is_it {
            return seen;
        }
    }
}

#[test]
fn a_service_manager_hears_of_the_run() {
    let _alone = alone();
    let folder = Folder::new();
    let socket = UnixDatagram::bind(folder.path("notify")).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let at = format!("NOTIFY_SOCKET={}", folder.arg("notify"));
    let by = ["env", &at, "WATCHDOG_USEC=400000"];
    let running = start_by(&by, &["--events", "50000000", "--run", "12"]);
    assert_eq!(
        until(&socket, "READY=1").len(),
        1,
        "something before it is ready"
    );
    for _ in 0..3 {
        until(&socket, "WATCHDOG=1");
    }
    let status = until(&socket, "STATUS=");
    assert!(status.last().unwrap().contains("run 12: "), "{status:?}");
    running.signal("INT");
    until(&socket, "STOPPING=1");
    running.wait().expect(0);
}

/// A replay that waits for its disk: the loop stands still, while the rest of the program does not.
#[test]
fn a_loop_that_stands_still_is_told_by_silence() {
    use crate::common::capture::{boards, record};
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    record(&boards(200_000), &capture);
    let pipe = folder.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    // Opened for both, it takes 64 KiB, and then keeps its writer.
    let _pipe = std::fs::File::options()
        .read(true)
        .write(true)
        .open(&pipe)
        .unwrap();
    let socket = UnixDatagram::bind(folder.path("notify")).unwrap();
    let at = format!("NOTIFY_SOCKET={}", folder.arg("notify"));
    let port = crate::common::pcap_port(&capture);
    let (events, by) = (folder.arg("pipe"), ["env", &at, "WATCHDOG_USEC=400000"]);
    let mut running = start_by(&by, &["--port", &port, "--events-out", &events]);
    // Longer than any gap between two meals of a run that works: then it has come to stand still.
    socket
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    until(&socket, "READY=1");
    let mut meals_since = 0;
    running.wait_until("the loop stands still", |_| {
        // A status comes each second: in ten of them a run that works eats often.
        let told = until(&socket, "STATUS=");
        let ate = told.iter().any(|message| message.starts_with("WATCHDOG"));
        meals_since = if ate { 0 } else { meals_since + 1 };
        meals_since == 5
    });
    assert!(running.is_alive());
    running.signal("INT");
    running.signal("INT");
    running.wait().expect(1);
}
