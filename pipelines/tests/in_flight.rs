//! Asynchronous stages: order, bounds, back-pressure and the end, with jobs that are done in any
//! order, late, or never; and batches of the sizes that stages want.

#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use pollux_mempool::time::Ns;
use pollux_pipelines::{
    AsyncStage, Batch, Busy, DynStage, InFlight, InFlightOptions, Moment, Output, Pipeline, Stage,
    StageExt, Ticket,
};
use pollux_pmd_testkit::guard::listen;
use proptest::prelude::*;

/// Jobs of a device that is driven by the test.
#[derive(Default)]
struct Jobs {
    open: Vec<(Ticket, Vec<u32>)>,
    done: Vec<(Ticket, Vec<u32>)>,
    most: usize,
    room: usize,
}

impl Jobs {
    /// Ends the job at a place.
    fn end(&mut self, place: usize) {
        let job = self.open.remove(place);
        self.done.push(job);
    }
}

/// Doubles numbers, elsewhere.
#[derive(Clone)]
struct Device {
    jobs: Rc<RefCell<Jobs>>,
    batch: RangeInclusive<usize>,
}

impl Device {
    fn new(room: usize, batch: RangeInclusive<usize>) -> Self {
        let jobs = Jobs {
            room,
            ..Jobs::default()
        };
        Self {
            jobs: Rc::new(RefCell::new(jobs)),
            batch,
        }
    }
}

impl AsyncStage for Device {
    type In = u32;
    type Out = u32;

    fn batch(&self) -> RangeInclusive<usize> {
        self.batch.clone()
    }

    fn submit(&mut self, ticket: Ticket, items: &mut Batch<u32>) -> Result<(), Busy> {
        let mut jobs = self.jobs.borrow_mut();
        if jobs.open.len() == jobs.room {
            return Err(Busy);
        }
        assert!(items.as_slice().len() <= *self.batch.end());
        let items = items.drain().collect();
        jobs.open.push((ticket, items));
        jobs.most = jobs.most.max(jobs.open.len());
        Ok(())
    }

    fn poll(&mut self, made: &mut Vec<u32>) -> Option<Ticket> {
        assert!(made.is_empty());
        let (ticket, items) = self.jobs.borrow_mut().done.pop()?;
        made.extend(items.iter().map(|n| 2 * n));
        Some(ticket)
    }
}

fn options(jobs: usize, patience_ms: u64) -> InFlightOptions {
    InFlightOptions {
        jobs,
        patience: Ns(patience_ms * 1_000_000),
    }
}

