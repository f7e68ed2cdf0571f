//! The program as the receiver of stacks.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::capture::{Capture, report};
use crate::{json, program};

/// Long enough for any machine.
pub(super) const LONG: Duration = Duration::from_mins(1);

/// Adds to a configuration what these tests need: stacks of so many images, which wait long enough for a busy
/// machine.
pub(super) fn patient(config: &Path, stack: usize) -> PathBuf {
    let text = std::fs::read_to_string(config).unwrap();
    let more = format!("[detector]\nstack = {stack}\ntimeout_us = 2000000\n");
    std::fs::write(config, text.replacen("[detector]\n", &more, 1)).unwrap();
    config.into()
}

/// A running receiver; dropping it kills it.
pub(super) struct Receiver {
    child: std::cell::RefCell<Child>,
    address: SocketAddr,
    report: PathBuf,
    log: PathBuf,
}

impl Receiver {
    /// Starts it at the socket `r` (`peer` is the other end), until it has so many images.
    pub(super) fn start(capture: &Capture, config: &Path, peer: &str, images: u64) -> Self {
        Self::start_at(capture, config, peer, images, free())
    }

    /// The same; it listens at `address`.
    pub(super) fn start_at(
        capture: &Capture,
        config: &Path,
        peer: &str,
        images: u64,
        address: SocketAddr,
    ) -> Self {
        let path = |name| capture.path(name).display().to_string();
        let (report, log) = (report(capture.folder.path()), capture.path("receiver.log"));
        let file = File::create(&log).unwrap();
        let port = format!("unix:{},peer={}", path("r"), path(peer));
        let (images, listen) = (images.to_string(), address.to_string());
        let child = program()
            .args([
                "--force", "--quiet", "--port", &port, "--rdma", &listen, "--images", &images,
            ])
            .arg("--config")
            .arg(config)
            .arg("--report")
            .arg(&report)
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn();
        Self {
            child: child.unwrap().into(),
            address,
            report,
            log,
        }
    }

    /// Where sources connect.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn kill(&self) {
        let mut child = self.child.borrow_mut();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Stops it in order.
    pub(super) fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child.borrow()), Signal::INT).unwrap();
    }

    /// Waits for its end; its report.
    pub(super) fn report(self) -> Value {
        let from = Instant::now();
        loop {
            if let Some(status) = self.child.borrow_mut().try_wait().unwrap() {
                let log = std::fs::read_to_string(&self.log).unwrap();
                assert!(status.success(), "{log}");
                return json(&self.report);
            }
            let log = std::fs::read_to_string(&self.log).unwrap();
            assert!(from.elapsed() < LONG, "it does not end: {log}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let child = self.child.get_mut();
        if std::thread::panicking() {
            // Its report says what it lacks.
            let _ = kill_process(Pid::from_child(child), Signal::INT);
            std::thread::sleep(Duration::from_secs(2));
            println!("{}", std::fs::read_to_string(&self.log).unwrap_or_default());
        }
        if matches!(child.try_wait(), Ok(None)) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// An address that is free, with the next port.
fn free() -> SocketAddr {
    loop {
        let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let first = bind(0).unwrap().local_addr().unwrap();
        if first
            .port()
            .checked_add(1)
            .is_some_and(|next| bind(next).is_ok())
        {
            return first;
        }
    }
}
