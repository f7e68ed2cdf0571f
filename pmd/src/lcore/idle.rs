//! Idle policies of a poll loop: busy poll, pause, or sleep until a device signals.

use std::fmt;
use std::os::fd::OwnedFd;
use std::str::FromStr;

use pollux_mempool::time::Ns;
use rustix::event::{Timespec, epoll};

use crate::clock::Clock;
use crate::port::RxQueue;

/// Action of a loop after an iteration in which its queues had no frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdlePolicy {
    /// Poll again at once: the lowest latency, at full use of the core.
    #[default]
    Busy,
    /// Pause for about a microsecond: this frees resources for the sibling hyperthread and saves
    /// power.
    Pause,
    /// Sleep after so many iterations without a frame, until a device wakes the loop: tens of
    /// microseconds of latency for the first frame, and a core that is free meanwhile.
    Sleep {
        /// Iterations without a frame.
        after: u32,
    },
}

/// Default number of iterations before a sleep: some hundred microseconds.
const ROUNDS: u32 = 10_000;

/// Error: an unknown policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an idle mode: busy, pause, sleep, or sleep=ROUNDS (1 and more)")]
pub struct BadIdlePolicy(String);

impl FromStr for IdlePolicy {
    type Err = BadIdlePolicy;

    fn from_str(text: &str) -> Result<Self, BadIdlePolicy> {
        let policy = match text.split_once('=') {
            None if text == "busy" => Some(Self::Busy),
            None if text == "pause" => Some(Self::Pause),
            None if text == "sleep" => Some(Self::Sleep { after: ROUNDS }),
            Some(("sleep", rounds)) => rounds
                .parse()
                .ok()
                .filter(|&after| after > 0)
                .map(|after| Self::Sleep { after }),
            _ => None,
        };
        policy.ok_or_else(|| BadIdlePolicy(text.into()))
    }
}

impl fmt::Display for IdlePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("busy"),
            Self::Pause => f.write_str("pause"),
            Self::Sleep { after } => write!(f, "sleep={after}"),
        }
    }
}

/// Error: a loop cannot use the requested policy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdleError {
    /// A queue has no event that could wake the loop.
    #[error(
        "queue {queue} of the loop cannot wake it: its device has no interrupts for this; use busy \
         or pause"
    )]
    NoEvent {
        /// Index of the queue among those of the loop.
        queue: usize,
    },
    /// The system refused.
    #[error(
        "a loop that sleeps cannot wait for its queues (epoll): {0}; raise the limit of open files \
         (`ulimit -n`), or use busy or pause"
    )]
    System(#[from] std::io::Error),
}

/// Idle handling of one loop.
///
/// Before a sleep it arms the event of each device, polls once more (a frame may have arrived
/// before the arming), and then waits for the events. The loop must call [`rest`](Self::rest) after
/// each iteration without a frame, and [`worked`](Self::worked) after each other one.
pub struct Idle {
    policy: IdlePolicy,
    longest: Timespec,
    /// The epoll instance of the events, for a loop that sleeps.
    events: Option<OwnedFd>,
    empty: u32,
    is_armed: bool,
    has_tpause: bool,
    sleeps: u64,
}

impl Idle {
    /// Idle handling of a loop over `queues`. No sleep is longer than `longest`, so that the loop
    /// reads its stop flag and does its other work in time.
    ///
    /// # Errors
    /// The loop is to sleep, and a queue cannot wake it.
    pub fn new<'a>(
        policy: IdlePolicy,
        longest: Ns,
        queues: impl Iterator<Item = &'a RxQueue>,
    ) -> Result<Self, IdleError> {
        let events = match policy {
            IdlePolicy::Busy | IdlePolicy::Pause => None,
            IdlePolicy::Sleep { .. } => {
                let events =
                    epoll::create(epoll::CreateFlags::CLOEXEC).map_err(std::io::Error::from)?;
                for (queue, rx) in queues.enumerate() {
                    let event = rx.event().ok_or(IdleError::NoEvent { queue })?;
                    let data = epoll::EventData::new_u64(queue as u64);
                    // Edge-triggered: a signal wakes the loop once, and the event is never read.
                    let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
                    epoll::add(&events, event, data, edge).map_err(std::io::Error::from)?;
                }
                Some(events)
            }
        };
        Ok(Self {
            policy,
            longest: Timespec {
                tv_sec: (longest.0 / 1_000_000_000).cast_signed(),
                tv_nsec: (longest.0 % 1_000_000_000).cast_signed(),
            },
            events,
            empty: 0,
            is_armed: false,
            has_tpause: has_tpause(),
            sleeps: 0,
        })
    }

    /// Number of sleeps.
    #[must_use]
    pub fn sleeps(&self) -> u64 {
        self.sleeps
    }

    /// Call it after an iteration that had frames.
    #[inline]
    pub fn worked<'a>(&mut self, queues: impl Iterator<Item = &'a mut RxQueue>) {
        self.empty = 0;
        if self.is_armed {
            self.disarm(queues);
        }
    }

    /// Call it after an iteration without frames; returns whether the loop has slept.
    #[inline]
    pub fn rest<'a>(
        &mut self,
        clock: &impl Clock,
        queues: impl Iterator<Item = &'a mut RxQueue>,
    ) -> bool {
        match self.policy {
            IdlePolicy::Busy => clock.relax(),
            IdlePolicy::Pause => pause(self.has_tpause),
            IdlePolicy::Sleep { after } if self.empty < after => {
                self.empty += 1;
                clock.relax();
            }
            IdlePolicy::Sleep { .. } => return self.sleep(queues),
        }
        false
    }

    #[cold]
    fn sleep<'a>(&mut self, queues: impl Iterator<Item = &'a mut RxQueue>) -> bool {
        if !self.is_armed {
            // One more poll before the sleep: not every device signals frames that arrived before
            // the arming.
            queues.for_each(RxQueue::arm);
            self.is_armed = true;
            return false;
        }
        if let Some(events) = &self.events {
            let mut signalled = [const { std::mem::MaybeUninit::<epoll::Event>::uninit() }; 16];
            // A signal that interrupts the sleep ends it, as an event does.
            let _ = epoll::wait(events, &mut signalled[..], Some(&self.longest));
            self.sleeps += 1;
        }
        self.disarm(queues);
        true
    }

    /// Restarts the idle period; the next sleep follows after a full one.
    #[cold]
    fn disarm<'a>(&mut self, queues: impl Iterator<Item = &'a mut RxQueue>) {
        queues.for_each(RxQueue::disarm);
        self.is_armed = false;
        self.empty = 0;
    }
}

