//! Network namespaces.

use std::fs::File;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::netns::addresses::{IP_A, IP_B};

/// How long a test waits for what must come: a machine may have other work.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a command to its end.
#[must_use]
pub fn run(line: &str) -> Output {
    let mut words = line.split_whitespace();
    let program = words.next().unwrap();
    let output = Command::new(program).args(words).output();
    output.unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// A network namespace.
#[derive(Debug)]
pub struct Namespace(String);

impl Namespace {
    /// A namespace with nothing but `lo`, which is up, and without IPv6: router solicitations
    /// would be frames that no test has sent. `None`, and the reason on stdout, where namespaces
    /// cannot be made.
    #[must_use]
    pub fn new() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("plx{}-{number}", std::process::id());
        let Ok(output) = Command::new("ip").args(["netns", "add", &name]).output() else {
            println!("skipped: no `ip` program");
            return None;
        };
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            println!("skipped: network namespaces need root: {}", why.trim());
            return None;
        }
        let namespace = Self(name);
        namespace.within(|| {
            for interfaces in ["all", "default"] {
                let path = format!("/proc/sys/net/ipv6/conf/{interfaces}/disable_ipv6");
                std::fs::write(path, "1").unwrap();
            }
        });
        namespace.ip("link set lo up");
        Some(namespace)
    }

    /// Its name, for `ip -n NAME` and `ip netns exec NAME`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Runs an `ip` command in it that must succeed, and returns what it printed.
    #[track_caller]
    #[allow(clippy::must_use_candidate)] // mostly nothing is printed
    pub fn ip(&self, arguments: &str) -> String {
        let output = run(&format!("ip -n {} {arguments}", self.0));
        assert!(
            output.status.success(),
            "ip {arguments}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a program in it to its end.
    #[must_use]
    pub fn exec(&self, line: &str) -> Output {
        run(&format!("ip netns exec {} {line}", self.0))
    }

    /// Makes an interface the kernel's end: it has [`MAC_B`](crate::netns::MAC_B) and [`IP_B`], and knows the station
    /// of [`IP_A`].
    pub fn make_kernel_end(&self, device: &str) {
        self.ip(&format!("link set {device} address 02:00:00:00:00:0b"));
        self.ip(&format!("address add 10.77.0.1/24 dev {device}"));
        self.ip(&format!(
            "neighbour add 10.77.0.2 lladdr 02:00:00:00:00:0a dev {device} nud permanent"
        ));
    }

    /// A UDP socket at the kernel's end, for the addresses of the port's end.
    #[must_use]
    pub fn peer(&self, port: u16) -> UdpSocket {
        self.within(|| {
            let bind = || UdpSocket::bind((Ipv4Addr::from(IP_B), port));
            // A program that another test is starting holds a copy of a closed socket until it
            // runs.
            let mut socket = bind();
            for _ in 0..100 {
                if !matches!(&socket, Err(error) if error.kind() == ErrorKind::AddrInUse) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
                socket = bind();
            }
            let socket = socket.unwrap();
            socket.connect((Ipv4Addr::from(IP_A), 9000)).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket
        })
    }

    /// Runs a closure in a thread of its own inside the namespace; what it opens stays there.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let file = File::open(format!("/run/netns/{}", self.0)).unwrap();
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                work()
            });
            thread.join().unwrap()
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = run(&format!("ip netns delete {}", self.0));
    }
}
