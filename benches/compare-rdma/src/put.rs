//! PUT over shared memory beside memcpy between the same buffers.

use std::os::unix::net::UnixStream;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use pollux_mempool::region::MemoryRegion;
use pollux_pmd::lcore;
use pollux_rdma::{
    Access, Buffer, Endpoint, Event, Memory, PathOptions, Payload, Put, QpOptions, QueuePair,
    Status, shm,
};

/// GB/s of turns of both, on one core: PUTs of `bytes`, one at a time, and copies. The other end of the link
/// takes no part.
pub(super) fn measure(
    core: usize,
    bytes: usize,
    time: Duration,
    rounds: usize,
) -> Result<[Vec<f64>; 2]> {
    let (left, right) = UnixStream::pair()?;
    let answer = std::thread::spawn(|| shm::endpoint(right, 1));
    let (mut here, _) = shm::endpoint(left, 1)?;
    let (mut there, _) = answer
        .join()
        .map_err(|_| anyhow!("a thread has failed"))??;
    let (from, source) = memory(&mut here, bytes, Access::LOCAL)?;
    let (into, target) = memory(&mut there, bytes, Access::WRITE)?;
    from.write(0, &vec![0x5a; bytes])?;
    let [qp, _peer] = pair(&mut here, &mut there)?;
    let mut sides = Sides {
        qp,
        from,
        into,
        source: Place(source),
        target: Place(target),
        bytes,
    };
    let turns = lcore::launch("put", Some(core), move || {
        let (mut ours, mut peer) = (Vec::new(), Vec::new());
        for round in 0..=rounds {
            let (put, copied) = (sides.put(time)?, sides.copy(time));
            // The first warms up.
            if round > 0 {
                ours.push(put);
                peer.push(copied);
            }
        }
        let mut found = vec![0; bytes];
        sides.into.read(0, &mut found)?;
        ensure!(
            found.iter().all(|&byte| byte == 0x5a),
            "the data are not there"
        );
        anyhow::Ok([ours, peer])
    })?;
    turns.join()?
}

/// A registered region, and its first byte.
fn memory(end: &mut Endpoint, bytes: usize, access: Access) -> Result<(Buffer, NonNull<u8>)> {
    let region = MemoryRegion::builder(bytes).build()?;
    let start = region.as_ptr();
    let buffer = end.register_buffer(&Memory::new(region), 0..bytes, access)?;
    Ok((buffer, start))
}

fn pair(here: &mut Endpoint, there: &mut Endpoint) -> Result<[QueuePair; 2]> {
    let a = here.create_queue_pair(&QpOptions::default())?;
    let b = there.create_queue_pair(&QpOptions::default())?;
    let path = PathOptions::default();
    here.connect(&a, &b.address(), &path)?;
    there.connect(&b, &a.address(), &path)?;
    Ok([a, b])
}

/// First byte of a region.
struct Place(NonNull<u8>);

// SAFETY: the region belongs to no thread; `Sides` alone accesses it by this address.
unsafe impl Send for Place {}

/// What both sides need.
struct Sides {
    qp: QueuePair,
    from: Buffer,
    into: Buffer,
    source: Place,
    target: Place,
    bytes: usize,
}

impl Sides {
    /// GB/s of PUTs.
    fn put(&mut self, time: Duration) -> Result<f64> {
        let whole = self.from.part(0, self.bytes as u32);
        let request = Put {
            cookie: 0,
            payload: Payload::Indirect(whole),
            to: self.into.remote(),
            immediate: None,
        };
        rate(self.bytes, time, || {
            self.qp
                .put(request)
                .map_err(|why| anyhow!("{}", why.refusal))?;
            self.qp.doorbell();
            let event = std::iter::repeat_with(|| self.qp.poll_event())
                .flatten()
                .next();
            match event.context("no event")? {
                Event::Done(done) if done.status == Status::Ok => Ok(()),
                other => Err(anyhow!("{other:?}")),
            }
        })
    }

    /// GB/s of memcpy.
    fn copy(&mut self, time: Duration) -> f64 {
        let (source, target) = (self.source.0.as_ptr(), self.target.0.as_ptr());
        let copied = rate(self.bytes, time, || {
            // SAFETY: both regions have so many bytes, and live as long as their buffers; no request is in
            // flight, and no other thread accesses them.
            unsafe { std::ptr::copy_nonoverlapping(source, target, self.bytes) };
            std::hint::black_box(target);
            Ok(())
        });
        copied.unwrap_or_default()
    }
}

/// GB/s of transfers of `bytes`.
fn rate(bytes: usize, time: Duration, mut transfer: impl FnMut() -> Result<()>) -> Result<f64> {
    // About 8 MiB between two looks at the time.
    let several = ((8 << 20) / bytes).max(1);
    let (begin, mut count) = (Instant::now(), 0);
    while begin.elapsed() < time {
        for _ in 0..several {
            transfer()?;
        }
        count += several;
    }
    Ok((count * bytes) as f64 / 1e9 / begin.elapsed().as_secs_f64())
}
