//! Warnings about faulty boards during the run.

use std::time::{Duration, Instant};

use pollux_na62::l0::{L0Stats, SourceCounts};
use pollux_pmd::{Balance, Cause, Count};

use crate::config::TriggerConfig;

/// Number of events after which the boards are judged again, by the counts since the last
/// judgement.
const STRETCH: u64 = 1000;
/// Time after which they are judged by fewer events, or by none, if frames have come.
const PERIOD: Duration = Duration::from_secs(5);
/// Number of frames that are enough to judge by, and number of those that cannot be read, or are of
/// another board, which are looked at without waiting for events: there may never be any.
const CASES: u64 = 20;
/// Time until it is known of all frames that are missing whether the kernel or the device dropped
/// them: their counts are read ten times a second.
const DROPS_KNOWN: Duration = Duration::from_millis(300);
/// Time after which a dropped frame no longer explains one that is missing.
const DROPS_SEEN: Duration = Duration::from_secs(10);
/// Causes of the drops of a trigger that is too slow.
pub const TOO_SLOW: [Cause; 3] = [Cause::KernelDrop, Cause::RingFull, Cause::NoMbuf];
/// Number of judgements without a fault after which the fault is over, and is reported again when
/// it returns.
const OVER: u32 = 10;

/// Text of a board's faults in a sentence.
pub fn explain(fault: &str) -> &'static str {
    match fault {
        "clock" => "its time stamps differ from those of most other boards: check its clock",
        "rate" => {
            "it sends many more events than most other boards: check its trigger, and for noise"
        }
        "late" => {
            "its frames come when their events are closed: check its path, or raise deadline_us"
        }
        "absent" => "most events are without it: check that it runs, and its clock",
        "sequence" => "its sequence numbers begin anew again and again: check its counter",
        "loss" => "frames of it are missing by their sequence numbers: check its path",
        "duplicates" => "its frames come twice: check its path",
        "hot" => "it has more hits than rings explain, which are passed over: check it for noise",
        "identity" => {
            "its frames claim to be of another board, or come on the port of another: check \
             identifiers and cables"
        }
        "unreadable" => {
            "its frames cannot be read, or are of no configured board: check what it sends, and \
             the first stage and the board numbers of the configuration"
        }
        _ => "it is not as the others",
    }
}

/// The warning that the trigger is too slow, if it dropped 1 % of the frames that came.
pub fn overload(came: u64, drops: [(Cause, u64); 3]) -> Option<String> {
    let dropped: u64 = drops.iter().map(|&(_, frames)| frames).sum();
    if dropped < CASES || 100 * dropped < came {
        return None;
    }
    let causes = drops.iter().filter(|&&(_, frames)| frames > 0);
    let causes: Vec<_> = causes.map(|(cause, _)| cause.name()).collect();
    Some(format!(
        "{dropped} frames came and were dropped here as {}: the trigger is too slow for them \
         (--rx-loops, --workers)",
        causes.join(" and ")
    ))
}

/// The warning that a builder is full, if 1 % of its events were closed early.
pub fn full(forced: u64, built: u64) -> Option<String> {
    (forced >= CASES && 100 * forced > built).then(|| {
        format!(
            "{forced} of {built} events were closed early, because the builder was full: raise \
             max_open of build, or capacity of merge; which boards are late is not known before"
        )
    })
}

