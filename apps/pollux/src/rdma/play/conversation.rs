//! The endpoint of a conversation, and its program.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, ensure};
use pollux_app::read_up_to;
use pollux_pmd::mempool::region::MemoryRegion;
use pollux_rdma::roce::{QpIdentity, RoceEndpoint};
use pollux_rdma::{
    Access, Buffer, Endpoint, Event, Get, Key, Local, Memory, Message, Payload, Psn, Put,
    QpAddress, QpNumber, QpOptions, QueuePair, Receive, RemoteBuffer, Status,
};

use super::config::{Config, Op, Post, Qp, Region};
use super::report::{Completion, FailedQp};

/// Queue pairs and memory of the endpoint.
pub(super) struct Conversation {
    regions: Vec<Registered>,
    queue_pairs: Vec<Connected>,
    pub(super) completions: Vec<Completion>,
    pub(super) failed: Vec<FailedQp>,
}

/// Memory that peers have.
struct Registered {
    key: Key,
    bytes: usize,
    memory: Memory,
    /// Registered until the end.
    _buffer: Buffer,
}

/// A queue pair with the buffers of its receives.
struct Connected {
    queue_pair: QueuePair,
    /// Of all receives, one behind the other.
    received: Option<(Memory, Buffer)>,
    receive_bytes: u32,
}

/// Numbers of a configuration are checked: they have 24 bits.
fn number(number: u32) -> Result<QpNumber> {
    QpNumber::new(number).with_context(|| format!("queue pair {number}: up to 2^24 - 1"))
}

fn memory(bytes: usize) -> Result<Memory> {
    let region = MemoryRegion::builder(bytes).build();
    Ok(Memory::new(region.context("no memory for a region")?))
}

impl Conversation {
    /// Registers the memory, connects the queue pairs, and posts all requests and receives.
    pub(super) fn new(config: &Config, roce: &RoceEndpoint) -> Result<Self> {
        let mut endpoint = roce.endpoint();
        let regions = config.region.iter().map(|region| {
            let named = || format!("[[region]] {}", Key(region.key));
            register(region, roce).with_context(named)
        });
        let regions = regions.collect::<Result<_>>()?;
        let queue_pairs = config.qp.iter().map(|qp| {
            let named = || format!("[[qp]] {}", qp.number);
            connect(qp, roce, &mut endpoint).with_context(named)
        });
        let mut queue_pairs = queue_pairs.collect::<Result<Vec<_>>>()?;
        for (cookie, post) in (0..).zip(&config.post) {
            let mut all = queue_pairs.iter_mut().map(|known| &mut known.queue_pair);
            let qp = all.find(|qp| qp.number().get() == post.qp);
            let posted = qp
                .context("no such queue pair")
                .and_then(|qp| post_to(qp, cookie, post));
            posted.with_context(|| format!("[[post]] {cookie}"))?;
        }
        for known in &mut queue_pairs {
            known.queue_pair.doorbell();
        }
        Ok(Self {
            regions,
            queue_pairs,
            completions: Vec::new(),
            failed: Vec::new(),
        })
    }

    /// Takes all events.
    pub(super) fn take_events(&mut self) {
        for known in &mut self.queue_pairs {
            while let Some(event) = known.queue_pair.poll_event() {
                match event {
                    Event::Done(done) => self.completions.push(done.into()),
                    Event::Failed(failed) => self.failed.push(failed.into()),
                    Event::Received(received) => {
                        let is_here = received.status == Status::Ok && !received.is_put;
                        let crc = is_here.then(|| known.crc32(received.cookie, received.bytes));
                        let done = Completion::received(&received, crc.flatten());
                        self.completions.push(done);
                    }
                }
            }
        }
    }

    /// Writes what the memory holds, each region to KEY.bin.
    pub(super) fn save(&self, folder: &Path) -> Result<()> {
        for Registered {
            key, bytes, memory, ..
        } in &self.regions
        {
            let file = folder.join(format!("{key}.bin"));
            let mut contents = vec![0; *bytes];
            memory.read(0, &mut contents)?;
            fs::write(&file, contents).with_context(|| file.display().to_string())?;
        }
        Ok(())
    }
}

