//! The producer: hands messages to librdkafka, and counts what becomes of their events.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pollux_output::OutputCounts;
use pollux_pmd::Count;
use rdkafka::client::ClientContext;
use rdkafka::config::{FromClientConfigAndContext as _, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _, ProducerContext};
use rdkafka::{ClientConfig, Message as _};

use crate::broker::{self, CLIENT_LIMIT, Place};
use crate::error::Error;
use crate::properties::Properties;

/// Bytes of messages that wait for the brokers' acknowledgement, at most.
pub const WAITING: u64 = 64 << 20;

/// Batches that librdkafka is given at a time. Five requests of an idempotent producer are on their
/// way at most; while another batch is ready, librdkafka's thread spins (rdkafka_broker.c,
/// rd_kafka_toppar_producer_serve), and takes a CPU from the broker or from other threads.
const BATCHES: u64 = 4;

/// Milliseconds in which a batch fills. With librdkafka's five, a broker that is busy has more
/// requests, of which few are full, and then batches that are ready.
const LINGER: &str = "50";

/// Bytes of a batch where the configuration names none: librdkafka's default (CONFIGURATION.md).
const BATCH: u64 = 1_000_000;
const BATCH_SIZE: &str = "batch.size";

/// Time between two looks for the last acknowledgements.
const NAP: Duration = Duration::from_millis(1);

/// Time that librdkafka may take to give up its messages and to end its threads.
const CLOSING: Duration = Duration::from_secs(1);

/// What librdkafka's log calls an answer that the broker does not know the producer, with the debug
/// context `eos` (rdkafka_request.c); and the number of them in a row after which it never will: Kafka
/// accepts a producer that it does not know at the second attempt, with sequence number 0.
const UNKNOWN_PRODUCER: &str = "UNKPID";
const FORGOTTEN: u64 = 5;

/// What librdkafka calls. One for each client.
struct Context {
    counts: Arc<OutputCounts>,
    /// Messages, their bytes and their events with an outcome.
    settled: Load,
    /// Messages that found a broker without this producer, since the last acknowledgement.
    unknown: Count,
    /// No broker is connected.
    is_down: AtomicBool,
    /// A refusal was reported.
    has_refused: AtomicBool,
}

/// A number of messages. Counted by the producer's thread alone.
#[derive(Default)]
struct Load {
    messages: Count,
    bytes: Count,
    events: Count,
}

impl Load {
    fn add(&self, bytes: usize, events: usize) {
        self.messages.add(1);
        self.bytes.add(bytes as u64);
        self.events.add(events as u64);
    }
}

impl ClientContext for Context {
    fn log(&self, _: RDKafkaLogLevel, facility: &str, message: &str) {
        if facility == UNKNOWN_PRODUCER {
            self.unknown.add(1);
        }
        tracing::debug!("librdkafka: {facility}: {message}");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let is_down = error.rdkafka_error_code() == Some(RDKafkaErrorCode::AllBrokersDown);
        if is_down && !self.is_down.swap(true, Ordering::Relaxed) {
            tracing::warn!("no Kafka broker is connected: 64 MiB of events wait, others are lost");
        } else {
            tracing::debug!("librdkafka: {reason}");
        }
    }
}

impl ProducerContext for Context {
    /// Number of events in the message.
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, events: usize) {
        let counts = &self.counts;
        let (Ok(message) | Err((_, message))) = result;
        let bytes = message.payload_len();
        self.settled.add(bytes, events);
        match result {
            Ok(_) => {
                self.unknown.set(0);
                if self.is_down.swap(false, Ordering::Relaxed) {
                    tracing::info!("a Kafka broker is connected again");
                }
                if events > 0 {
                    counts.delivered.add(events as u64);
                    counts.messages.add(1);
                    counts.bytes.add(bytes as u64);
                }
            }
            Err((error, message)) => {
                let code = error.rdkafka_error_code();
                if let Some(RDKafkaErrorCode::PurgeQueue | RDKafkaErrorCode::PurgeInflight) = code {
                    counts.unsent.add(events as u64);
                    return;
                }
                counts.refused.add(events as u64);
                if !self.has_refused.swap(true, Ordering::Relaxed) {
                    let (topic, what) = (message.topic(), broker::message(error));
                    tracing::warn!("Kafka topic {topic} refuses messages: {what}");
                }
            }
        }
    }
}

