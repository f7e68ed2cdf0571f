//! Links between processes: the ports of the members, and the other ends of them at the switch.

use std::path::Path;

use anyhow::{Result, ensure};
use clap::ValueEnum;
use pollux_farm::carrier::ETHERNET;
use serde::{Deserialize, Serialize};

use super::shares::Share;
use super::veths;

/// In the ports of a configuration: the name of the member.
const MEMBER: &str = "{member}";

/// Longest packet of a `unix` or a `vhost-user` port.
const MOST: usize = 65_521;

/// MTU of an Ethernet interface, which the programs of XDP take.
const XDP_MOST: usize = 1500;

/// What carries the frames between the processes of a run and the switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LinkName {
    /// Memory that the process shares with the switch
    #[default]
    VhostUser,
    /// Datagram sockets of the kernel
    Unix,
    /// `af_xdp` on veth pairs, with a network namespace of its own for each process; needs root
    #[value(name = "af_xdp")]
    AfXdp,
}

/// Ports of the processes. `{member}` is the name of the process's first member: `scheduler`,
/// `results`, `feeder0`, `node3`; of `farm run --processes`, `process0`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ports {
    /// Port of a process.
    pub member: String,
    /// The other end of it, at the switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
}

impl Ports {
    /// Ports over a kind of link, with sockets in a folder, for frames of so many bytes.
    ///
    /// # Errors
    /// Frames that the link cannot carry.
    pub fn over(link: LinkName, folder: &Path, max_frame: usize) -> Result<Self> {
        let mtu = max_frame - ETHERNET;
        let most = match link {
            LinkName::AfXdp => XDP_MOST,
            _ => MOST,
        };
        ensure!(
            mtu <= most,
            "frames of {mtu} B between processes: a port carries {most} B; set a smaller `fragment`, \
             `pack` or `slot`"
        );
        let folder = folder.display();
        Ok(match link {
            LinkName::VhostUser => Self {
                member: format!("vhost-user:{folder}/{MEMBER},mtu={mtu}"),
                switch: Some(format!(
                    "vhost-user:{folder}/{MEMBER},role=device,server=on,mtu={mtu}"
                )),
            },
            LinkName::Unix => Self {
                member: format!("unix:{folder}/{MEMBER},peer={folder}/{MEMBER}.switch,mtu={mtu}"),
                switch: Some(format!(
                    "unix:{folder}/{MEMBER}.switch,peer={folder}/{MEMBER},mtu={mtu}"
                )),
            },
            LinkName::AfXdp => Self {
                member: format!("af_xdp:{},promisc=on", veths::MEMBER),
                switch: Some(format!("af_xdp:{MEMBER},promisc=on")),
            },
        })
    }

    /// The port of a process.
    pub fn member(&self, name: &str) -> String {
        self.member.replace(MEMBER, name)
    }

    /// The other end of it.
    ///
    /// # Errors
    /// A configuration without it.
    pub fn switch(&self, name: &str) -> Result<String> {
        let Some(switch) = &self.switch else {
            anyhow::bail!("[ports] has no `switch`: name the other end of `member`, at the switch");
        };
        Ok(switch.replace(MEMBER, name))
    }
}

/// The name of a process that a user starts: that of its first member.
pub fn name(share: &Share) -> String {
    if share.scheduler {
        "scheduler".into()
    } else if share.results {
        "results".into()
    } else if !share.feeders.is_empty() {
        format!("feeder{}", share.feeders.start)
    } else {
        format!("node{}", share.nodes.first().unwrap_or(0))
    }
}
