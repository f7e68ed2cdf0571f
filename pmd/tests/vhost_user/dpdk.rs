//! Interoperation with DPDK: its vhost as the back end of this crate's front end, its virtio-user
//! as the front end of this crate's back end. testpmd returns the frames that it receives, and
//! counts them.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::support::{PATIENCE, Place, Port, frame, number, spec};

/// A running testpmd; killed when it is dropped.
pub(crate) struct Testpmd {
    child: Child,
    lines: Receiver<String>,
}

impl Testpmd {
    /// Starts it with one port, which returns the frames that it receives.
    fn start(vdev: &str, queues: u16, arguments: &[&str]) -> Self {
        // Line-buffered: into a pipe it would otherwise write nothing before it ends.
        let mut child = Command::new("stdbuf")
            .args(["-oL", "dpdk-testpmd"])
            // Two lcores, one of which only waits for input; they may run on all CPUs.
            .args([
                "--lcores",
                "0,1@(0-1)",
                "--no-huge",
                "--no-pci",
                "--no-telemetry",
            ])
            .args([
                "-m",
                "64",
                "--file-prefix",
                &format!("plx{}", std::process::id()),
            ])
            .args(["--vdev", vdev, "--"])
            .args([
                "--forward-mode=io",
                "--total-num-mbufs=4096",
                "--disable-link-check",
            ])
            .args([format!("--rxq={queues}"), format!("--txq={queues}")])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        let testpmd = Self { child, lines };
        testpmd.until("Press enter to exit");
        testpmd
    }

    /// With a back end, which listens.
    pub(crate) fn vhost(socket: &Path, queues: u16) -> Self {
        let vdev = format!("net_vhost0,iface={},queues={queues}", socket.display());
        Self::start(&vdev, queues, &[])
    }

    /// With a front end, which connects.
    pub(crate) fn virtio_user(socket: &Path, queues: u16, options: &str, longest: usize) -> Self {
        let vdev = format!(
            "net_virtio_user0,path={},queues={queues},queue_size=256,{options}",
            socket.display()
        );
        let jumbo = ["--enable-scatter", "--max-pkt-len=9200"];
        Self::start(&vdev, queues, if longest > 1514 { &jumbo } else { &[] })
    }

    /// Reads lines until one contains `text`; returns that one.
    fn until(&self, text: &str) -> String {
        let began = Instant::now();
        let mut all = Vec::new();
        while began.elapsed() < PATIENCE {
            let Ok(line) = self.lines.recv_timeout(Duration::from_millis(100)) else {
                continue;
            };
            if line.contains(text) {
                return line;
            }
            all.push(line);
        }
        panic!("testpmd did not say `{text}`, but:\n{}", all.join("\n"));
    }

    /// Stops it; returns the frames that it has received and sent.
    fn stop(mut self) -> (u64, u64) {
        self.child.stdin.take().unwrap().write_all(b"\n").unwrap();
        self.until("Forward statistics for port 0");
        let [received, sent] = ["RX-packets", "TX-packets"].map(|name| {
            let line = self.until(name);
            let number = line.split_whitespace().nth(1).unwrap();
            number.parse().unwrap()
        });
        self.until("Bye...");
        (received, sent)
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // testpmd does not remove its state files.
        let state = format!("/var/run/dpdk/plx{}", std::process::id());
        let _ = std::fs::remove_dir_all(state);
    }
}

/// Checked without starting it: a program that starts opens pipes for a moment, and another test
/// may be counting the open files of this process at that time.
pub(crate) fn there_is_dpdk() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|dir| dir.join("dpdk-testpmd").is_file());
    if !found {
        println!("skipped: no dpdk-testpmd (apt-get install dpdk)");
    }
    found
}