/// A client of librdkafka.
struct Client {
    producer: BaseProducer<Context>,
    /// Of messages that it was given.
    given: Load,
}

impl Client {
    /// Its threads inherit the CPUs of this one.
    fn new(config: &ClientConfig, counts: &Arc<OutputCounts>) -> Result<Self, KafkaError> {
        let context = Context {
            counts: Arc::clone(counts),
            settled: Load::default(),
            unknown: Count::default(),
            is_down: AtomicBool::new(false),
            has_refused: AtomicBool::new(false),
        };
        Ok(Self {
            producer: BaseProducer::from_config_and_context(config, context)?,
            given: Load::default(),
        })
    }

    fn settled(&self) -> &Load {
        &self.producer.client().context().settled
    }

    /// An idempotent producer is of no more use after a fatal error, and where the broker has
    /// forgotten it: librdkafka would try again for ever (INTRODUCTION.md, "Idempotent Producer").
    fn is_dead(&self) -> bool {
        let client = self.producer.client();
        client.context().unknown.get() >= FORGOTTEN || client.fatal_error().is_some()
    }

    /// Gives up messages without an outcome. A broker may have stored some of them.
    fn close(self) {
        let context = Arc::clone(self.producer.client().context());
        // Purges its queue, and counts most of them.
        drop(self.producer);
        let lost = self.given.events.get() - context.settled.events.get();
        context.counts.unsent.add(lost);
    }
}

/// A message that librdkafka has not been given yet.
struct Message {
    place: Place,
    payload: Box<[u8]>,
    events: usize,
}

/// An idempotent producer: of the messages to one partition, each acknowledged one is there once,
/// in order.
pub struct Producer {
    config: ClientConfig,
    counts: Arc<OutputCounts>,
    /// `None` before the first message, and after a fatal error of librdkafka.
    client: Option<Client>,
    /// Bytes that librdkafka is given at a time.
    window: u64,
    /// Messages that wait for space in the window, and their bytes.
    waiting: VecDeque<Message>,
    waiting_bytes: u64,
    /// Messages with an outcome at the last look.
    seen: u64,
    /// A message that librdkafka does not take was reported.
    has_refused: bool,
}

impl Producer {
    /// Checks that the brokers, a list `HOST:PORT,HOST:PORT`, have the places, of which the first is
    /// for events; creates missing topics. Returns the maximum length of a message of events.
    ///
    /// # Errors
    /// As [`Error`] lists.
    pub fn reach(brokers: &str, properties: &Properties, places: &[Place]) -> Result<usize, Error> {
        broker::prepare(&Self::config(brokers, properties), brokers, places)
    }

