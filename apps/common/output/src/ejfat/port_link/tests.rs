//! A link over a port whose device fails late, whose link goes down, or which is unplugged.

#![allow(clippy::unwrap_used)]
use super::*;
use std::sync::{Arc, Mutex, MutexGuard};

use pollux_mempool::BurstMut;
use pollux_pmd::driver::{Capabilities, Driver, Link as LinkState, Queues, TxDriver};
use pollux_pmd::ledger::Sent as SentCounts;
use pollux_pmd::port::PortConfig;
use pollux_pmd::{PortError, Registry};

use crate::counts::OutputCounts;
use crate::ejfat::headers::HEADERS;
use crate::ejfat::output::EjfatOutput;
use crate::event::OutputEvent;
use crate::output::EventOutput as _;
use crate::testing::{ACCEPTED, CACHE as EVENTS, event, pool};

/// A device that takes all frames, and tells of their outcomes later.
struct Device {
    link: LinkState,
    taken: u64,
    /// Frames that succeed and that fail at the next call.
    outcomes: (u64, u64),
}

#[derive(Clone)]
struct Shared(Arc<Mutex<Device>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Device> {
        self.0.lock().unwrap()
    }
}

impl Driver for Shared {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_rx_queues: 0,
            ..Registry::builtin().open("null").unwrap().capabilities()
        }
    }

    fn start(&mut self, _: &PortConfig, _: u16) -> Result<Queues, PortError> {
        Ok(Queues {
            rx: Vec::new(),
            tx: vec![Box::new(self.clone())],
        })
    }

    fn link(&self) -> LinkState {
        self.lock().link
    }
}

impl TxDriver for Shared {
    fn tx(
        &mut self,
        cache: &mut PoolCache,
        burst: &mut BurstMut<'_>,
        sent: &mut SentCounts,
    ) -> usize {
        let mut device = self.lock();
        let (packets, errors) = std::mem::take(&mut device.outcomes);
        sent.count(packets, packets * 64);
        sent.count_errors(errors);
        let n = burst.len();
        device.taken += n as u64;
        cache.free_front(burst, n);
        n
    }

    fn finish(&mut self, sent: &mut SentCounts) {
        let (packets, errors) = std::mem::take(&mut self.lock().outcomes);
        sent.count(packets, packets * 64);
        sent.count_errors(errors);
    }
}

struct Rig {
    device: Shared,
    counts: Arc<OutputCounts>,
    output: Box<EjfatOutput>,
    events: PoolCache,
}

impl Rig {
    /// An output of pieces of 100 bytes; a replay or a live run.
    fn new(recorded: bool) -> Self {
        let device = Shared(Arc::new(Mutex::new(Device {
            link: LinkState::UP,
            taken: 0,
            outcomes: (0, 0),
        })));
        let hosts = Hosts {
            data: "10.0.0.9:19522".parse().unwrap(),
            control: None,
            mac: None,
        };
        let (port, run) = (
            Port::new("late", Box::new(device.clone())),
            (Ipv4Addr::new(10, 0, 0, 1), recorded),
        );
        let link = PortLink::over(port, run, &hosts, HEADERS + 100).unwrap();
        let counts = Arc::<OutputCounts>::default();
        let spec = "ejfat:10.0.0.9:19522".parse().unwrap();
        let output = EjfatOutput::new(
            &spec,
            Box::new(link),
            (1, 100),
            None,
            false,
            Arc::clone(&counts),
        );
        Self {
            device,
            counts,
            output: Box::new(output),
            events: pool(4).cache(EVENTS).unwrap(),
        }
    }

    /// Sends an event of 144 bytes: two frames.
    fn push(&mut self, timestamp: u64) {
        let decision = event(timestamp, 20, ACCEPTED, &mut self.events);
        self.counts.queue.handed.add(1);
        self.output.push(OutputEvent {
            number: 0,
            view: decision.view(),
        });
    }

    fn has_room_with(&mut self, link: LinkState) -> bool {
        self.device.lock().link = link;
        std::thread::sleep(LOOK);
        self.output.work();
        self.output.has_room()
    }

    /// Events delivered and unsent.
    fn outcomes(&self) -> (u64, u64) {
        (self.counts.delivered.get(), self.counts.unsent.get())
    }
}

/// An event is delivered when its frames have left, not when the queue has taken them.
#[test]
fn frames_that_a_port_takes_and_loses_are_no_delivered_events() {
    let mut rig = Rig::new(true);
    for n in 0..4 {
        rig.push(n);
    }
    assert_eq!(rig.device.lock().taken, 8);
    assert_eq!(rig.outcomes(), (0, 0));
    rig.device.lock().outcomes = (2, 0);
    rig.output.work();
    assert_eq!(rig.outcomes(), (1, 0));
    rig.device.lock().outcomes = (1, 1);
    rig.output.work();
    assert_eq!(rig.outcomes(), (1, 1));
    // The last says nothing: its outcome is unknown.
    rig.device.lock().outcomes = (0, 2);
    let Rig { output, counts, .. } = rig;
    output.finish(Instant::now());
    let report = counts.report("x");
    assert_eq!((report.delivered, report.lost.unsent), (1, 3));
    assert!(report.balanced);
}

/// On a link that is down frames would be lost: events wait, in a replay for a time.
#[test]
fn events_wait_for_a_link_that_is_down() {
    for recorded in [false, true] {
        let mut rig = Rig::new(recorded);
        assert!(rig.has_room_with(LinkState::UP));
        assert!(!rig.has_room_with(LinkState::DOWN));
        assert!(rig.has_room_with(LinkState::UP));
        assert_eq!((rig.outcomes(), rig.device.lock().taken), ((0, 0), 0));
    }
}

/// A device that is unplugged comes back to no port: nothing waits for it.
#[test]
fn events_for_a_port_that_is_gone_are_unsent() {
    for recorded in [false, true] {
        let mut rig = Rig::new(recorded);
        let gone = LinkState {
            gone: true,
            ..LinkState::DOWN
        };
        assert!(rig.has_room_with(gone));
        rig.push(1);
        assert_eq!((rig.outcomes(), rig.device.lock().taken), ((0, 1), 0));
    }
}
