//! Configuration of a conversation: TOML.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use pollux_app::read_text;
use pollux_pmd::net::MacAddr;
use pollux_rdma::{Access, Key, Mtu, PathOptions, QpKind, QueuePair};
use serde::{Deserialize, Deserializer};

/// An endpoint, its memory and queue pairs, and what is posted at the start.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    pub(super) ip: Ipv4Addr,
    #[serde(deserialize_with = "mac")]
    pub(super) mac: MacAddr,
    #[serde(default)]
    pub(super) region: Vec<Region>,
    #[serde(default)]
    pub(super) qp: Vec<Qp>,
    #[serde(default)]
    pub(super) post: Vec<Post>,
}

/// Registered memory.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Region {
    pub(super) key: u32,
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// Rights of peers.
    access: Vec<Right>,
    /// Its first contents.
    pub(super) file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Right {
    Read,
    Write,
}

/// A queue pair, connected from the start.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Qp {
    pub(super) number: u32,
    kind: Service,
    /// Number of the peer's queue pair.
    pub(super) peer: u32,
    pub(super) peer_ip: Ipv4Addr,
    #[serde(deserialize_with = "mac")]
    pub(super) peer_mac: MacAddr,
    /// Sequence number of the peer's first packet, and of the first one to it.
    pub(super) recv_psn: u32,
    pub(super) send_psn: u32,
    mtu: usize,
    /// Receives that are posted, and the bytes of each.
    pub(super) receives: usize,
    pub(super) receive_bytes: u32,
    #[serde(default = "timeout")]
    timeout: u8,
    #[serde(default = "retry")]
    retry: u8,
    #[serde(default = "retry")]
    rnr_retry: u8,
    #[serde(default = "rnr_timer")]
    rnr_timer: u8,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Service {
    Rc,
    Uc,
}

/// A request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Post {
    pub(super) qp: u32,
    pub(super) op: Op,
    /// Key of a region of this endpoint, and the offset in it.
    pub(super) region: u32,
    pub(super) at: u64,
    pub(super) bytes: u32,
    /// Address and key of the peer's memory.
    #[serde(default)]
    pub(super) remote: u64,
    #[serde(default)]
    pub(super) key: u32,
    pub(super) immediate: Option<u32>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Op {
    Put,
    Get,
    Send,
}

const fn timeout() -> u8 {
    14
}

const fn retry() -> u8 {
    7
}

const fn rnr_timer() -> u8 {
    12
}

fn mac<'de, D: Deserializer<'de>>(from: D) -> Result<MacAddr, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(serde::de::Error::custom)
}

impl Region {
    pub(super) fn access(&self) -> Access {
        Access {
            remote_read: self.access.contains(&Right::Read),
            remote_write: self.access.contains(&Right::Write),
        }
    }

    /// Address behind its last byte.
    fn end(&self) -> Option<u64> {
        self.address.checked_add(self.bytes)
    }
}

impl Qp {
    pub(super) fn kind(&self) -> QpKind {
        match self.kind {
            Service::Rc => QpKind::Reliable,
            Service::Uc => QpKind::Unreliable,
        }
    }

    pub(super) fn path(&self) -> Result<PathOptions> {
        let mtu = Mtu::from_bytes(self.mtu);
        let mtu = mtu.with_context(|| {
            let mtu = self.mtu;
            format!("mtu = {mtu}: 256, 512, 1024, 2048 or 4096 bytes")
        })?;
        Ok(PathOptions {
            mtu,
            timeout: self.timeout,
            retry: self.retry,
            rnr_retry: self.rnr_retry,
            rnr_timer: self.rnr_timer,
            ..PathOptions::default()
        })
    }

    fn check(&self) -> Result<()> {
        self.path()?;
        for (name, value, most) in [
            ("number", self.number, (1 << 24) - 1),
            ("peer", self.peer, (1 << 24) - 1),
            ("recv_psn", self.recv_psn, (1 << 24) - 1),
            ("send_psn", self.send_psn, (1 << 24) - 1),
            ("timeout", self.timeout.into(), 31),
            ("retry", self.retry.into(), 7),
            ("rnr_retry", self.rnr_retry.into(), 7),
            ("rnr_timer", self.rnr_timer.into(), 31),
            ("receive_bytes", self.receive_bytes, 1 << 30),
        ] {
            ensure!(value <= most, "{name} = {value}: 0 to {most}");
        }
        let receives = self.receives;
        ensure!(receives <= 4096, "receives = {receives}: 0 to 4096");
        Ok(())
    }
}

impl Config {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = read_text(path)?;
        let config: Self = toml::from_str(&text)?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<()> {
        for (place, region) in self.region.iter().enumerate() {
            let key = Key(region.key);
            ensure!(region.bytes > 0, "[[region]] {key}: bytes = 0: 1 and more");
            let Some(end) = region.end() else {
                bail!("[[region]] {key}: it ends beyond 2^64: choose a lower address");
            };
            for other in &self.region[..place] {
                let name = Key(other.key);
                ensure!(
                    other.key != region.key,
                    "[[region]] {key}: the key is given twice: choose another one"
                );
                ensure!(
                    end <= other.address || other.end() <= Some(region.address),
                    "[[region]] {key}: it overlaps with the region {name}: give them addresses \
                     that are apart"
                );
            }
        }
        for (place, qp) in self.qp.iter().enumerate() {
            let number = qp.number;
            qp.check().with_context(|| format!("[[qp]] {number}"))?;
            ensure!(
                self.qp[..place].iter().all(|other| other.number != number),
                "[[qp]] {number}: the number is given twice: choose another one"
            );
            let posts = self.post.iter().filter(|post| post.qp == number).count();
            let most = QueuePair::REQUESTS;
            ensure!(
                posts <= most,
                "[[qp]] {number}: {posts} times [[post]]: up to {most}"
            );
        }
        for (place, post) in self.post.iter().enumerate() {
            self.check_post(post)
                .with_context(|| format!("[[post]] {place}"))?;
        }
        Ok(())
    }

    fn check_post(&self, post: &Post) -> Result<()> {
        let Some(qp) = self.qp.iter().find(|qp| qp.number == post.qp) else {
            bail!("qp = {}: the number of a [[qp]]", post.qp);
        };
        let Some(region) = self.region.iter().find(|region| region.key == post.region) else {
            bail!("region = {}: the key of a [[region]]", post.region);
        };
        let end = post.at.checked_add(post.bytes.into());
        ensure!(
            end.is_some_and(|end| end <= region.bytes),
            "{} B at {}: the region has {} B",
            post.bytes,
            post.at,
            region.bytes
        );
        ensure!(
            post.op != Op::Get || qp.kind() == QpKind::Reliable,
            "op = \"get\": of a queue pair of the kind \"rc\" only"
        );
        ensure!(
            post.op != Op::Get || post.immediate.is_none(),
            "immediate: of \"put\" and \"send\" only"
        );
        Ok(())
    }
}
