//! Veth pairs between the processes of a run and the switch, in network namespaces of their own
//! (veth(4), `network_namespaces(7)`).
//!
//! The namespaces have no names: each lasts as long as the run holds its file or a process is in it,
//! and its interfaces go with it. Whatever ends the run, nothing is left.

use std::fs::{self, File};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// Interface of a process, in its namespace.
pub const MEMBER: &str = "farm";

/// Namespaces of a run: that of the switch, and one of each process.
pub struct Veths {
    switch: Namespace,
    members: Vec<Namespace>,
}

/// A network namespace without a name.
pub struct Namespace(File);

impl Veths {
    /// Makes a pair for each process: `farm` in its namespace, and an interface of the process's
    /// name in that of the switch.
    ///
    /// # Errors
    /// A user without the rights, no `ip` program, or what it says.
    pub fn new(processes: &[String], mtu: usize) -> Result<Self> {
        let namespaces = || -> Result<Self> {
            Ok(Self {
                switch: Namespace::new()?,
                members: processes
                    .iter()
                    .map(|_| Namespace::new())
                    .collect::<Result<_>>()?,
            })
        };
        let veths = namespaces().context(
            "--link af_xdp: no network namespace of its own for each process; run as root, or take \
             --link vhost-user",
        )?;
        for (name, member) in processes.iter().zip(&veths.members) {
            let pair = || -> Result<()> {
                let there = member.path();
                veths.switch.within(|| {
                    ip(&format!(
                        "link add {name} mtu {mtu} type veth peer name {MEMBER} mtu {mtu} netns {there}"
                    ))?;
                    ip(&format!("link set {name} up"))
                })?;
                member.within(|| ip(&format!("link set {MEMBER} up")))
            };
            pair().context("--link af_xdp: a veth pair")?;
        }
        Ok(veths)
    }

    /// The namespace of the switch.
    pub fn switch(&self) -> &Namespace {
        &self.switch
    }

    /// The namespace of a process.
    pub fn member(&self, number: usize) -> Option<&Namespace> {
        self.members.get(number)
    }
}

impl Namespace {
    /// A namespace without IPv6: router solicitations would be frames that no member has sent.
    fn new() -> Result<Self> {
        in_thread(|| {
            // SAFETY: the flags name the network namespace alone. The table of file descriptors,
            // which other threads rely on, stays shared.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            for interfaces in ["all", "default"] {
                let path = format!("/proc/sys/net/ipv6/conf/{interfaces}/disable_ipv6");
                // A kernel without IPv6 has no such file.
                if fs::exists(&path).unwrap_or(false) {
                    fs::write(&path, "1").context(path)?;
                }
            }
            let path = "/proc/thread-self/ns/net";
            Ok(Self(File::open(path).context(path)?))
        })
    }

    /// Path for other processes, while this one has the file open.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Runs something in a thread in the namespace: what it opens, and programs that it starts, stay
    /// there.
    ///
    /// # Errors
    /// Those of the work, and a namespace that cannot be entered.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        in_thread(|| {
            move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
                .context("cannot enter the network namespace")?;
            work()
        })
    }
}

/// Runs something in a thread that ends with it: a thread alone is in a namespace.
fn in_thread<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("namespace".into());
        let thread = thread.spawn_scoped(scope, work)?;
        match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Runs an `ip` command.
fn ip(arguments: &str) -> Result<()> {
    let output = Command::new("ip")
        .args(arguments.split_whitespace())
        .output()
        .context("cannot run `ip`: install iproute2")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("ip {arguments}: {}", said.trim());
    }
    Ok(())
}