fn put(stage: &mut impl Stage<In = u32, Out = u32>, numbers: &[u32], out: &mut Vec<u32>) {
    let mut batch = Batch::with_capacity(numbers.len());
    for n in numbers {
        batch.push(*n).unwrap();
    }
    stage.process(&mut batch, out);
    assert!(batch.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whichever jobs are done first, and however the items come.
    #[test]
    fn results_leave_in_the_order_of_the_items(
        steps in prop::collection::vec((1..20usize, any::<prop::sample::Index>(), 0..4usize), 1..60),
        (jobs, room, most) in (1..6usize, 1..6usize, 1..9usize),
    ) {
        let device = Device::new(room, 1..=most);
        let work = Rc::clone(&device.jobs);
        let mut stage = InFlight::new(device, &options(jobs, 60_000));
        let counts = stage.counts();
        let (mut out, mut next) = (Vec::new(), 0);
        for (items, which, ends) in &steps {
            if !stage.is_full() {
                let numbers: Vec<u32> = (next..next + *items as u32).collect();
                next += *items as u32;
                put(&mut stage, &numbers, &mut out);
            }
            for _ in 0..*ends {
                let open = work.borrow().open.len();
                if open > 0 {
                    work.borrow_mut().end(which.index(open));
                }
            }
            stage.tick(Moment(0), &mut out);
            prop_assert!(counts.in_flight.get() <= jobs as u64);
        }
        // The rest, newest first, while the stage waits for it.
        while counts.in_flight.get() > 0 || stage.is_full() {
            let open = work.borrow().open.len();
            if open > 0 {
                work.borrow_mut().end(open - 1);
            }
            stage.tick(Moment(0), &mut out);
        }
        stage.finish(&mut out);
        prop_assert_eq!(out, (0..next).map(|n| 2 * n).collect::<Vec<_>>());
        prop_assert!(work.borrow().most <= jobs.min(room));
        prop_assert_eq!(counts.submitted.get(), counts.done.get());
        prop_assert_eq!(counts.lost.get(), 0);
    }

    /// However the items come, a stage has batches of the sizes that it wants, in their order, but
    /// for the last; compiled or by name, in front and behind others.
    #[test]
    fn batches_have_the_sizes_that_a_stage_wants(
        sizes in prop::collection::vec(1..40usize, 1..30),
        (least, more) in (1..30usize, 0..30usize),
        first in any::<bool>(),
    ) {
        let wanted = least..=least + more;
        let seen: Seen = Arc::default();
        let stage = || Sizes { wanted: wanted.clone(), seen: Arc::clone(&seen) };
        let mut compiled = Pass.then(stage()).then(Pass);
        let list = |mut stages: Vec<DynStage>| {
            if !first {
                stages.insert(0, DynStage::new("pass", Pass));
            }
            Pipeline::<u32, u32>::new(stages).unwrap()
        };
        let mut by_name = list(vec![DynStage::new("sizes", stage()), DynStage::new("pass", Pass)]);
        let (mut total, mut out) = (0, [Vec::new(), Vec::new()]);
        for size in &sizes {
            let numbers: Vec<u32> = (total..total + *size as u32).collect();
            total += *size as u32;
            put(&mut compiled, &numbers, &mut out[0]);
        }
        compiled.finish(&mut out[0]);
        let in_compiled = std::mem::take(&mut *seen.lock().unwrap());
        let mut batch = Batch::with_capacity(40);
        let mut next = 0;
        for size in &sizes {
            for n in next..next + *size as u32 {
                batch.push(n).unwrap();
            }
            next += *size as u32;
            by_name.process(&mut batch, &mut out[1]);
            batch.clear();
        }
        by_name.finish(&mut out[1]);
        let in_list = std::mem::take(&mut *seen.lock().unwrap());
        for sizes in [in_compiled, in_list] {
            let (last, others) = sizes.split_last().unwrap();
            prop_assert!(others.iter().all(|size| wanted.contains(size)), "{sizes:?}");
            prop_assert!(last <= wanted.end());
            prop_assert_eq!(sizes.iter().sum::<usize>(), total as usize);
        }
        let expected: Vec<u32> = (0..total).collect();
        prop_assert_eq!(&out[0], &expected);
        prop_assert_eq!(&out[1], &expected);
    }
}

type Seen = Arc<Mutex<Vec<usize>>>;

/// Passes items on.
struct Pass;

impl Stage for Pass {
    type In = u32;
    type Out = u32;

    fn process(&mut self, batch: &mut Batch<u32>, out: &mut impl Output<u32>) {
        batch.drain().for_each(|n| out.push(n));
    }
}

/// Passes items on, and records the sizes of batches.
struct Sizes {
    wanted: RangeInclusive<usize>,
    seen: Seen,
}

impl Stage for Sizes {
    type In = u32;
    type Out = u32;

    fn batch(&self) -> RangeInclusive<usize> {
        self.wanted.clone()
    }

    fn batch_wait(&self) -> Ns {
        Ns(1000)
    }

    fn process(&mut self, batch: &mut Batch<u32>, out: &mut impl Output<u32>) {
        self.seen.lock().unwrap().push(batch.as_slice().len());
        batch.drain().for_each(|n| out.push(n));
    }
}

#[test]
fn items_are_kept_back_for_a_bounded_time() {
    let seen: Seen = Arc::default();
    let stage = |seen: &Seen| Sizes {
        wanted: 8..=8,
        seen: Arc::clone(seen),
    };
    let named = |stages: Vec<DynStage>| Pipeline::<u32, u32>::new(stages).unwrap();
    let front = named(vec![DynStage::new("sizes", stage(&seen))]);
    let behind = named(vec![
        DynStage::new("pass", Pass),
        DynStage::new("sizes", stage(&seen)),
    ]);
    for mut pipeline in [front, behind] {
        let mut out = Vec::new();
        let mut batch = Batch::default();
        for n in 0..3 {
            batch.push(n).unwrap();
        }
        pipeline.process(&mut batch, &mut out);
        batch.clear();
        // They wait from the first tick on.
        for (now, count) in [(5000, 0), (5999, 0), (6000, 3)] {
            pipeline.tick(Moment(now), &mut out);
            assert_eq!(out.len(), count, "{now}");
        }
        // The next ones wait as long again.
        batch.push(3).unwrap();
        pipeline.process(&mut batch, &mut out);
        for (now, count) in [(6500, 3), (7499, 3), (7500, 4)] {
            pipeline.tick(Moment(now), &mut out);
            assert_eq!(out.len(), count, "{now}");
        }
    }
    let mut out = Vec::new();
    let mut compiled = Pass.then(stage(&seen));
    put(&mut compiled, &[1, 2], &mut out);
    compiled.tick(Moment(0), &mut out);
    compiled.tick(Moment(999), &mut out);
    assert!(out.is_empty());
    compiled.tick(Moment(1000), &mut out);
    assert_eq!(out, [1, 2]);
    assert_eq!(*seen.lock().unwrap(), [3, 1, 3, 1, 2]);
}

#[test]
fn a_stage_without_room_is_full_and_its_items_wait() {
    let device = Device::new(1, 1..=4);
    let work = Rc::clone(&device.jobs);
    let mut stage = InFlight::new(device, &options(8, 60_000));
    let mut out = Vec::new();
    put(&mut stage, &[1, 2, 3], &mut out);
    assert!(!stage.is_full(), "the job is with the device");
    put(&mut stage, &[4, 5], &mut out);
    assert!(stage.is_full());
    assert_eq!(stage.counts().busy.get(), 1);
    // Items that arrive nevertheless are taken.
    put(&mut stage, &[6, 7, 8], &mut out);
    work.borrow_mut().end(0);
    stage.tick(Moment(0), &mut out);
    assert_eq!(out, [2, 4, 6]);
    assert!(stage.is_full(), "of five items a job takes four");
    for _ in 0..2 {
        work.borrow_mut().end(0);
        stage.tick(Moment(0), &mut out);
    }
    assert!(!stage.is_full());
    assert_eq!(out, [2, 4, 6, 8, 10, 12, 14, 16]);
}

#[test]
fn a_job_that_is_never_done_is_given_up_and_its_items_are_counted() {
    let device = Device::new(8, 1..=2);
    let work = Rc::clone(&device.jobs);
    let mut stage = InFlight::new(device, &options(4, 5));
    let counts = stage.counts();
    let mut out = Vec::new();
    put(&mut stage, &[1, 2, 3, 4, 5], &mut out);
    // The first two are done, but for the second job.
    work.borrow_mut().end(0);
    work.borrow_mut().end(1);
    while counts.given_up.get() == 0 {
        stage.tick(Moment(0), &mut out);
    }
    stage.tick(Moment(0), &mut out);
    assert_eq!(out, [2, 4, 10]);
    assert_eq!((counts.given_up.get(), counts.lost.get()), (1, 2));
    // It is done after all, too late; the order of the others stays.
    put(&mut stage, &[6], &mut out);
    work.borrow_mut().end(0);
    work.borrow_mut().end(0);
    stage.tick(Moment(0), &mut out);
    stage.finish(&mut out);
    assert_eq!(out, [2, 4, 10, 12]);
    assert_eq!(counts.done.get(), 3);
    assert_eq!(counts.submitted.get(), 4);
}

#[test]
fn the_end_does_not_wait_for_ever() {
    let device = Device::new(1, 1..=2);
    let mut stage = InFlight::new(device, &options(4, 2));
    let counts = stage.counts();
    let mut out = Vec::new();
    put(&mut stage, &[1, 2, 3, 4, 5], &mut out);
    stage.finish(&mut out);
    assert!(out.is_empty() && !stage.is_full());
    assert_eq!(counts.lost.get(), 5, "two in flight, three that waited");
}

#[test]
fn a_stage_that_takes_no_job_is_not_full_for_ever() {
    let mut stage = InFlight::new(Device::new(0, 1..=2), &options(4, 2));
    let counts = stage.counts();
    let mut out = Vec::new();
    put(&mut stage, &[1, 2, 3], &mut out);
    assert!(stage.is_full());
    while stage.is_full() {
        stage.tick(Moment(0), &mut out);
    }
    assert_eq!((counts.lost.get(), counts.given_up.get()), (3, 0));
    assert!(out.is_empty());
}

/// Threads that work on jobs, as many at a time as there are threads.
struct Threads {
    to: mpsc::SyncSender<(Ticket, Vec<u32>)>,
    from: mpsc::Receiver<(Ticket, Vec<u32>)>,
}

impl Threads {
    fn start(threads: u64) -> Self {
        let (to, work) = mpsc::sync_channel::<(Ticket, Vec<u32>)>(2);
        let (done, from) = mpsc::channel();
        let work = Arc::new(Mutex::new(work));
        for number in 0..threads {
            let (work, done) = (Arc::clone(&work), done.clone());
            thread::spawn(move || {
                loop {
                    let job = work.lock().unwrap().recv();
                    let Ok((ticket, items)) = job else { return };
                    for _ in 0..(ticket.0 * 7 + number) % 5 {
                        thread::yield_now();
                    }
                    let made = items.iter().map(|n| 2 * n).collect();
                    if done.send((ticket, made)).is_err() {
                        return;
                    }
                }
            });
        }
        Self { to, from }
    }
}

impl AsyncStage for Threads {
    type In = u32;
    type Out = u32;

    fn submit(&mut self, ticket: Ticket, items: &mut Batch<u32>) -> Result<(), Busy> {
        let job = (ticket, items.as_slice().to_vec());
        let sent = self.to.try_send(job);
        sent.map(|()| items.clear()).map_err(|_| Busy)
    }

    fn poll(&mut self, made: &mut Vec<u32>) -> Option<Ticket> {
        let (ticket, items) = self.from.try_recv().ok()?;
        made.extend(items);
        Some(ticket)
    }
}

#[test]
fn a_full_asynchronous_stage_stops_its_loop_and_loses_nothing() {
    let stage = InFlight::new(Threads::start(3), &options(4, 60_000));
    let counts = stage.counts();
    let stages = vec![DynStage::new("pass", Pass), DynStage::new("threads", stage)];
    let mut pipeline = Pipeline::<u32, u32>::new(stages).unwrap();
    let (mut batch, mut out) = (Batch::default(), Vec::new());
    let mut next = 0;
    while next < 20_000 {
        if pipeline.has_room(&mut out) {
            while batch.push(next).is_ok() {
                next += 1;
            }
            pipeline.process(&mut batch, &mut out);
            batch.clear();
        }
        pipeline.tick(Moment(next.into()), &mut out);
    }
    pipeline.finish(&mut out);
    let expected: Vec<_> = (0..next).map(|n| 2 * n).collect();
    assert_eq!(out, expected);
    assert_eq!(counts.done.get(), counts.submitted.get());
    assert_eq!((counts.lost.get(), counts.in_flight.get()), (0, 0));
    assert!(pipeline.back_pressure().stops.get() > 0);
}

/// A device that does each job at once, in memory of its own.
struct AtOnce {
    jobs: [Option<(Ticket, [u32; 8], usize)>; 4],
}

impl AsyncStage for AtOnce {
    type In = u32;
    type Out = u32;

    fn batch(&self) -> RangeInclusive<usize> {
        2..=8
    }

    fn submit(&mut self, ticket: Ticket, items: &mut Batch<u32>) -> Result<(), Busy> {
        let slot = self.jobs.iter_mut().find(|job| job.is_none()).ok_or(Busy)?;
        let mut own = [0; 8];
        let count = items.as_slice().len();
        own[..count].copy_from_slice(items.as_slice());
        *slot = Some((ticket, own, count));
        items.clear();
        Ok(())
    }

    fn poll(&mut self, made: &mut Vec<u32>) -> Option<Ticket> {
        let (ticket, items, count) = self.jobs.iter_mut().rev().find_map(Option::take)?;
        made.extend_from_slice(&items[..count]);
        Some(ticket)
    }
}

#[test]
fn jobs_are_only_work_after_the_start() {
    let (results, noise) = listen(|ear| {
        let stage = InFlight::new(AtOnce { jobs: [None; 4] }, &InFlightOptions::default());
        let stages = vec![DynStage::new("pass", Pass), DynStage::new("device", stage)];
        let mut pipeline = Pipeline::<u32, u32>::new(stages).unwrap();
        let (mut batch, mut out) = (Batch::default(), Vec::with_capacity(100_000));
        ear.during(|| {
            for n in 0..2000_u32 {
                for item in 0..=n % 16 {
                    assert!(batch.push(item).is_ok());
                }
                pipeline.process(&mut batch, &mut out);
                pipeline.tick(Moment(u64::from(n) * 15_000), &mut out);
            }
            pipeline.finish(&mut out);
        });
        out.len()
    });
    assert_eq!(results, (0..2000).map(|n| 1 + n % 16).sum::<usize>());
    noise.assert_none();
}
