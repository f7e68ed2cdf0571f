//! An open output to Kafka.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pollux_output::{EventOutput, OutputEvent};

use crate::broker::Place;
use crate::collector::Collector;
use crate::monitor::Monitor;
use crate::producer::Producer;
use crate::run_messages::RunMessages;

/// Time after which a message is sent that is not full.
const STALE: Duration = Duration::from_millis(50);

/// Collects events for messages, and sends these to one partition.
pub(crate) struct KafkaOutput {
    pub(crate) producer: Producer,
    pub(crate) events: Place,
    pub(crate) collector: Collector,
    /// Time of the first event in the collector.
    pub(crate) since: Instant,
    pub(crate) monitor: Option<Monitor>,
    pub(crate) runs: Option<(Place, RunMessages)>,
    /// The start of the run was sent.
    pub(crate) has_begun: bool,
}

impl KafkaOutput {
    fn send_events(&mut self) {
        let events = self.collector.len();
        if events > 0 {
            self.producer
                .send(&self.events, self.collector.message(), events);
        }
    }

    fn send_monitor(&mut self) {
        if let Some(monitor) = &self.monitor {
            let message = monitor.message(since_epoch(SystemTime::now()).as_nanos() as i64);
            self.producer.send(&monitor.place, &message, 0);
        }
    }

    fn begin(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true)
            && let Some((place, messages)) = &self.runs
        {
            self.producer.send(place, &messages.start(), 0);
        }
    }
}

impl EventOutput for KafkaOutput {
    fn has_room(&self) -> bool {
        self.producer.has_room()
    }

    fn push(&mut self, event: OutputEvent<'_>) {
        if !self.collector.fits(event) {
            self.send_events();
        }
        if self.collector.len() == 0 {
            self.since = Instant::now();
        }
        self.collector.push(event);
        if let Some(monitor) = &mut self.monitor
            && event.view.verdict().accepted()
        {
            monitor.count(event.view);
        }
    }

    fn work(&mut self) -> bool {
        self.begin();
        let now = Instant::now();
        if now.duration_since(self.since) >= STALE {
            self.send_events();
        }
        // Without room, the broker answers nothing, and later messages have newer counts.
        if self.has_room()
            && self
                .monitor
                .as_mut()
                .is_some_and(|monitor| monitor.is_due(now))
        {
            self.send_monitor();
        }
        self.producer.poll()
    }

    fn finish(mut self: Box<Self>, deadline: Instant) {
        self.begin();
        self.send_events();
        self.send_monitor();
        if let Some((place, messages)) = &self.runs {
            let end = since_epoch(SystemTime::now()).as_millis() as u64;
            self.producer.send(place, &messages.stop(end), 0);
        }
        self.producer.finish(deadline);
    }
}

/// Time since the Unix epoch; zero before it.
pub(crate) fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}