    /// What every client has.
    fn config(brokers: &str, properties: &Properties) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set_log_level(RDKafkaLogLevel::Debug);
        config.set("debug", "eos");
        // A broker that comes back is noticed soon: librdkafka's default is ten seconds.
        config.set("reconnect.backoff.max.ms", "1000");
        config.set("linger.ms", LINGER);
        for (key, value) in properties.iter() {
            config.set(key, value);
        }
        config.set("bootstrap.servers", brokers);
        config
    }

    /// A producer of messages up to a length. It connects with the first message.
    ///
    /// # Errors
    /// Properties that a producer does not have.
    pub fn new(
        brokers: &str,
        properties: &Properties,
        limit: usize,
        counts: Arc<OutputCounts>,
    ) -> Result<Self, Error> {
        let mut config = Self::config(brokers, properties);
        // Of a batch as well.
        config.set(CLIENT_LIMIT, limit.to_string());
        config.set("enable.idempotence", "true");
        // `has_room` is the limit, and no message is given up after some time.
        config.set("queue.buffering.max.kbytes", "2097151");
        config.set("queue.buffering.max.messages", "0");
        config.set("message.timeout.ms", "0");
        // Properties that only a producer has are checked by one. It ends here: its threads would
        // run on the CPUs of this one.
        Client::new(&config, &counts).map_err(broker::property)?;
        let batch = config
            .get(BATCH_SIZE)
            .and_then(|text| text.parse().ok())
            .unwrap_or(BATCH);
        Ok(Self {
            window: BATCHES * batch.min(limit as u64),
            config,
            counts,
            client: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            seen: 0,
            has_refused: false,
        })
    }

    /// Whether less than [`WAITING`] bytes have no outcome.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.on_their_way() + self.waiting_bytes < WAITING
    }

    /// Bytes without an outcome that librdkafka was given.
    fn on_their_way(&self) -> u64 {
        let bytes = |client: &Client| client.given.bytes.get() - client.settled().bytes.get();
        self.client.as_ref().map_or(0, bytes)
    }

    /// Sends a message with so many events, which are counted as refused if librdkafka does not take
    /// them.
    pub fn send(&mut self, place: &Place, message: &[u8], events: usize) {
        if self.waiting.is_empty() && self.on_their_way() < self.window {
            self.hand_over(place, message, events);
        } else {
            self.waiting_bytes += message.len() as u64;
            self.waiting.push_back(Message {
                place: place.clone(),
                payload: message.into(),
                events,
            });
        }
    }

    fn hand_over(&mut self, place: &Place, message: &[u8], events: usize) {
        if let Err(error) = self.produce(place, message, events) {
            self.counts.refused.add(events as u64);
            let (topic, len, what) = (&place.topic, message.len(), broker::message(&error));
            if std::mem::replace(&mut self.has_refused, true) {
                tracing::debug!("librdkafka: {error}");
            } else {
                tracing::warn!(
                    "librdkafka refuses a message of {len} bytes for Kafka topic {topic}: {what}; such \
                     events are counted as refused"
                );
            }
        }
    }

    /// Hands over what fits into the window; returns whether that was anything.
    fn refill(&mut self) -> bool {
        let before = self.waiting.len();
        while self.on_their_way() < self.window
            && let Some(message) = self.waiting.pop_front()
        {
            self.waiting_bytes -= message.payload.len() as u64;
            self.hand_over(&message.place, &message.payload, message.events);
        }
        self.waiting.len() < before
    }

    fn produce(&mut self, place: &Place, message: &[u8], events: usize) -> Result<(), KafkaError> {
        self.retire();
        let client = match self.client.take() {
            Some(client) => client,
            None => Client::new(&self.config, &self.counts)?,
        };
        let client = self.client.insert(client);
        let record = BaseRecord::<(), [u8], _>::with_opaque_to(&place.topic, events)
            .partition(place.partition)
            .payload(message);
        client.producer.send(record).map_err(|(error, _)| error)?;
        client.given.add(message.len(), events);
        Ok(())
    }

    /// Gives a client up that is of no more use; returns whether it was. The next message has another.
    fn retire(&mut self) -> bool {
        let Some(client) = self.client.take_if(|client| client.is_dead()) else {
            return false;
        };
        tracing::warn!("the Kafka broker has lost its state: events without an answer are lost");
        client.close();
        true
    }

    /// Takes acknowledgements, and sends what waits for them; returns whether there was anything.
    pub fn poll(&mut self) -> bool {
        if self.retire() {
            return true;
        }
        let has_new = self.client.as_ref().is_some_and(|client| {
            client.producer.poll(Duration::ZERO);
            let settled = client.settled().messages.get();
            std::mem::replace(&mut self.seen, settled) != settled
        });
        self.refill() || has_new
    }

    /// Waits for the outcomes of all messages, at most until the deadline, and gives up the others.
    pub fn finish(mut self, deadline: Instant) {
        let now = Instant::now();
        let patience = deadline.saturating_duration_since(now);
        let last = now + patience.saturating_sub(CLOSING);
        loop {
            self.poll();
            // What is left has librdkafka's attention: no message waits for others.
            let flushed = |client: &Client| client.producer.flush(Duration::ZERO).is_ok();
            let is_done = self.waiting.is_empty() && self.client.as_ref().is_none_or(flushed);
            if is_done || Instant::now() >= last {
                break;
            }
            thread::sleep(NAP);
        }
        for message in &self.waiting {
            self.counts.unsent.add(message.events as u64);
        }
        if let Some(client) = self.client {
            client.close();
        }
    }
}
