//! Detects answers that are not delivered: on a live port they are the purpose of the run.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pollux_na62::stages::AnswerCounts;
use pollux_pmd::Count;

use crate::poll_loop::PollLoop;

/// Time for which answers may be undelivered before a warning: the neighbour is requested ten times
/// meanwhile.
const GRACE: Duration = Duration::from_secs(1);

/// Interval of repeated warnings.
const AGAIN: Duration = Duration::from_mins(1);

/// Watches whether answers are delivered.
pub struct AnswerWatch {
    counts: Arc<AnswerCounts>,
    /// Destination; `None` without one, or if the input is a recording.
    wanted: Option<SocketAddrV4>,
    /// Ports that can send.
    senders: Vec<String>,
    /// Time of the next warning, once decisions have been made.
    next: Option<Instant>,
}

impl AnswerWatch {
    /// For a run on these ports with answers to `to`; logs at once if none can be delivered.
    pub fn new(
        to: Option<SocketAddrV4>,
        ports: impl Iterator<Item = String>,
        trigger: &PollLoop,
    ) -> Self {
        let sink = &trigger.sink;
        let senders = ports.zip(&sink.endpoints);
        let senders: Vec<_> = senders
            .filter(|(_, endpoint)| endpoint.can_send())
            .map(|(port, _)| port)
            .collect();
        if to.is_none() {
            tracing::info!("no answers are sent: answer.to = \"nobody\"");
        } else if trigger.recorded && senders.is_empty() {
            tracing::info!(
                "no answers are sent: a capture is read; add tx=FILE to its port to record them"
            );
        }
        Self {
            counts: sink.answer.counts(),
            wanted: to.filter(|_| !trigger.recorded),
            senders,
            next: None,
        }
    }

    /// Call it now and then: warns while answers are not delivered, at the interval.
    pub fn watch(&mut self, now: Instant) {
        let Some(why) = self.unheard() else {
            return;
        };
        let next = *self.next.get_or_insert(now + GRACE);
        if now >= next {
            tracing::warn!("{why}");
            self.next = Some(now + AGAIN);
        }
    }

    /// Why no answer was delivered, although decisions were made and there is a destination.
    pub fn unheard(&self) -> Option<String> {
        let (to, counts) = (self.wanted?, &self.counts);
        let lost = [&counts.no_destination, &counts.unresolved, &counts.no_room];
        let made: u64 = lost.map(Count::get).iter().sum();
        if made == 0 || counts.sent.get() > 0 {
            return None;
        }
        let ip = to.ip();
        let why = if self.senders.is_empty() {
            "no port of this run can send".to_owned()
        } else if counts.unresolved.get() > 0 {
            format!(
                "no host has answered ARP for {ip} on {}, and no frame has come from it: check \
                 that answer.to and trigger.ip are right and in one network, or set answer.mac \
                 to the address of the host or of the router to it",
                self.senders.join(" or ")
            )
        } else {
            format!("{} had no room to send", self.senders.join(" and "))
        };
        Some(format!(
            "no answer was delivered: {made} decisions for {to} are lost: {why}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hearing(wanted: bool) -> AnswerWatch {
        AnswerWatch {
            counts: Arc::default(),
            wanted: wanted.then(|| SocketAddrV4::new([10, 0, 0, 2].into(), 7)),
            senders: vec!["null".into()],
            next: None,
        }
    }

    #[test]
    fn it_is_told_after_a_while_and_then_once_a_minute() {
        let (start, mut hearing) = (Instant::now(), hearing(true));
        let second = Duration::from_secs(1);
        hearing.watch(start);
        assert_eq!(hearing.next, None, "no decision yet");
        hearing.counts.unresolved.add(5);
        hearing.watch(start);
        assert_eq!(hearing.next, Some(start + second), "not yet told");
        hearing.watch(start + second);
        let next = Some(start + 61 * second);
        assert_eq!(hearing.next, next, "told");
        hearing.watch(start + 60 * second);
        assert_eq!(hearing.next, next, "not again");
        // ARP was in progress, and answers are delivered now.
        hearing.counts.sent.add(1);
        hearing.watch(start + 61 * second);
        assert_eq!((hearing.next, hearing.unheard()), (next, None));
    }

    #[test]
    fn no_answer_is_expected_without_a_destination() {
        let hearing = hearing(false);
        hearing.counts.no_destination.add(5);
        assert_eq!(hearing.unheard(), None);
    }
}
