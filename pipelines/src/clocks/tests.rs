//! What the clocks make of four sources, or two, that say a time now and then.

use super::*;

/// Slots of 25 ns in a microsecond, and in the deadline.
const US: u64 = 40;
const DEADLINE: u64 = 300 * US;
const HORIZON: u64 = 100_000 * US;
/// Where time begins: two minutes into the burst.
const START: u64 = 4_800_000_000;

struct Rig {
    clocks: Clocks<u16>,
    /// Microseconds since the beginning.
    now: u64,
}

impl Rig {
    fn new(sources: usize) -> Self {
        let clocks = Clocks::new(ClockOptions {
            sources,
            horizon: HORIZON,
            slack: 0,
            grain: 1,
            deadline: Ns(300_000),
            units_per_ns: 0.04,
            last_burst: 1000,
        });
        Self { clocks, now: 0 }
    }

    fn at(&self) -> Moment {
        Moment(1_000_000_000 + self.now * 1000)
    }

    /// The time that a right clock says.
    fn time(&self) -> u64 {
        START + self.now * US
    }

    /// A frame of a source, so much ahead of a right clock.
    fn says(&mut self, source: usize, ahead: i64) -> Result<(), Cause> {
        let time = self.time().saturating_add_signed(ahead);
        self.says_time(source, time)
    }

    fn says_time(&mut self, source: usize, time: u64) -> Result<(), Cause> {
        let at = self.at();
        self.clocks.admit(source, time, at, START, false)?;
        self.clocks.said(source, time);
        Ok(())
    }

    /// The same of these sources, which have right clocks.
    fn go_on(&mut self, sources: impl IntoIterator<Item = usize>) {
        for source in sources {
            assert_eq!(self.says(source, 0), Ok(()), "{source} at {} us", self.now);
        }
    }

    fn change(&mut self) -> Option<Change<u16>> {
        self.clocks.change(self.at())
    }

    fn wait(&mut self, us: u64) {
        self.now += us;
        self.clocks.tick(self.at());
    }
}

const FAR: i64 = 1_000_000 * US as i64;

#[test]
fn sources_of_one_time_are_one_timeline_and_idle_time_is_no_jump() {
    let mut rig = Rig::new(4);
    for us in [1, 1, 50, 10_000_000, 1] {
        rig.go_on(0..4);
        assert_eq!((rig.change(), rig.clocks.off()), (None, 0));
        assert_eq!(rig.clocks.members(MAIN), 0b1111);
        rig.wait(us);
    }
}

#[test]
fn a_jump_is_believed_when_a_majority_has_made_it() {
    for by in [FAR, -FAR] {
        let mut rig = Rig::new(4);
        rig.go_on(0..4);
        rig.wait(10);
        for source in [2, 0] {
            assert_eq!(rig.says(source, by), Ok(()));
            assert!(rig.clocks.is_on_trial() && rig.clocks.line(source) == OTHER);
            assert_eq!(rig.change(), None);
        }
        assert_eq!(rig.says(3, by), Ok(()));
        assert_eq!(rig.change(), Some(Change::Adopted));
        assert_eq!((rig.change(), rig.clocks.members(OTHER)), (None, 0));
        // The last one follows.
        assert_eq!(rig.says(1, by), Ok(()));
        assert_eq!((rig.clocks.line(1), rig.clocks.off()), (MAIN, 0));
    }
}

#[test]
fn a_stray_time_costs_its_own_frame_and_nothing_else() {
    let mut rig = Rig::new(4);
    rig.go_on(0..4);
    rig.wait(10);
    assert_eq!(rig.says(1, FAR), Ok(()));
    rig.go_on([0, 2, 3]);
    assert_eq!(rig.change(), None);
    rig.wait(10);
    rig.go_on([1]);
    assert_eq!(rig.change(), Some(Change::Rejected(Cause::OutOfWindow)));
    assert_eq!((rig.clocks.off(), rig.clocks.line(1)), (0, MAIN));
}

