//! Congestion: notifications and rates against a model of the paper, and queue pairs that share a link.

use pollux_faults::BottleneckOptions;
use pollux_pmd::driver::Megabits;
use pollux_rdma::{Access, Buffer, Event, Get, Mtu, Payload, Put, QpKind, QueuePair, Status};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::hub::Hub;
use crate::raw::{Raw, Scene};
use crate::rig::{address, memory, path};

/// A reaction point as Zhu et al. describe it (SIGCOMM 2015, section 3.1, figure 7 and equations 1 to 4):
/// written from the paper, event by event.
struct ReactionPoint {
    line_rate: f64,
    /// Current and target rate, and alpha.
    rate: f64,
    target: f64,
    alpha: f64,
    /// Expirations of the timer and of the byte counter since the last cut.
    timer: u32,
    counter: u32,
    bytes: u64,
    /// When alpha is updated, and when the timer expires, in ns.
    alpha_at: u64,
    timer_at: u64,
}

impl ReactionPoint {
    const G: f64 = 1.0 / 256.0;
    const F: u32 = 5;
    const PERIOD: u64 = 55_000;
    const COUNTER: u64 = 10_000_000;
    const ADDITIVE: f64 = 40e6;
    const HYPER: f64 = 400e6;

    fn new(line_rate: f64) -> Self {
        Self {
            line_rate,
            rate: line_rate,
            target: line_rate,
            alpha: 1.0,
            timer: 0,
            counter: 0,
            bytes: 0,
            alpha_at: 0,
            timer_at: 0,
        }
    }

    /// Equation 1.
    fn notify(&mut self, now: u64) {
        self.target = self.rate;
        self.rate *= 1.0 - self.alpha / 2.0;
        self.alpha = (1.0 - Self::G) * self.alpha + Self::G;
        (self.timer, self.counter, self.bytes) = (0, 0, 0);
        (self.alpha_at, self.timer_at) = (now + Self::PERIOD, now + Self::PERIOD);
    }

    /// Equations 2 to 4.
    fn increase(&mut self) {
        let (most, least) = (self.timer.max(self.counter), self.timer.min(self.counter));
        if least > Self::F {
            self.target += f64::from(least - Self::F) * Self::HYPER;
        } else if most > Self::F {
            self.target += Self::ADDITIVE;
        }
        self.target = self.target.min(self.line_rate);
        self.rate = f64::midpoint(self.target, self.rate);
    }

    fn advance(&mut self, now: u64) {
        while self.alpha_at <= now {
            self.alpha *= 1.0 - Self::G;
            self.alpha_at += Self::PERIOD;
        }
        while self.timer_at <= now {
            self.timer += 1;
            self.timer_at += Self::PERIOD;
            self.increase();
        }
    }

    fn send(&mut self, bytes: u64) {
        self.bytes += bytes;
        if self.bytes >= Self::COUNTER {
            self.bytes = 0;
            self.counter += 1;
            self.increase();
        }
    }
}

/// An endpoint under traffic that never ends, and the model beside it.
struct Sender {
    scene: Scene,
    model: ReactionPoint,
    /// The endpoint paces the queue pair.
    is_paced: bool,
    /// Polls in each phase: recovery by half, by steps, by large steps.
    phases: [u64; 3],
}

impl Sender {
    const LINE_RATE: f64 = 100e9;

    fn new() -> Self {
        Self {
            scene: Scene::new(QpKind::Unreliable, Access::LOCAL, &path(Mtu::B4096)),
            model: ReactionPoint::new(Self::LINE_RATE),
            is_paced: false,
            phases: [0; 3],
        }
    }

    /// A microsecond, in which a notification comes or none.
    fn step(&mut self, is_notified: bool) {
        let Self { scene, model, .. } = self;
        if is_notified {
            let rest = vec![0; 16];
            scene.send_frame(
                &Raw {
                    rest,
                    ..Raw::new(0x81, 0)
                }
                .frame(),
            );
        }
        // A queue pair at its full rate has nothing to send: it would send all at once.
        let (payload, to) = (
            Payload::Indirect(scene.buffer.part(0, 8192)),
            scene.buffer.remote(),
        );
        let put = Put {
            cookie: 0,
            payload,
            to,
            immediate: None,
        };
        while self.is_paced && scene.qp.put(put).is_ok() {}
        scene.qp.doorbell();
        scene.now.0 += 1000;
        let now = scene.now.0;
        scene.host.poll.poll(scene.now);
        scene.events();
        if self.is_paced {
            model.advance(now);
        }
        if is_notified {
            if !self.is_paced {
                *model = ReactionPoint::new(Self::LINE_RATE);
            }
            model.notify(now);
        }
        for frame in scene.frames() {
            model.send(frame.len() as u64);
        }
        let rate = scene.host.poll.rate(scene.qp.number());
        self.is_paced = rate.is_some();
        let Some(rate) = rate else {
            // All but a step of it is all of it.
            assert!(Self::LINE_RATE - model.rate < ReactionPoint::ADDITIVE);
            return;
        };
        let error = (rate - model.rate).abs() / model.rate;
        assert!(
            error < 1e-9,
            "{} us: {rate}, not {}",
            now / 1000,
            model.rate
        );
        let (most, least) = (
            model.timer.max(model.counter),
            model.timer.min(model.counter),
        );
        let is_beyond = [most, least].map(|times| usize::from(times > ReactionPoint::F));
        self.phases[is_beyond[0] + is_beyond[1]] += 1;
    }
}

