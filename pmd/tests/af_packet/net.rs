//! Two network namespaces with a veth pair between them: `va` in the first is the port's, `vb`
//! in the second the kernel's.

use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

pub(crate) const MAC_A: [u8; 6] = [2, 0, 0, 0, 0, 0x0a];
pub(crate) const MAC_B: [u8; 6] = [2, 0, 0, 0, 0, 0x0b];
/// Address of the port's end; only the neighbour table of the other end knows it.
pub(crate) const IP_A: [u8; 4] = [10, 77, 0, 2];
pub(crate) const IP_B: [u8; 4] = [10, 77, 0, 1];

pub(crate) struct Net {
    pub(crate) a: String,
    pub(crate) b: String,
}

fn run(command: &str) -> Output {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap();
    Command::new(program).args(words).output().unwrap()
}

/// Runs an `ip` command that must succeed.
pub(crate) fn ip(arguments: &str) {
    let output = run(&format!("ip {arguments}"));
    assert!(
        output.status.success(),
        "ip {arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

impl Net {
    /// `None`, and the reason on stdout, where namespaces cannot be made.
    pub(crate) fn new(mtu: u32) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "plx{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let net = Self {
            a: format!("{name}a"),
            b: format!("{name}b"),
        };
        let Ok(output) = Command::new("ip").args(["netns", "add", &net.a]).output() else {
            println!("skipped: no `ip` program");
            return None;
        };
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            println!("skipped: network namespaces need root: {}", why.trim());
            return None;
        }
        let (a, b) = (&net.a, &net.b);
        ip(&format!("netns add {b}"));
        ip(&format!(
            "-n {a} link add va mtu {mtu} type veth peer name vb mtu {mtu} netns {b}"
        ));
        for (namespace, device, mac) in [
            (a, "va", "02:00:00:00:00:0a"),
            (b, "vb", "02:00:00:00:00:0b"),
        ] {
            net.within(namespace, || {
                // Router solicitations would be frames that no test has sent.
                std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1").unwrap();
                std::fs::write(
                    format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6"),
                    "1",
                )
                .unwrap();
            });
            ip(&format!("-n {namespace} link set {device} address {mac}"));
            ip(&format!("-n {namespace} link set lo up"));
        }
        ip(&format!("-n {b} address add 10.77.0.1/24 dev vb"));
        ip(&format!("-n {a} link set va up"));
        ip(&format!("-n {b} link set vb up"));
        ip(&format!(
            "-n {b} neighbour add 10.77.0.2 lladdr 02:00:00:00:00:0a dev vb nud permanent"
        ));
        Some(net)
    }

    /// Runs a closure in a thread of its own inside a namespace; what it opens stays there.
    #[allow(clippy::unused_self)] // the namespaces live as long as the borrow
    pub(crate) fn within<T: Send>(&self, namespace: &str, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let file = File::open(format!("/run/netns/{namespace}")).unwrap();
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                work()
            });
            thread.join().unwrap()
        })
    }

    /// A UDP socket of the kernel's at the far end, for the addresses of the port's end.
    pub(crate) fn peer(&self, port: u16) -> UdpSocket {
        self.within(&self.b, || {
            let socket = UdpSocket::bind(("10.77.0.1", port)).unwrap();
            socket.connect(("10.77.0.2", 9000)).unwrap();
            socket
                .set_read_timeout(Some(Duration::from_secs(5)))
                .unwrap();
            socket
        })
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for namespace in [&self.a, &self.b] {
            run(&format!("ip netns delete {namespace}"));
        }
    }
}