/// Faults that were told, each with the number of judgements since it was last found.
#[derive(Clone, Default)]
struct Told(Vec<(&'static str, u32)>);

impl Told {
    /// A judgement without a fault brings its end nearer.
    fn age(&mut self, found: &[&'static str]) {
        for (fault, quiet) in &mut self.0 {
            *quiet = if found.contains(fault) { 0 } else { *quiet + 1 };
        }
        self.0.retain(|&(_, quiet)| quiet < OVER);
    }

    /// Whether a fault is to be told.
    fn is_new(&mut self, fault: &'static str) -> bool {
        let is_new = self.0.iter().all(|&(known, _)| known != fault);
        if is_new {
            self.0.push((fault, 0));
        }
        is_new
    }
}

/// Warnings given so far for each board.
pub struct BoardWatch {
    /// UDP port and board number of each stream.
    names: Vec<(u16, u8)>,
    /// Recent faults of each board, and of the trigger itself.
    told: Vec<Told>,
    own: Told,
    /// Counters, drops and time at the last judgement.
    before: L0Stats,
    drops: [u64; 3],
    judged: Instant,
    /// What could not be read at the last judgement by that alone.
    contents: L0Stats,
    /// When frames were first missing since the last judgement.
    missing: Option<Instant>,
    /// For how long a judgement of missing frames waits.
    drops_known: Duration,
    /// Frames that were dropped and may still show as missing: those that the kernel holds are received
    /// before. When the last of them was dropped.
    unseen: (u64, Instant),
}

fn sum(stats: &L0Stats, count: impl Fn(&SourceCounts) -> &Count) -> u64 {
    stats.sources.iter().map(|source| count(source).get()).sum()
}

impl BoardWatch {
    pub fn new(config: &TriggerConfig, recorded: bool, now: Instant) -> Self {
        let ports = config.streams.iter().map(|stream| stream.udp_port);
        let names: Vec<_> = ports.zip(config.boards()).collect();
        let none = L0Stats::new(names.len());
        Self {
            told: vec![Told::default(); names.len()],
            own: Told::default(),
            names,
            before: none.since(&none),
            drops: [0; 3],
            judged: now,
            contents: none.since(&none),
            missing: None,
            unseen: (0, now),
            // Nothing is dropped in front of a recording.
            drops_known: if recorded {
                Duration::ZERO
            } else {
                DROPS_KNOWN
            },
        }
    }

    /// Warns of new faults; for the iterations of housekeeping while the trigger's loop runs.
    pub fn watch(&mut self, stats: &L0Stats, balance: &Balance, now: Instant) {
        for warning in self.news(stats, balance, now) {
            tracing::warn!("{warning}");
        }
    }

    fn news(&mut self, stats: &L0Stats, balance: &Balance, now: Instant) -> Vec<String> {
        let mut news = self.judge_contents(stats);
        let stretch = stats.since(&self.before);
        if !self.is_due(&stretch, now) {
            return news;
        }
        self.before = stats.since(&L0Stats::new(self.names.len()));
        (self.judged, self.missing) = (now, None);
        self.explain_missing(&stretch, now);
        news.extend(self.judge_trigger(&stretch, balance));
        let found = stats.name_faults(&stretch);
        for (told, faults) in self.told.iter_mut().zip(&found) {
            told.age(faults);
        }
        news.extend(self.tell(&found));
        news
    }

    /// Whether a stretch is long enough to judge by.
    fn is_due(&mut self, stretch: &L0Stats, now: Instant) -> bool {
        let frames = sum(stretch, |it| &it.frames);
        let is_long = now.saturating_duration_since(self.judged) >= PERIOD && frames >= CASES;
        if stretch.events.built.get() < STRETCH && !is_long {
            return false;
        }
        if sum(stretch, |it| &it.missing) < CASES {
            return true;
        }
        let since = *self.missing.get_or_insert(now);
        now.saturating_duration_since(since) >= self.drops_known
    }

    /// Adds to the drops of a stretch those before it that are still to show as missing.
    fn explain_missing(&mut self, stretch: &L0Stats, now: Instant) {
        let (mut unseen, mut last) = self.unseen;
        let drops = &stretch.events.overload_drops;
        if drops.get() > 0 {
            last = now;
        } else if now.saturating_duration_since(last) > DROPS_SEEN {
            unseen = 0;
        }
        unseen += drops.get();
        drops.set(unseen);
        unseen = unseen.saturating_sub(sum(stretch, |it| &it.missing));
        self.unseen = (unseen, last);
    }

    /// Judges by what cannot be read, or is of another board: without events nothing else would be.
    fn judge_contents(&mut self, stats: &L0Stats) -> Vec<String> {
        let present = L0Stats::new(self.names.len());
        for (to, from) in present.sources.iter().zip(&stats.sources) {
            to.frames.set(from.frames.get());
            to.unreadable.set(from.unreadable.get());
            to.misrouted.set(from.misrouted.get());
        }
        let stretch = present.since(&self.contents);
        if sum(&stretch, |it| &it.unreadable) + sum(&stretch, |it| &it.misrouted) < CASES {
            return Vec::new();
        }
        self.contents = present.since(&L0Stats::new(self.names.len()));
        self.tell(&stats.name_faults(&stretch))
    }

    /// Faults of the trigger itself that are new.
    fn judge_trigger(&mut self, stretch: &L0Stats, balance: &Balance) -> Vec<String> {
        let now = TOO_SLOW.map(|cause| balance.dropped_for(cause));
        let before = std::mem::replace(&mut self.drops, now);
        let mut drops = TOO_SLOW.map(|cause| (cause, 0));
        for (drop, (now, before)) in drops.iter_mut().zip(now.iter().zip(before)) {
            drop.1 = now.saturating_sub(before);
        }
        let dropped: u64 = drops.iter().map(|&(_, frames)| frames).sum();
        let came = sum(stretch, |it| &it.frames) + dropped;
        let events = &stretch.events;
        let found = [
            ("overload", overload(came, drops)),
            ("full", full(events.forced.get(), events.built.get())),
        ];
        let found = found
            .into_iter()
            .filter_map(|(name, why)| Some((name, why?)));
        let found: Vec<_> = found.collect();
        let names: Vec<_> = found.iter().map(|&(name, _)| name).collect();
        self.own.age(&names);
        let news = found.into_iter().filter(|&(name, _)| self.own.is_new(name));
        news.map(|(_, why)| why).collect()
    }

    /// Those of the faults of each board that are new.
    fn tell(&mut self, found: &[Vec<&'static str>]) -> Vec<String> {
        let mut news = Vec::new();
        for (stream, faults) in found.iter().enumerate() {
            for fault in faults {
                if self.told[stream].is_new(fault) {
                    let ((port, board), why) = (self.names[stream], explain(fault));
                    news.push(format!(
                        "stream {stream} (UDP port {port}, board {board}): {fault}: {why}"
                    ));
                }
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> BoardWatch {
        BoardWatch::new(&TriggerConfig::default(), true, Instant::now())
    }

    impl BoardWatch {
        /// Without drops, at once.
        fn now(&mut self, stats: &L0Stats) -> Vec<String> {
            self.news(stats, &Balance::default(), self.judged)
        }
    }

    /// Adds events, of which a board missed some.
    fn run(stats: &L0Stats, events: u64, missed: u64) {
        stats.events.built.add(events);
        stats.events.shared.add(events);
        for source in &stats.sources {
            source.frames.add(events);
        }
        stats.sources[3].absent.add(missed);
        stats.sources[3].missed.add(missed);
    }

    #[test]
    fn each_fault_of_a_board_is_told_once_and_of_that_board() {
        let stats = L0Stats::new(4);
        let mut watch = watch();
        stats.sources[2].skewed.add(7);
        assert!(watch.now(&stats).is_empty(), "too early");
        run(&stats, STRETCH, 0);
        let news = watch.now(&stats);
        assert_eq!(news.len(), 1);
        assert!(news[0].starts_with("stream 2 (UDP port 58915, board 2): clock: "));
        assert!(watch.now(&stats).is_empty());
        stats.sources[2].misrouted.add(STRETCH);
        stats.sources[2].missing.add(STRETCH);
        run(&stats, STRETCH, 0);
        let news = watch.now(&stats);
        assert!(
            news.iter()
                .any(|said| said.contains("board 2): identity: "))
        );
    }

    /// However long it was sound before.
    #[test]
    fn a_board_that_dies_is_named_at_once_and_in_the_report() {
        let stats = L0Stats::new(4);
        let mut watch = watch();
        run(&stats, 1_000_000_000, 0);
        assert!(watch.now(&stats).is_empty());
        run(&stats, STRETCH, STRETCH);
        let news = watch.now(&stats);
        assert_eq!(news.len(), 1);
        assert!(news[0].starts_with("stream 3 (UDP port 58916, board 3): absent: "));
        assert_eq!(stats.faults(3), ["absent"]);
        assert!((0..3).all(|stream| stats.faults(stream).is_empty()));
        // Reported again only after it was over.
        for (sound, told) in [(1, 0), (OVER, 1)] {
            for _ in 0..sound {
                run(&stats, STRETCH, 0);
                assert!(watch.now(&stats).is_empty());
            }
            run(&stats, STRETCH, STRETCH);
            assert_eq!(watch.now(&stats).len(), told);
        }
        assert_eq!(stats.faults(3), ["absent"]);
    }

    /// One lost or late frame in a hundred, now and then, is normal on a network.
    #[test]
    fn a_few_frames_in_a_stretch_name_no_board() {
        let stats = L0Stats::new(4);
        let mut watch = watch();
        stats.events.built.add(1_000_000);
        stats.sources[1].frames.add(1_000_000);
        watch.now(&stats);
        stats.events.built.add(STRETCH);
        stats.sources[1].frames.add(STRETCH / 8);
        stats.sources[1].missing.add(5);
        assert!(watch.now(&stats).is_empty() && stats.faults(1).is_empty());
    }

    /// No event is built, however long the run is: each frame has the wrong detector.
    #[test]
    fn what_cannot_be_read_is_told_without_an_event() {
        let (stats, mut watch) = (L0Stats::new(4), watch());
        stats.sources[1].unreadable.add(CASES - 1);
        assert!(watch.now(&stats).is_empty());
        stats.sources[1].unreadable.add(1);
        let news = watch.now(&stats);
        assert_eq!(news.len(), 1);
        assert!(news[0].contains("board 1): unreadable: "), "{news:?}");
        stats.sources[1].unreadable.add(CASES);
        assert!(watch.now(&stats).is_empty(), "once");
        stats.sources[2].misrouted.add(CASES);
        let news = watch.now(&stats);
        assert_eq!(news.len(), 1);
        assert!(news[0].contains("board 2): identity: "), "{news:?}");
        assert_eq!(stats.faults(1), ["unreadable"]);
        // It is one in a hundred and no more of a board that sends.
        stats.sources[3].frames.add(100 * CASES);
        stats.sources[3].unreadable.add(CASES);
        assert!(watch.now(&stats).is_empty());
    }

    /// At 10 Hz a thousand events take 100 s.
    #[test]
    fn rare_events_are_judged_after_some_seconds() {
        let (stats, mut watch) = (L0Stats::new(4), watch());
        let start = watch.judged;
        run(&stats, 50, 50);
        let mut at = |time| watch.news(&stats, &Balance::default(), start + time);
        assert!(at(PERIOD / 2).is_empty());
        let news = at(PERIOD);
        assert_eq!(news.len(), 1);
        assert!(news[0].contains("board 3): absent: "), "{news:?}");
        // Nothing has come since: no judgement brings its end nearer.
        assert!((2..100).all(|n| at(n * PERIOD).is_empty()));
        run(&stats, 50, 50);
        assert!(at(101 * PERIOD).is_empty());
    }

    /// The counts of the kernel and the gaps of the sequence may be seen in either order.
    #[test]
    fn frames_that_the_trigger_was_too_slow_for_are_no_fault_of_a_board() {
        let stats = L0Stats::new(4);
        let start = Instant::now();
        let mut watch = BoardWatch::new(&TriggerConfig::default(), false, start);
        let mut tally = pollux_pmd::Tally::new();
        let mut step = |ms, dropped, missing| {
            run(&stats, STRETCH, 0);
            tally.count_dropped(Cause::KernelDrop, dropped);
            stats.events.overload_drops.add(dropped);
            stats.sources[2].missing.add(missing);
            let balance = tally.view().balance();
            watch.news(&stats, &balance, start + Duration::from_millis(ms))
        };
        let warning = "400 frames came and were dropped here as kernel-drop: the trigger is too \
                       slow for them (--rx-loops, --workers)";
        assert_eq!(step(0, 400, 0), [warning]);
        assert!(step(20, 0, 400).is_empty());
        assert!(step(400, 0, 0).is_empty(), "the drops before it");
        assert!(step(420, 0, 300).is_empty(), "the counts may be old");
        assert!(step(500, 300, 0).is_empty(), "told already");
        assert!(step(800, 0, 0).is_empty());
        assert!(stats.faults(2).is_empty());
        // What is missing beyond is lost on the way.
        assert!(step(820, 0, 1500).is_empty());
        let news = step(1200, 0, 0);
        assert_eq!(news.len(), 1);
        assert!(news[0].contains("board 2): loss: "), "{news:?}");
        assert_eq!(stats.faults(2), ["loss"]);
    }

    #[test]
    fn a_full_builder_is_told_and_no_board_blamed_for_it() {
        let (stats, mut watch) = (L0Stats::new(4), watch());
        run(&stats, STRETCH, STRETCH);
        stats.events.forced.add(STRETCH / 2);
        stats.sources[3].late.add(STRETCH / 2);
        stats.sources[1].apart.add(STRETCH / 2);
        let news = watch.now(&stats);
        let warning = "500 of 1000 events were closed early, because the builder was full: raise \
                       max_open of build, or capacity of merge; ";
        assert_eq!(news.len(), 1);
        assert!(news[0].starts_with(warning), "{news:?}");
        assert!((0..4).all(|stream| stats.faults(stream).is_empty()));
        // A board that is silent is absent all the same.
        let frames = stats.sources[3].frames.get();
        run(&stats, STRETCH, STRETCH);
        stats.events.forced.add(STRETCH / 2);
        stats.sources[3].frames.set(frames);
        let news = watch.now(&stats);
        assert_eq!(news.len(), 1);
        assert!(news[0].contains("board 3): absent: "), "{news:?}");
    }
}