/// Notifications at random times, and pauses that are long enough for each phase of the recovery.
#[test]
fn the_rate_is_that_of_the_paper() {
    let mut sender = Sender::new();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut pauses: Vec<u64> = (0..200).map(|_| rng.random_range(1..400)).collect();
    pauses.extend([3000, 8000, 50, 50, 50, 50, 50, 70_000, 1]);
    for pause in pauses {
        sender.step(true);
        for _ in 1..pause {
            sender.step(false);
        }
    }
    assert!(
        sender.phases.iter().all(|&polls| polls > 1000),
        "{:?}",
        sender.phases
    );
    sender.scene.stop();
}

/// A queue pair that puts, or gets, all the time over the bottleneck.
struct Flow {
    qps: [QueuePair; 2],
    buffers: [Buffer; 2],
    is_get: bool,
    bytes: u64,
}

impl Flow {
    const REQUEST: u32 = 16_384;

    fn new(hub: &mut Hub, n: u32, is_get: bool) -> Self {
        let number = |end: usize| 100 * (1 + end as u32) + n;
        let buffers = [0, 1].map(|end| hub.hosts[end].register(&memory(1 << 16), Access::ALL));
        let qps = [0, 1].map(|end| {
            let host = &mut hub.hosts[end];
            let qp = host.queue_pair(QpKind::Reliable, number(end), 0);
            let peer = address(1 - end, number(1 - end), 0);
            host.endpoint
                .connect(&qp, &peer, &path(Mtu::B1024))
                .unwrap();
            qp
        });
        Self {
            qps,
            buffers,
            is_get,
            bytes: 0,
        }
    }

    /// Data go from the first end to the second.
    fn run(&mut self) {
        let [near, far] = &self.buffers;
        let qp = &mut self.qps[usize::from(self.is_get)];
        loop {
            let is_posted = if self.is_get {
                let (from, to) = (near.remote(), far.part(0, Self::REQUEST));
                qp.get(Get {
                    cookie: 0,
                    from,
                    to,
                })
                .is_ok()
            } else {
                let payload = Payload::Indirect(near.part(0, Self::REQUEST));
                let (to, immediate) = (far.remote(), None);
                qp.put(Put {
                    cookie: 0,
                    payload,
                    to,
                    immediate,
                })
                .is_ok()
            };
            if !is_posted {
                break;
            }
        }
        qp.doorbell();
        while let Some(event) = qp.poll_event() {
            match event {
                Event::Done(done) => {
                    assert_eq!(done.status, Status::Ok);
                    self.bytes += u64::from(done.bytes);
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

const RATE: f64 = 8e9;

fn bottleneck(mark_above: u64) -> BottleneckOptions {
    BottleneckOptions {
        rate: RATE,
        mark_above,
        capacity: 300_000,
    }
}

/// Runs flows for so many microseconds; a flow begins each so often. Returns the bytes of each in the last
/// half.
fn share(hub: &mut Hub, flows: &mut [Flow], us: u64, apart: u64) -> Vec<u64> {
    let mut before = Vec::new();
    for time in 0..us {
        if time == us / 2 {
            before = flows.iter().map(|flow| flow.bytes).collect();
        }
        for flow in flows.iter_mut().take(1 + (time / apart) as usize) {
            flow.run();
        }
        hub.step();
    }
    flows
        .iter()
        .zip(before)
        .map(|(flow, before)| flow.bytes - before)
        .collect()
}

/// What a flow has of the link in so many microseconds.
fn part(bytes: u64, us: u64) -> f64 {
    bytes as f64 * 8e6 / us as f64 / RATE
}

fn two_share(is_get: bool) {
    const US: u64 = 60_000;
    let mut hub = Hub::with_bottleneck(bottleneck(20_000), Megabits(10_000));
    let mut flows = [0, 1].map(|n| Flow::new(&mut hub, n, is_get));
    let bytes = share(&mut hub, &mut flows, US, 2000);
    let parts: Vec<f64> = bytes.iter().map(|&bytes| part(bytes, US / 2)).collect();
    let [faults, _] = hub.faults();
    let counts = [0, 1].map(|n| hub.hosts[n].counts());
    println!("get: {is_get}, parts {parts:?}, {faults:?}");
    assert!(
        parts.iter().sum::<f64>() > 0.8,
        "the link is used: {parts:?}"
    );
    assert!(
        parts.iter().all(|&part| part > 0.25),
        "both have a share: {parts:?}"
    );
    assert!(faults.marked > 0 && counts[0].notified > 0);
    assert_eq!(
        (
            faults.congested,
            counts[0].retransmitted,
            counts[1].retransmitted
        ),
        (0, 0, 0)
    );
    // No more than one in 50 us for each queue pair.
    assert!(counts[0].notified <= 2 * (US / 50 + 1), "{counts:?}");
    assert_eq!(counts[1].marked, faults.marked);
    drop(flows);
    hub.stop();
}

#[test]
fn two_queue_pairs_share_a_link_by_its_marks() {
    two_share(false);
}

#[test]
fn responses_to_gets_are_paced_too() {
    two_share(true);
}

#[test]
fn four_windows_fit_the_queue_by_marks_alone() {
    let lost = [20_000, 300_000].map(|mark_above| {
        let mut hub = Hub::with_bottleneck(bottleneck(mark_above), Megabits(10_000));
        let mut flows = [0, 1, 2, 3].map(|n| Flow::new(&mut hub, n, false));
        share(&mut hub, &mut flows, 16_000, 2000);
        let [faults, _] = hub.faults();
        drop(flows);
        hub.stop();
        faults.congested
    });
    assert_eq!(lost[0], 0);
    assert!(lost[1] > 0, "the four would fit without marks");
}
