//! Pauses of the source: begun by an overrun, ended when its receivers have room, or by time.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;

/// Most pauses that are listed; more are counted only.
const MAX_LISTED: usize = 1000;

/// Most receivers that are waited for.
const MAX_OVER: usize = 4096;

/// A pause in the report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Pause {
    /// Since the start of the source.
    pub(super) at_s: f64,
    pub(super) duration_s: f64,
    /// The receiver that was too slow first: its node, and its name there.
    pub(super) node: String,
    pub(super) receiver: Option<String>,
    /// Images lost by all receivers, from the overrun to the end of the pause.
    pub(super) images: u64,
    /// What ended it: `room`, `time` or `end` of the run.
    pub(super) ended_by: &'static str,
}

/// All pauses of a run. Times are those since its start.
#[derive(Debug)]
pub(super) struct Pauses {
    resume_after: Option<Duration>,
    /// Receivers without room: nodes, and names there.
    over: BTreeSet<(usize, Option<String>)>,
    current: Option<(Duration, Pause)>,
    pub(super) listed: Vec<Pause>,
    pub(super) count: u64,
    pub(super) total: Duration,
}

impl Pauses {
    /// None yet. A pause ends after `resume_after` at the latest.
    pub(super) fn new(resume_after: Option<Duration>) -> Self {
        Self {
            resume_after,
            over: BTreeSet::new(),
            current: None,
            listed: Vec::new(),
            count: 0,
            total: Duration::ZERO,
        }
    }

    /// A receiver of this node lost images. Returns whether the source is to be paused: a pause begins.
    pub(super) fn overrun(
        &mut self,
        now: Duration,
        (n, node): (usize, &str),
        receiver: Option<String>,
        images: u64,
    ) -> bool {
        if self.over.len() < MAX_OVER {
            self.over.insert((n, receiver.clone()));
        }
        if let Some((_, pause)) = &mut self.current {
            pause.images = pause.images.saturating_add(images);
            return false;
        }
        let pause = Pause {
            at_s: now.as_secs_f64(),
            duration_s: 0.0,
            node: node.to_owned(),
            receiver,
            images,
            ended_by: "end",
        };
        self.current = Some((now, pause));
        true
    }

    /// A receiver has buffers again.
    pub(super) fn room(&mut self, n: usize, receiver: Option<String>) {
        self.over.remove(&(n, receiver));
    }

    /// Whether the pause is to be ended, and why.
    pub(super) fn is_due(&self, now: Duration) -> Option<&'static str> {
        let (begun, _) = self.current.as_ref()?;
        let is_late = |limit| now.saturating_sub(*begun) >= limit;
        if self.over.is_empty() {
            Some("room")
        } else {
            self.resume_after.is_some_and(is_late).then_some("time")
        }
    }

    /// The pause, if there is one, is over.
    pub(super) fn end(&mut self, now: Duration, ended_by: &'static str) {
        let Some((begun, mut pause)) = self.current.take() else {
            return;
        };
        let duration = now.saturating_sub(begun);
        self.over.clear();
        self.count += 1;
        self.total += duration;
        pause.duration_s = duration.as_secs_f64();
        pause.ended_by = ended_by;
        if self.listed.len() < MAX_LISTED {
            self.listed.push(pause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_pause_ends_when_all_have_room() {
        let mut pauses = Pauses::new(None);
        let slow = || Some("slow".to_owned());
        assert!(pauses.is_due(at(0)).is_none());
        assert!(pauses.overrun(at(2), (1, "a"), slow(), 3));
        // Images that were under way.
        assert!(!pauses.overrun(at(3), (1, "a"), slow(), 2));
        assert!(!pauses.overrun(at(3), (2, "b"), None, 1));
        pauses.room(1, slow());
        pauses.room(2, slow());
        assert!(pauses.is_due(at(1000)).is_none());
        pauses.room(2, None);
        assert_eq!(pauses.is_due(at(9)), Some("room"));
        pauses.end(at(9), "room");
        pauses.end(at(10), "end");
        let expected = Pause {
            at_s: 2.0,
            duration_s: 7.0,
            node: "a".into(),
            receiver: slow(),
            images: 6,
            ended_by: "room",
        };
        assert_eq!(pauses.listed, [expected]);
        assert_eq!((pauses.count, pauses.total), (1, at(7)));
    }

    #[test]
    fn a_pause_ends_in_time() {
        let mut pauses = Pauses::new(Some(at(5)));
        assert!(pauses.overrun(at(2), (1, "a"), None, 1));
        assert!(pauses.is_due(at(6)).is_none());
        assert_eq!(pauses.is_due(at(7)), Some("time"));
        pauses.end(at(7), "time");
        // It is still without room: the next one begins at its next overrun.
        assert!(pauses.is_due(at(100)).is_none());
        assert!(pauses.overrun(at(100), (1, "a"), None, 1));
        pauses.end(at(101), "end");
        let ends: Vec<_> = pauses.listed.iter().map(|pause| pause.ended_by).collect();
        assert_eq!(ends, ["time", "end"]);
        for n in 0..2000 {
            pauses.overrun(at(n), (1, "a"), None, 1);
            pauses.end(at(n), "room");
        }
        assert_eq!((pauses.listed.len(), pauses.count), (1000, 2002));
    }
}