impl Connected {
    /// Checksum of a message.
    fn crc32(&self, cookie: u64, bytes: u32) -> Option<u32> {
        let mut data = vec![0; bytes as usize];
        if let Some((memory, _)) = &self.received {
            let offset = cookie as usize * self.receive_bytes as usize;
            memory.read(offset, &mut data).ok()?;
        }
        Some(crc32fast::hash(&data))
    }
}

fn register(region: &Region, roce: &RoceEndpoint) -> Result<Registered> {
    let bytes = usize::try_from(region.bytes)?;
    let memory = memory(bytes)?;
    if let Some(file) = &region.file {
        let contents = read_up_to(file, region.bytes);
        let contents = contents.with_context(|| file.display().to_string())?;
        memory.write(0, &contents)?;
    }
    let key = Key(region.key);
    let at = RemoteBuffer {
        address: region.address,
        key,
    };
    Ok(Registered {
        key,
        bytes,
        _buffer: roce.register_buffer_at(&memory, 0..bytes, region.access(), at)?,
        memory,
    })
}

fn connect(qp: &Qp, roce: &RoceEndpoint, endpoint: &mut Endpoint) -> Result<Connected> {
    let options = QpOptions {
        kind: qp.kind(),
        receives: qp.receives.next_power_of_two().max(2),
        ..QpOptions::default()
    };
    let identity = QpIdentity {
        number: number(qp.number)?,
        psn: Psn::new(qp.send_psn),
    };
    let mut queue_pair = roce.create_queue_pair_as(&options, identity)?;
    let received = match qp.receives * qp.receive_bytes as usize {
        0 => None,
        bytes => {
            let (receives, each) = (qp.receives, qp.receive_bytes);
            let named = || format!("receives = {receives} of receive_bytes = {each}");
            let memory = memory(bytes).with_context(named)?;
            let buffer = endpoint.register_buffer(&memory, 0..bytes, Access::LOCAL)?;
            Some((memory, buffer))
        }
    };
    for cookie in 0..qp.receives as u64 {
        let key = received.as_ref().map_or(Key(0), |(_, buffer)| buffer.key());
        let to = Local {
            key,
            offset: cookie * u64::from(qp.receive_bytes),
            len: qp.receive_bytes,
        };
        let posted = queue_pair.post_receive(Receive { cookie, to });
        ensure!(posted.is_ok(), "receives = {}: too many", qp.receives);
    }
    let peer = QpAddress {
        number: number(qp.peer)?,
        psn: Psn::new(qp.recv_psn),
        ip: qp.peer_ip,
        mac: Some(qp.peer_mac),
    };
    endpoint.connect(&queue_pair, &peer, &qp.path()?)?;
    Ok(Connected {
        queue_pair,
        received,
        receive_bytes: qp.receive_bytes,
    })
}

fn post_to(qp: &mut QueuePair, cookie: u64, post: &Post) -> Result<()> {
    let local = Local {
        key: Key(post.region),
        offset: post.at,
        len: post.bytes,
    };
    let remote = RemoteBuffer {
        address: post.remote,
        key: Key(post.key),
    };
    let payload = Payload::Indirect(local);
    let immediate = post.immediate;
    let refusal = match post.op {
        Op::Put => qp
            .put(Put {
                cookie,
                payload,
                to: remote,
                immediate,
            })
            .map_err(|refused| refused.refusal),
        Op::Get => qp
            .get(Get {
                cookie,
                from: remote,
                to: local,
            })
            .map_err(|refused| refused.refusal),
        Op::Send => qp
            .send(Message {
                cookie,
                payload,
                immediate,
            })
            .map_err(|refused| refused.refusal),
    };
    refusal.map_err(|refusal| anyhow!(refusal))
}
