//! An output and the brokers of librdkafka's mock cluster, with errors on demand.
#![cfg(feature = "librdkafka")]
#![allow(clippy::unwrap_used)]

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use pollux_kafka::KIND;
use pollux_mempool::{Mbuf, Mempool, PoolCache, PoolConfig};
use pollux_na62::l0::{Draft, EventHead, EventView, Span, Verdict, event_pool};
use pollux_na62::rich::Hit;
use pollux_output::{EventOutput, OutputCounts, OutputEvent, OutputKind, RunContext, RunMonitor};
use pollux_pmd::{Count, Percentiles, Registry};
use rdkafka::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, DefaultProducerContext, Producer as _};
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};

const TOPIC: &str = "l0";
const HITS: usize = 20;

type Cluster = MockCluster<'static, DefaultProducerContext>;

struct Idle;

impl RunMonitor for Idle {
    fn events(&self) -> u64 {
        0
    }

    fn accepted(&self) -> u64 {
        0
    }

    fn stages(&self) -> Vec<(String, Percentiles)> {
        Vec::new()
    }
}

/// A cluster of one broker, an output to it, and the events of both.
struct Rig {
    cluster: Cluster,
    output: Box<dyn EventOutput>,
    counts: Arc<OutputCounts>,
    events: Events,
    pushed: u64,
}

struct Events {
    _pool: Mempool,
    cache: PoolCache,
}

impl Events {
    fn event(&mut self, timestamp: u64, hits: usize) -> Mbuf {
        let mut draft = Draft::new(&mut self.cache).unwrap();
        assert!(draft.insert(0, &vec![Hit { pm: 7, fine: 3 }; hits]));
        let head = EventHead {
            timestamp,
            hits: hits as u16,
            ..EventHead::default()
        };
        let verdict = Verdict {
            rules: 1,
            ..Verdict::default()
        };
        let event = draft.finish(&head, Span::default());
        event.reconstructed(&[]).decided(verdict).into()
    }
}

/// An output with further options, or why there is none.
fn open(
    cluster: &Cluster,
    options: &str,
    counts: &Arc<OutputCounts>,
) -> Result<Box<dyn EventOutput>, String> {
    let brokers = cluster.bootstrap_servers();
    let spec = format!("kafka:{brokers},topic={TOPIC}{options}");
    let planned = OutputKind::plan(&spec, &[KIND]).map_err(|error| error.to_string())?;
    let run = RunContext {
        run: None,
        started: SystemTime::now(),
        unix_ns: Arc::new(|_| 0),
        recorded: true,
        ip: Ipv4Addr::LOCALHOST,
        configuration: "",
        ports: &Registry::builtin(),
        monitor: Arc::new(Idle),
    };
    let opened = planned.plan.open(&run, Arc::clone(counts));
    opened.map_err(|error| error.to_string())
}

impl Rig {
    fn new(options: &str) -> Self {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic(TOPIC, 1, 1).unwrap();
        let counts = Arc::<OutputCounts>::default();
        let output = open(&cluster, options, &counts).unwrap();
        let pool = event_pool(64, PoolConfig::default()).unwrap();
        let events = Events {
            cache: pool.cache(8).unwrap(),
            _pool: pool,
        };
        Self {
            cluster,
            output,
            counts,
            events,
            pushed: 0,
        }
    }

    /// Pushes so many events while there is room, as a recording does.
    fn push(&mut self, events: u64) {
        for _ in 0..events {
            while !self.output.has_room() {
                self.output.work();
            }
            self.push_one();
        }
    }

    fn push_one(&mut self) {
        self.push_with(HITS);
    }

    fn push_with(&mut self, hits: usize) {
        let mbuf = self.events.event(self.pushed, hits);
        let view = EventView::of(mbuf.data()).unwrap();
        let number = self.pushed as u32;
        self.output.push(OutputEvent { number, view });
        self.pushed += 1;
        if self.pushed.is_multiple_of(64) {
            self.output.work();
        }
    }