#[test]
fn one_that_jumps_alone_is_off_until_it_agrees_again() {
    let mut rig = Rig::new(4);
    rig.go_on(0..4);
    for _ in 0..3 {
        rig.wait(100);
        assert_eq!(rig.says(1, FAR), Ok(()));
        assert_eq!(rig.change(), None);
        rig.go_on([0, 2, 3]);
    }
    rig.wait(100);
    assert_eq!(rig.change(), Some(Change::Rejected(Cause::ClockSkew)));
    assert_eq!(rig.clocks.off(), 0b0010);
    assert_eq!(rig.says(1, FAR), Err(Cause::ClockSkew));
    // Nearer than the horizon is not near enough now.
    assert_eq!(rig.says(1, 2 * DEADLINE as i64), Err(Cause::ClockSkew));
    for n in 0..AGREED {
        assert_eq!(rig.clocks.off(), 0b0010, "{n}");
        rig.wait(1);
        rig.go_on(0..4);
    }
    assert_eq!(rig.clocks.off(), 0);
}

#[test]
fn one_that_most_others_have_not_come_to_is_off() {
    // Within the horizon nothing jumps: it goes on, and is compared a deadline later.
    for (ahead, off) in [(DEADLINE as i64 / 2, 0), (2 * DEADLINE as i64, 0b0100)] {
        let mut rig = Rig::new(4);
        for _ in 0..1000 {
            rig.go_on([0, 1, 3]);
            let _ = rig.says(2, ahead);
            assert_eq!(rig.change(), None);
            rig.wait(1);
        }
        assert_eq!(rig.clocks.off(), off, "{ahead}");
    }
}

#[test]
fn times_that_come_back_from_ahead_are_counted() {
    let mut rig = Rig::new(4);
    for n in 0..100 {
        let ahead = if n % 10 == 5 { HORIZON as i64 / 2 } else { 0 };
        rig.go_on([0, 1, 3]);
        assert_eq!(rig.says(2, ahead), Ok(()));
        rig.wait(1);
    }
    let strays = rig.clocks.take_news().map(|news| news.strays.to_vec());
    assert_eq!(strays.as_deref(), Some(&[0, 0, 10, 0][..]));
}

#[test]
fn two_that_differ_go_on_side_by_side_until_one_is_silent() {
    let mut rig = Rig::new(2);
    rig.go_on([0, 1]);
    for _ in 0..3 {
        rig.wait(100);
        assert_eq!(rig.says(1, FAR), Ok(()));
        assert_eq!(rig.change(), None);
        rig.go_on([0]);
    }
    rig.wait(100);
    assert_eq!(rig.change(), Some(Change::Disputed));
    assert!(rig.clocks.is_disputed() && rig.clocks.off() == 0);
    let heard = rig.now - 100;
    while rig.now <= heard + LIVE.0 / 1000 {
        assert_eq!(rig.change(), None);
        rig.wait(100);
        rig.go_on([0]);
    }
    assert_eq!(rig.change(), Some(Change::Joined));
    assert!(!rig.clocks.is_disputed());
}

#[test]
fn a_frame_behind_the_floor_is_late_or_shows_that_the_floor_is_wrong() {
    let mut rig = Rig::new(4);
    rig.go_on(0..4);
    rig.wait(10);
    // Source 0 has come so far, and what it said was closed.
    rig.go_on([0]);
    let (floor, at) = (rig.time() + 1, rig.at());
    assert_eq!(rig.clocks.late(1, floor - 1, floor, at), Late::StepBack);
    // Where most have come so far, it is late anyway.
    rig.go_on([2, 3]);
    let mut late = |time: u64| rig.clocks.late(1, time, floor, at);
    assert_eq!(late(floor - 1), Late::Refused(Cause::Late));
    assert_eq!(late(START), Late::Refused(Cause::Late));
}

#[test]
fn a_single_source_is_believed_after_a_while() {
    let mut rig = Rig::new(1);
    rig.go_on([0]);
    for n in 1..=LATE_RUN {
        rig.wait(1);
        assert_eq!(rig.says(0, FAR), Ok(()));
        let expected = (n == LATE_RUN).then_some(Change::Adopted);
        assert_eq!(rig.change(), expected, "{n}");
    }
}

#[test]
fn any_times_are_survived() {
    let mut rig = Rig::new(3);
    for source in [0, 1, 2, 0, 1, 2] {
        for time in [0, u64::MAX, START, u64::MAX - 1, 1, u64::MAX / 2] {
            let _ = rig.says_time(source, time);
            let _ = rig.change();
            rig.wait(time % 700);
        }
    }
    rig.clocks.finish();
}