/// Frames of all lengths are sent by each queue and return, byte for byte and in order.
fn there_and_back(port: &mut Port, queues: usize, longest: usize) -> u64 {
    let mut total = 0;
    for queue in 0..queues {
        let lens: Vec<_> = (60..=longest.min(200))
            .chain((0..1500).map(|i| 60 + i * 7919 % (longest - 59)))
            .collect();
        let frames: Vec<_> = (0..).zip(&lens).map(|(i, &len)| frame(i, len)).collect();
        let (mut sent, mut got) = (0, 0);
        let began = Instant::now();
        while got < frames.len() {
            assert!(began.elapsed() < PATIENCE, "{sent} frames sent, {got} back");
            // Few at a time: testpmd drops frames for which the ring has no space.
            if sent - got <= 8 {
                let more = (sent + 8).min(frames.len());
                sent += port.send(queue, &frames[sent..more]);
            }
            for other in 0..queues {
                for bytes in port.poll(other) {
                    assert_eq!((other, number(&bytes) as usize), (queue, got));
                    assert_eq!(bytes.len(), lens[got]);
                    got += 1;
                }
            }
        }
        total += frames.len() as u64;
    }
    total
}

/// Frames that are sent as soon as the back end has started come back, at each connection of the
/// front end.
#[test]
fn nothing_is_lost_when_its_back_end_starts() {
    if !there_is_dpdk() {
        return;
    }
    let place = Place::new();
    let testpmd = Testpmd::vhost(&place.socket(), 1);
    let mut total = 0;
    for round in 0..10 {
        let packed = if round % 2 == 0 { "on" } else { "off" };
        let options = format!("packed={packed}");
        let mut port = Port::open(&spec(&place.socket(), &options), 1);
        let frames: Vec<_> = (0..32).map(|i| frame(i, 64)).collect();
        let (began, mut sent, mut got) = (Instant::now(), 0, 0);
        while got < 32 {
            assert!(began.elapsed() < PATIENCE, "{sent} frames sent, {got} back");
            sent += port.send(0, &frames[sent..]);
            for bytes in port.poll(0) {
                assert_eq!(number(&bytes), got);
                got += 1;
            }
        }
        total += 32;
        port.stop();
    }
    assert_eq!(testpmd.stop(), (total, total));
}

fn stop_and_compare(port: Port, frames: u64) {
    let (received, sent, errors) = port.stop();
    assert_eq!((received.from_wire, sent, errors), (frames, frames, 0));
    assert_eq!(received.dropped_total(), 0);
}

/// Options of this crate, the same of virtio-user, the queues, the longest frame. `scripts/interop`
/// has all combinations.
const VARIANTS: [(&str, &str, u16, usize); 4] = [
    (
        "packed=off,in-order=off,mergeable=off",
        "packed_vq=0,in_order=0,mrg_rxbuf=0",
        1,
        1514,
    ),
    (
        "packed=off,in-order=on,mergeable=on",
        "packed_vq=0,in_order=1,mrg_rxbuf=1",
        2,
        9000,
    ),
    (
        "packed=on,in-order=off,mergeable=on",
        "packed_vq=1,in_order=0,mrg_rxbuf=1",
        2,
        9000,
    ),
    (
        "packed=on,in-order=on,mergeable=on",
        "packed_vq=1,in_order=1,mrg_rxbuf=1",
        1,
        9000,
    ),
];

#[test]
fn our_front_end_with_its_back_end() {
    if !there_is_dpdk() {
        return;
    }
    let place = Place::new();
    // It serves one front end after the other.
    let testpmd = Testpmd::vhost(&place.socket(), 2);
    let mut total = 0;
    for (options, _, queues, longest) in VARIANTS {
        println!("{options}, {queues} queues");
        let options = format!("queues={queues},mtu=9000,{options}");
        let mut port = Port::open(&spec(&place.socket(), &options), queues);
        port.wait_up(true);
        let frames = there_and_back(&mut port, queues.into(), longest);
        stop_and_compare(port, frames);
        total += frames;
    }
    assert_eq!(testpmd.stop(), (total, total));
}

#[test]
fn our_back_end_with_its_front_end() {
    if !there_is_dpdk() {
        return;
    }
    for (options, theirs, queues, longest) in VARIANTS {
        println!("{options}, {queues} queues");
        let place = Place::new();
        let options = format!("role=device,server,queues={queues},mtu=9000,{options}");
        let mut port = Port::open(&spec(&place.socket(), &options), queues);
        let testpmd = Testpmd::virtio_user(&place.socket(), queues, theirs, longest);
        port.wait_up(true);
        let frames = there_and_back(&mut port, queues.into(), longest);
        assert_eq!(testpmd.stop(), (frames, frames));
        stop_and_compare(port, frames);
    }
}