    /// Works until a condition holds.
    fn until(&mut self, what: &str, holds: impl Fn(&OutputCounts) -> bool) {
        let limit = Instant::now() + Duration::from_secs(30);
        while !holds(&self.counts) {
            assert!(Instant::now() < limit, "{what}: {:?}", self.counts);
            self.output.work();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends the output; returns delivered, refused and unsent events, which are all.
    fn finish(self, patience: Duration) -> ([u64; 3], Cluster) {
        self.output.finish(Instant::now() + patience);
        let counts = &self.counts;
        let outcomes = [&counts.delivered, &counts.refused, &counts.unsent].map(Count::get);
        assert_eq!(outcomes.iter().sum::<u64>(), self.pushed, "{counts:?}");
        (outcomes, self.cluster)
    }
}

/// Number of messages that the broker has stored. What is in them, scripts/outputs-test reads from
/// another broker.
fn stored(cluster: &Cluster) -> u64 {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", cluster.bootstrap_servers());
    let client: BaseProducer = config.create().unwrap();
    let patience = Duration::from_secs(20);
    let (_, end) = client
        .client()
        .fetch_watermarks(TOPIC, 0, patience)
        .unwrap();
    end as u64
}

#[test]
fn each_event_is_acknowledged_whatever_the_broker_says_meanwhile() {
    use RDKafkaRespErr as Error;
    let mut rig = Rig::new(",format=record");
    let errors = [
        Error::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
        Error::RD_KAFKA_RESP_ERR__TRANSPORT,
        Error::RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
        Error::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
        Error::RD_KAFKA_RESP_ERR__TRANSPORT,
    ];
    let events = 100_000;
    for part in 0..4 {
        rig.cluster
            .request_errors(RDKafkaApiKey::Produce, &errors[part..=part + 1]);
        rig.push(events / 4);
    }
    let messages = Arc::clone(&rig.counts);
    let (outcomes, cluster) = rig.finish(Duration::from_mins(1));
    assert_eq!(outcomes, [events, 0, 0]);
    assert_eq!(messages.bytes.get(), 64 * events);
    assert!((events * 64 / (256 << 10)..100).contains(&messages.messages.get()));
    // The mock cluster stores a message again whose answer was lost: it does not know sequences.
    assert!(stored(&cluster) >= messages.messages.get());
}

/// Messages that the broker refuses are lost, and counted; others follow.
#[test]
fn refused_messages_are_counted() {
    let mut rig = Rig::new(",format=record");
    let refusal = RDKafkaRespErr::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
    rig.cluster
        .request_errors(RDKafkaApiKey::Produce, &[refusal]);
    rig.push(10);
    rig.until("the refusal", |counts| counts.refused.get() == 10);
    rig.push(20);
    let ([delivered, refused, unsent], cluster) = rig.finish(Duration::from_secs(20));
    assert_eq!([delivered, refused, unsent], [20, 10, 0]);
    assert_eq!(stored(&cluster), 1);
}

/// Lines of the log of this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An event that no message can hold is lost alone, and the log says why, once.
#[test]
fn an_event_that_is_too_long_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let conf = folder.path().join("kafka.conf");
    std::fs::write(&conf, "message.max.bytes=1000").unwrap();
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .with_max_level(tracing::Level::WARN)
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        let mut rig = Rig::new(&format!(",conf={}", conf.display()));
        for hits in [20, 200, 20, 200, 200, 20] {
            rig.push_with(hits);
        }
        let (outcomes, _) = rig.finish(Duration::from_secs(20));
        assert_eq!(outcomes, [3, 3, 0]);
    });
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let named = "librdkafka refuses a message of ";
    assert_eq!(log.matches(named).count(), 1, "{log}");
    assert!(log.contains("for Kafka topic l0: "), "{log}");
}

/// A broker that has lost its state makes a producer useless (librdkafka's fatal errors).
#[test]
fn another_producer_takes_over_after_a_fatal_error() {
    let mut rig = Rig::new("");
    rig.push(10);
    rig.until("the first message", |counts| counts.delivered.get() == 10);
    let forgotten = RDKafkaRespErr::RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
    rig.cluster
        .request_errors(RDKafkaApiKey::Produce, &[forgotten]);
    rig.push(20);
    rig.until("the fatal error", |counts| counts.refused.get() == 20);
    rig.push(40);
    let ([delivered, refused, unsent], _) = rig.finish(Duration::from_secs(20));
    assert_eq!([delivered, refused, unsent], [50, 20, 0]);
}

/// A broker that does not know a producer that it knew.
#[test]
fn another_producer_takes_over_where_the_first_is_forgotten() {
    let mut rig = Rig::new(",format=record");
    rig.push(10);
    rig.until("the first message", |counts| counts.delivered.get() == 10);
    let unknown = RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID;
    rig.cluster
        .request_errors(RDKafkaApiKey::Produce, &[unknown; 1000]);
    // No message follows by which it could be noticed.
    while rig.output.has_room() {
        rig.push_one();
    }
    let start = Instant::now();
    while !rig.output.has_room() {
        rig.output.work();
        std::thread::sleep(Duration::from_millis(1));
        assert!(start.elapsed() < Duration::from_secs(30), "it is stuck");
    }
    rig.cluster.clear_request_errors(RDKafkaApiKey::Produce);
    rig.push(40);
    let pushed = rig.pushed;
    let ([delivered, refused, unsent], _) = rig.finish(Duration::from_secs(20));
    assert!(
        delivered >= 50 && refused == 0 && delivered + unsent == pushed,
        "{delivered} {refused} {unsent}"
    );
}