/// Whether the CPU supports a timed wait (Intel SDM volume 2, TPAUSE: CPUID leaf 7, ECX bit 5).
fn has_tpause() -> bool {
    let waits = std::arch::x86_64::__cpuid_count(7, 0).ecx & (1 << 5) != 0;
    std::arch::x86_64::__cpuid(0).eax >= 7 && waits
}

/// Pauses for about a microsecond.
#[inline]
fn pause(has_tpause: bool) {
    /// Cycles of the time stamp counter, whichever clock the loop reads. If the counter steps back,
    /// the kernel's limit ends the pause (IA32_UMWAIT_CONTROL: 100000 cycles by default).
    const CYCLES: u64 = 2000;
    /// `pause` takes 40 to 140 cycles, depending on the CPU.
    const PAUSES: u32 = 20;
    if has_tpause {
        // SAFETY: every x86_64 CPU has the instruction, and Linux lets user space execute it.
        let end = unsafe { std::arch::x86_64::_rdtsc() } + CYCLES;
        // SAFETY: the CPU has the instruction. It accesses no memory and no register but the flags;
        // bit 0 of its operand selects the state with the shorter wake-up time (C0.1).
        unsafe {
            std::arch::asm!(
                "tpause {state:e}",
                state = in(reg) 1,
                in("eax") end as u32,
                in("edx") (end >> 32) as u32,
                options(nomem, nostack),
            );
        }
    } else {
        for _ in 0..PAUSES {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::fd::{AsFd, BorrowedFd};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::{Duration, Instant};

    use pollux_mempool::{BurstMut, Mempool, PoolCache, PoolConfig};
    use rustix::event::{EventfdFlags, eventfd};

    use super::*;
    use crate::driver::{Capabilities, Description, Driver, Origin, Queues, RxDriver};
    use crate::ledger::Tally;
    use crate::port::{PortConfig, PortError, StartedPort};
    use crate::{Registry, TscClock};

    /// A port whose queues have an event each and count calls to arm and disarm.
    #[derive(Clone, Default)]
    struct Bell(Arc<(AtomicU32, AtomicU32)>);

    struct Bells(Vec<(Bell, Arc<OwnedFd>)>);

    struct Rx(Bell, Arc<OwnedFd>);

    impl Driver for Bells {
        fn capabilities(&self) -> Capabilities {
            Capabilities {
                max_rx_queues: 2,
                max_tx_queues: 0,
                mac: None,
                max_frame: 1514,
                checksum_offload: false,
                wire_time: false,
                recorded: false,
                kernel_backed: false,
            }
        }

        fn start(&mut self, _: &PortConfig, _: u16) -> Result<Queues, PortError> {
            let queue = |(bell, event): &(Bell, Arc<OwnedFd>)| {
                Box::new(Rx(bell.clone(), event.clone())) as Box<dyn RxDriver>
            };
            Ok(Queues {
                rx: self.0.iter().map(queue).collect(),
                tx: Vec::new(),
            })
        }
    }

    impl RxDriver for Rx {
        fn rx(
            &mut self,
            _: &mut PoolCache,
            _: &mut BurstMut<'_>,
            _: &mut Origin,
            _: &mut Tally,
        ) -> usize {
            0
        }

        fn event(&self) -> Option<BorrowedFd<'_>> {
            Some(self.1.as_fd())
        }

        fn arm(&mut self) {
            self.0.0.0.fetch_add(1, Ordering::Relaxed);
        }

        fn disarm(&mut self) {
            self.0.0.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn start(spec: &str, registry: &Registry) -> StartedPort {
        let pool = PoolConfig {
            buffers: 64,
            ..PoolConfig::default()
        };
        let config = PortConfig {
            rx_queues: 2,
            tx_queues: 0,
            ring: 64,
            ..PortConfig::new(Mempool::new(pool).unwrap())
        };
        let port = registry.open(spec).unwrap();
        port.configure(config).unwrap().start().unwrap()
    }

    fn bells() -> (StartedPort, [(Bell, Arc<OwnedFd>); 2]) {
        let bell = || {
            let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
            (Bell::default(), Arc::new(event.unwrap()))
        };
        let bells = [bell(), bell()];
        let mut registry = Registry::builtin();
        let theirs = bells.to_vec();
        registry.register(Description::new("bell", "for this test"), move |_| {
            Ok(Box::new(Bells(theirs.clone())))
        });
        (start("bell", &registry), bells)
    }

    fn armed(bells: &[(Bell, Arc<OwnedFd>)]) -> Vec<(u32, u32)> {
        let count = |(bell, _): &(Bell, Arc<OwnedFd>)| {
            let Bell(counts) = bell;
            (
                counts.0.load(Ordering::Relaxed),
                counts.1.load(Ordering::Relaxed),
            )
        };
        bells.iter().map(count).collect()
    }

    #[test]
    fn a_loop_sleeps_after_its_rounds_until_a_device_wakes_it() {
        let (mut port, bells) = bells();
        let (clock, policy) = (TscClock::get(), IdlePolicy::Sleep { after: 3 });
        let mut idle = Idle::new(policy, Ns(60_000_000_000), port.rx.iter()).unwrap();
        for _ in 0..4 {
            assert_eq!(armed(&bells), [(0, 0); 2]);
            idle.rest(&clock, port.rx.iter_mut());
        }
        assert_eq!((armed(&bells), idle.sleeps()), (vec![(1, 0); 2], 0));
        // A frame before that would prevent the sleep.
        idle.worked(port.rx.iter_mut());
        assert_eq!(armed(&bells), [(1, 1); 2]);
        for _ in 0..4 {
            idle.rest(&clock, port.rx.iter_mut());
        }
        assert_eq!(armed(&bells), [(2, 1); 2]);
        let event = bells[1].1.clone();
        let device = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            rustix::io::write(&*event, &1_u64.to_ne_bytes()).unwrap()
        });
        let began = Instant::now();
        idle.rest(&clock, port.rx.iter_mut());
        assert!(began.elapsed() < Duration::from_secs(30), "it was woken");
        assert_eq!((armed(&bells), idle.sleeps()), (vec![(2, 2); 2], 1));
        device.join().unwrap();
        port.port.stop(port.rx, port.tx).unwrap();
    }

    #[test]
    fn a_sleep_has_an_end() {
        let (mut port, _bells) = bells();
        let policy = IdlePolicy::Sleep { after: 1 };
        let mut idle = Idle::new(policy, Ns(1_000_000), port.rx.iter()).unwrap();
        while idle.sleeps() < 3 {
            idle.rest(&TscClock::get(), port.rx.iter_mut());
        }
        port.port.stop(port.rx, port.tx).unwrap();
    }

    #[test]
    fn other_policies_need_no_device_that_wakes() {
        let registry = Registry::builtin();
        let mut port = start("null", &registry);
        for policy in [IdlePolicy::Busy, IdlePolicy::Pause] {
            let mut idle = Idle::new(policy, Ns(1), port.rx.iter()).unwrap();
            for _ in 0..100 {
                idle.rest(&TscClock::get(), port.rx.iter_mut());
            }
            assert_eq!(idle.sleeps(), 0);
        }
        let sleep = IdlePolicy::Sleep { after: 1 };
        let error = Idle::new(sleep, Ns(1), port.rx.iter()).err().unwrap();
        assert!(error.to_string().contains("use busy or pause"), "{error}");
        port.port.stop(port.rx, port.tx).unwrap();
    }

    #[test]
    fn policies_are_read_as_they_are_written() {
        for policy in [
            IdlePolicy::Busy,
            IdlePolicy::Pause,
            IdlePolicy::Sleep { after: 7 },
        ] {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert_eq!("sleep".parse(), Ok(IdlePolicy::Sleep { after: ROUNDS }));
        for text in ["", "sleep=0", "sleep=", "busy=1", "Busy"] {
            let error = text.parse::<IdlePolicy>().unwrap_err();
            assert!(error.to_string().contains("is not an idle mode"));
        }
    }
}
