//! How long a loop that sleeps takes to have a frame that comes.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{fs, io, thread};

use anyhow::{Context as _, Result, ensure};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::lcore::idle::{Idle, IdlePolicy};
use pollux_pmd::mempool::time::{Ns, Tsc};
use pollux_pmd::mempool::{Burst, Mempool};
use pollux_pmd::{Clock as _, Ledger, PortConfig, TscClock};

use crate::nic::wait_until;
use crate::rig::{End, check_ledger, pool};
use crate::wire::plain;

/// Longest sleep: longer than any wait for a frame, so that the frame ends the sleep.
const LONGEST: Ns = Ns(30_000_000_000);

/// From one frame to the next: the loop is asleep by then.
const PAUSE: Duration = Duration::from_millis(5);

/// Sends frames one by one to a loop that sleeps between them. The time from the call that sends
/// one to the end of the poll that has found it, in order of length; and how often the loop slept.
pub(crate) fn measure(
    from: &mut End,
    to: &mut End,
    pool: &Mempool,
    ledger: &mut Ledger,
    count: usize,
) -> Result<(Vec<Ns>, u64)> {
    let frame = plain(to.mac()?, from.mac()?);
    let mut tally = to.count_into(ledger);
    let (mut cache, mut sleeper) = (pool.cache(64)?, pool.cache(64)?);
    let policy = IdlePolicy::Sleep { after: 1 };
    let mut idle = Idle::new(policy, LONGEST, to.rx.iter())?;
    let (clock, stop, found) = (TscClock::get(), StopFlag::new(), AtomicU64::new(0));
    let thread_of_loop = OnceLock::new();
    let came = to.rx[0].tally();
    let all = came.balance().from_wire + count as u64 + 1;
    let mut send = || -> Result<()> {
        let mut burst = Burst::<1>::new();
        let _ = burst.push(cache.alloc_from(&frame).context("the pool is empty")?);
        from.tx[0].tx(&mut cache, &mut burst);
        ensure!(burst.is_empty(), "the port has no room for a frame");
        Ok(())
    };
    let measured = thread::scope(|scope| {
        let asleep = scope.spawn(|| {
            // As the kernel calls this thread.
            let _ = thread_of_loop.set(fs::read_link("/proc/thread-self"));
            let mut burst = Burst::<32>::new();
            while !stop.is_set() {
                let received = to.rx[0].rx(&mut sleeper, &mut burst);
                if received == 0 {
                    idle.rest(&clock, to.rx.iter_mut());
                    continue;
                }
                // Release: the sender that sees it may send the next.
                found.store(clock.now().0, Ordering::Release);
                idle.worked(to.rx.iter_mut());
                tally.count_delivered(received as u64);
                sleeper.free_burst(&mut burst);
            }
            idle.sleeps()
        });
        let mut times = Vec::with_capacity(count);
        let mut each = || -> Result<()> {
            for _ in 0..count {
                thread::sleep(PAUSE);
                wait_until("the loop sleeps", || is_asleep(&thread_of_loop))?;
                found.store(0, Ordering::Relaxed);
                let sent = clock.now();
                send()?;
                // Acquire pairs with the loop's release.
                wait_until("the loop has the frame", || {
                    found.load(Ordering::Acquire) != 0
                })?;
                let found = Tsc(found.load(Ordering::Relaxed));
                times.push(clock.to_ns(found.since(sent)));
            }
            Ok(())
        };
        let ended = each();
        stop.stop();
        // It may be asleep.
        let woken = send();
        let sleeps = asleep.join();
        ended.and(woken)?;
        times.sort_unstable();
        anyhow::Ok((times, sleeps.unwrap_or(0)))
    })?;
    // The loop may have seen that it is to stop before the last frame.
    let mut burst = Burst::<1>::new();
    wait_until("the last frame has come", || {
        tally.count_delivered(to.rx[0].rx(&mut sleeper, &mut burst) as u64);
        sleeper.free_burst(&mut burst);
        came.balance().from_wire >= all
    })?;
    Ok(measured)
}

/// Whether a thread waits for something: its state in proc(5).
fn is_asleep(thread: &OnceLock<io::Result<PathBuf>>) -> bool {
    let Some(Ok(thread)) = thread.get() else {
        return false;
    };
    let stat = fs::read_to_string(Path::new("/proc").join(thread).join("stat"));
    stat.is_ok_and(|stat| stat.contains(") S "))
}

/// Of these times, in order of length.
pub(crate) fn show(times: &[Ns]) -> String {
    let at = |part: usize| times.get((times.len() * part / 1000).min(times.len() - 1));
    let us = |time: Option<&Ns>| time.map_or(0.0, |time| time.0 as f64 / 1000.0);
    format!(
        "us from sending to the poll of a loop that slept: shortest {:.1}, median {:.1}, 99 % {:.1}, \
         longest {:.1}",
        us(times.first()),
        us(at(500)),
        us(at(990)),
        us(times.last())
    )
}

/// Between any two ports that are wired to each other.
pub(crate) fn between(from: &str, to: &str, count: usize) -> Result<()> {
    let (pool, mut ledger) = (pool(2048)?, Ledger::new());
    let open = |spec: &str| -> Result<End> {
        let port = pollux_app::ports::registry().open(spec)?;
        let config = PortConfig {
            ring: 256,
            ..PortConfig::new(pool.clone())
        };
        End::start(port.configure(config)?)
    };
    let (mut a, mut b) = (open(from)?, open(to)?);
    let (times, sleeps) = measure(&mut a, &mut b, &pool, &mut ledger, count)?;
    println!("{}; {sleeps} sleeps", show(&times));
    drop((a.stop()?, b.stop()?));
    check_ledger(&pool, &ledger)
}
