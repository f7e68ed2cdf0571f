//! The open output: cuts events into datagrams, and counts their outcomes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use zerocopy::IntoBytes as _;

use super::headers::{HEADERS, Headers};
use super::link::{Link, Outcomes, Peer, Sent};
use super::numbers::Numbers;
use super::sync::Synchronizer;
use crate::counts::OutputCounts;
use crate::event::OutputEvent;
use crate::output::EventOutput;
use crate::spec::OutputSpec;

/// Sleep time while a link is full at the end, and for what its last datagram may bring back.
const NAP: Duration = Duration::from_millis(1);

/// Times that a datagram is sent again because an earlier one was refused.
const RETRIES: u8 = 3;

/// An event that is being sent.
struct Current {
    event: u64,
    /// Bytes of it that were sent.
    offset: usize,
    /// One of its datagrams was refused.
    refused: bool,
    retries: u8,
}

pub(super) struct EjfatOutput {
    log: Log,
    link: Box<dyn Link>,
    data_id: u16,
    /// Most bytes of an event in one datagram.
    piece: usize,
    sync: Option<Synchronizer>,
    /// Records have their burst.
    bursts: bool,
    numbers: Numbers,
    counts: Arc<OutputCounts>,
    current: Option<Current>,
    /// The bytes of the current event.
    bytes: Vec<u8>,
    datagram: Vec<u8>,
    /// The last event was sent, and may be refused yet.
    in_doubt: bool,
}

/// The first failure of an output is logged.
struct Log {
    spec: String,
    has_failed: bool,
}

impl Log {
    fn failed(&mut self, why: &str) {
        if !std::mem::replace(&mut self.has_failed, true) {
            let spec = &self.spec;
            tracing::error!("--output {spec}: {why}: such events are counted as unsent");
        }
    }
}

/// Counts outcomes that the link has learnt.
fn count(outcomes: &Outcomes, counts: &OutputCounts, log: &mut Log) {
    counts.delivered.add(outcomes.sent);
    counts.unsent.add(outcomes.failed);
    if outcomes.failed > 0 {
        log.failed("the port has not sent frames that it took");
    }
}

impl EjfatOutput {
    pub(super) fn new(
        spec: &OutputSpec,
        link: Box<dyn Link>,
        (data_id, piece): (u16, usize),
        sync: Option<Synchronizer>,
        bursts: bool,
        counts: Arc<OutputCounts>,
    ) -> Self {
        Self {
            log: Log {
                spec: spec.to_string(),
                has_failed: false,
            },
            link,
            data_id,
            piece,
            sync,
            bursts,
            numbers: Numbers::default(),
            counts,
            current: None,
            bytes: Vec::new(),
            datagram: Vec::with_capacity(HEADERS + piece),
            in_doubt: false,
        }
    }

    /// Sends what is left of the current event, as far as there is room.
    fn advance(&mut self) {
        while let Some(current) = &mut self.current {
            let rest = self.bytes.get(current.offset..).unwrap_or_default();
            if rest.is_empty() {
                return self.end_event();
            }
            let piece = &rest[..rest.len().min(self.piece)];
            let (offset, length) = (current.offset as u32, self.bytes.len() as u32);
            let headers = Headers::new(self.data_id, current.event, offset, length);
            self.datagram.clear();
            self.datagram.extend_from_slice(headers.as_bytes());
            self.datagram.extend_from_slice(piece);
            match self.link.send(Peer::Data, &self.datagram) {
                Sent::Yes => {
                    current.offset += piece.len();
                    self.counts.messages.add(1);
                    self.counts.bytes.add(self.datagram.len() as u64);
                    self.settle(false);
                }
                Sent::Full => return,
                Sent::Refused if current.retries == RETRIES => {
                    self.counts.refused.add(1);
                    self.give_up();
                }
                Sent::Refused => {
                    current.retries += 1;
                    current.refused |= current.offset > 0;
                    self.settle(true);
                }
                Sent::Failed(why) => {
                    self.counts.unsent.add(1);
                    self.give_up();
                    self.log.failed(&why);
                }
            }
        }
    }

    /// Sends no more of the current event, whose outcome was counted.
    fn give_up(&mut self) {
        self.current = None;
        self.link.end_event(false);
    }

    /// All datagrams of the current event were sent.
    fn end_event(&mut self) {
        let Some(current) = self.current.take() else {
            return;
        };
        if let Some(sync) = &mut self.sync {
            sync.sent(current.event);
        }
        if self.link.end_event(true) {
            // Its outcome comes later.
        } else if current.refused {
            self.counts.refused.add(1);
        } else {
            self.in_doubt = true;
        }
    }

    /// Decides the event in doubt. A refusal is of the last datagram: of an earlier event, only
    /// where it comes late.
    fn settle(&mut self, refused: bool) {
        if std::mem::take(&mut self.in_doubt) {
            let outcome = if refused {
                &self.counts.refused
            } else {
                &self.counts.delivered
            };
            outcome.add(1);
        }
    }

    /// Takes refusals and outcomes.
    fn poll(&mut self) {
        let refused = self.link.poll();
        count(&self.link.outcomes(), &self.counts, &mut self.log);
        match &mut self.current {
            Some(current) if current.offset > 0 => current.refused |= refused,
            _ => self.settle(refused),
        }
    }

    fn synchronize(&mut self) {
        let Some(sync) = &mut self.sync else { return };
        if let Some(message) = sync.due(Instant::now())
            && let Sent::Failed(why) = self.link.send(Peer::Control, &message)
        {
            self.log.failed(&why);
        }
    }
}

impl EventOutput for EjfatOutput {
    fn has_room(&self) -> bool {
        self.current.is_none() && self.link.is_ready()
    }

    fn push(&mut self, event: OutputEvent<'_>) {
        let head = event.view.head();
        // A receiver would put one event together of the datagrams of both.
        if !self.numbers.is_new((head.burst, head.timestamp)) {
            self.counts.repeated.add(1);
            return;
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(&event.record(self.bursts));
        for hit in event.view.hits() {
            self.bytes.extend_from_slice(&hit.pm.to_le_bytes());
            self.bytes.extend_from_slice(&hit.fine.to_le_bytes());
        }
        self.current = Some(Current {
            event: head.timestamp,
            offset: 0,
            refused: false,
            retries: 0,
        });
        self.advance();
    }

    fn work(&mut self) -> bool {
        let was_current = self.current.is_some();
        self.advance();
        self.poll();
        self.synchronize();
        was_current && self.current.is_none()
    }

    fn finish(mut self: Box<Self>, deadline: Instant) {
        while self.current.is_some() && Instant::now() < deadline {
            self.work();
            std::thread::sleep(NAP);
        }
        if self.in_doubt {
            std::thread::sleep(NAP);
            self.poll();
        }
        if self.current.is_some() {
            self.counts.unsent.add(1);
            self.give_up();
        }
        let Self {
            link,
            counts,
            mut log,
            ..
        } = *self;
        let (outcomes, end) = link.close();
        count(&outcomes, &counts, &mut log);
        if let Err(why) = end {
            let spec = &log.spec;
            tracing::error!("--output {spec}: {why}");
        }
    }
}