/// 64 MiB wait for a broker that is away; if it does not come back, the end does not wait for it.
#[test]
fn a_broker_that_is_away_costs_what_does_not_fit() {
    let mut rig = Rig::new(",format=record");
    rig.push(1000);
    rig.until("the first message", |counts| counts.delivered.get() == 1000);
    rig.cluster.broker_down(-1).unwrap();
    while rig.output.has_room() {
        rig.push_one();
    }
    let waiting = 64 * (rig.pushed - 1000);
    assert!((64 << 20..65 << 20).contains(&waiting), "{waiting}");
    rig.cluster.broker_up(-1).unwrap();
    let pushed = rig.pushed;
    rig.until("all messages", |counts| {
        counts.delivered.get() + 5000 > pushed
    });
    rig.cluster.broker_down(-1).unwrap();
    rig.push(100);
    let started = Instant::now();
    let ([_, refused, unsent], _) = rig.finish(Duration::from_secs(3));
    assert!(refused == 0 && unsent >= 100, "{refused} {unsent}");
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
}

/// What the specs of outputs and the brokers refuse, before anything is sent.
#[test]
fn what_is_wrong_at_the_start_is_named() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic(TOPIC, 2, 1).unwrap();
    let counts = Arc::<OutputCounts>::default();
    open(&cluster, ",partition=1", &counts).unwrap();
    let error = |options: &str| open(&cluster, options, &counts).map(drop).unwrap_err();
    let partition = error(",partition=2");
    assert!(
        partition.ends_with("topic l0 has 2 partitions, from 0 on: there is no partition=2"),
        "{partition}"
    );
    let format = error(",format=json");
    assert!(
        format.ends_with("`json` is not a valid format: ev44 or record"),
        "{format}"
    );
    let topic = error(",monitor=a b");
    assert!(
        topic.contains("`a b` is not a valid monitor: a topic has"),
        "{topic}"
    );
    let folder = tempfile::tempdir().unwrap();
    let conf = folder.path().join("kafka.conf");
    let option = format!(",conf={}", conf.display());
    let with = |text: &str| {
        std::fs::write(&conf, text).unwrap();
        error(&option)
    };
    let unknown = with("linger.mss=5");
    assert!(
        unknown.contains("No such configuration property: \"linger.mss\""),
        "{unknown}"
    );
    let value = with("linger.ms=never");
    assert!(
        value.contains("Invalid value for configuration property"),
        "{value}"
    );
    if cfg!(not(feature = "tls")) {
        let tls = with("security.protocol=ssl");
        assert!(
            tls.ends_with("OpenSSL not available at build time (build with the feature kafka-tls)"),
            "{tls}"
        );
    }
    let address = |target: &str| {
        let spec = format!("kafka:{target},topic={TOPIC}");
        let planned = OutputKind::plan(&spec, &[KIND]).map_err(|error| error.to_string());
        planned.and_then(|planned| planned.plan.reach().map_err(|error| error.to_string()))
    };
    let nothing = address("127.0.0.1:1").unwrap_err();
    assert!(
        nothing.contains("no broker at 127.0.0.1:1: Connection refused"),
        "{nothing}"
    );
    for wrong in ["", "broker", "broker:0", ":9092", "a:1+", "a b:1"] {
        let wrong = address(wrong).unwrap_err();
        assert!(wrong.contains("HOST:PORT of a broker"), "{wrong}");
    }
    // What listens there is no broker.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = address(&listener.local_addr().unwrap().to_string()).unwrap_err();
    assert!(
        silent.contains("does not answer as a Kafka broker"),
        "{silent}"
    );
}

/// Whether another attempt with the same spec can succeed: what a service does about it hangs on that.
#[test]
fn brokers_that_are_away_are_no_fault_of_the_spec() {
    let cluster = MockCluster::new(1).unwrap();
    let is_usage = |target: &str| {
        let spec = format!("kafka:{target}");
        let planned = OutputKind::plan(&spec, &[KIND]).unwrap();
        planned.plan.reach().unwrap_err().is_usage()
    };
    let brokers = cluster.bootstrap_servers();
    for (target, expected) in [
        ("127.0.0.1:1,topic=l0", false),
        ("no-such-host.invalid:9092,topic=l0", true),
        ("no-such-host.invalid:9092+127.0.0.1:1,topic=l0", false),
        ("127.0.0.1:1+no-such-host.invalid:9092,topic=l0", false),
        ("127.0.0.1:1,topic=l0,conf=/nothing/is/here", true),
        (&format!("{brokers},topic=l0,partition=4"), true),
    ] {
        assert_eq!(is_usage(target), expected, "{target}");
    }
    // It listens, and answers nothing.
    let silent = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = silent.local_addr().unwrap();
    assert!(!is_usage(&format!("{address},topic=l0")));
    // The mock creates no topics.
    assert!(!is_usage(&format!("{brokers},topic=new")));
}
