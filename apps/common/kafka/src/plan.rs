//! Specs of outputs to Kafka: `kafka:HOST:PORT[+HOST:PORT],topic=T,...`.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use pollux_output::{
    EventOutput, OutputCounts, OutputError, OutputKind, OutputPlan, OutputSpec, RunContext,
    Selection,
};
use pollux_pmd::Registry;
use serde_json::{Value, json};

use crate::broker::Place;
use crate::collector::Collector;
use crate::epochs::Epochs;
use crate::monitor::Monitor;
use crate::output::{KafkaOutput, since_epoch};
use crate::producer::Producer;
use crate::properties::Properties;
use crate::run_messages::RunMessages;

/// A random UUID (random(4)).
const UUID: &str = "/proc/sys/kernel/random/uuid";

/// Outputs to Kafka.
pub const KIND: OutputKind = OutputKind {
    name: "kafka",
    usage: "kafka:HOST:PORT[+HOST:PORT],topic=T[,partition=N][,format=ev44|record][,source=NAME]\
            [,epoch=NS][,monitor=T][,runs=T][,conf=FILE]",
    plan: |spec| Ok(Box::new(KafkaPlan::of(spec)?)),
};

const OPTIONS: [&str; 8] = [
    "topic",
    "partition",
    "format",
    "source",
    "epoch",
    "monitor",
    "runs",
    "conf",
];

/// Content of the messages of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Ev44,
    Record,
}

/// An output to Kafka as its spec describes it.
#[derive(Debug)]
struct KafkaPlan {
    spec: String,
    /// `HOST:PORT,HOST:PORT`.
    brokers: String,
    events: Place,
    format: Format,
    source: String,
    epoch_ns: Option<i64>,
    monitor: Option<Place>,
    runs: Option<Place>,
    conf: Option<PathBuf>,
    /// Maximum length of a message, since the brokers were reached.
    limit: Mutex<Option<usize>>,
}

impl KafkaPlan {
    fn of(spec: &OutputSpec) -> Result<Self, OutputError> {
        spec.expect_options(&OPTIONS)?;
        let target = spec.target().unwrap_or_default();
        let brokers: Vec<_> = target.split('+').collect();
        if brokers.iter().any(|broker| !is_address(broker)) {
            let expected = "HOST:PORT of a broker, or several with + between them";
            return Err(spec.bad_value("target", target, expected));
        }
        let topic = |key| match spec.option(key)? {
            Some(topic) if !is_topic(topic) => {
                let expected = "a topic has 1 to 249 letters, digits, dots, _ and -";
                Err(spec.bad_value(key, topic, expected))
            }
            topic => Ok(topic.map(str::to_owned)),
        };
        let place = |topic, partition| Place { topic, partition };
        let of_all = |key| Ok::<_, OutputError>(topic(key)?.map(|topic| place(topic, 0)));
        let Some(events) = topic("topic")? else {
            return Err(spec.error("topic=T is missing: the topic of the events"));
        };
        let partition = spec.number("partition", 0..=i32::MAX as usize)?;
        let format = [("ev44", Format::Ev44), ("record", Format::Record)];
        let epoch = spec.option("epoch")?.map(|text| {
            let bad = |_| spec.bad_value("epoch", text, "ns since the Unix epoch");
            text.parse().map_err(bad)
        });
        Ok(Self {
            spec: spec.to_string(),
            brokers: brokers.join(","),
            events: place(events, partition.unwrap_or(0) as i32),
            format: spec.choice("format", format)?,
            source: spec.option("source")?.unwrap_or("rich").into(),
            epoch_ns: epoch.transpose()?,
            monitor: of_all("monitor")?,
            runs: of_all("runs")?,
            conf: spec.option("conf")?.map(PathBuf::from),
            limit: Mutex::default(),
        })
    }

    fn properties(&self) -> Result<Properties, OutputError> {
        let read = self.conf.as_deref().map(Properties::read).transpose();
        read.map(Option::unwrap_or_default)
            .map_err(|error| self.failed(&error))
    }

    /// Reaches the brokers; the maximum length of a message of events.
    fn limit(&self) -> Result<usize, OutputError> {
        let properties = self.properties()?;
        let places = [
            Some(&self.events),
            self.monitor.as_ref(),
            self.runs.as_ref(),
        ];
        let places: Vec<_> = places.into_iter().flatten().cloned().collect();
        let limit = Producer::reach(&self.brokers, &properties, &places);
        let limit = limit.map_err(|error| self.failed(&error))?;
        // What only a producer has is checked here.
        self.producer(&properties, limit, Arc::default())?;
        Ok(limit)
    }

    fn producer(
        &self,
        properties: &Properties,
        limit: usize,
        counts: Arc<OutputCounts>,
    ) -> Result<Producer, OutputError> {
        let opened = Producer::new(&self.brokers, properties, limit, counts);
        opened.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &crate::Error) -> OutputError {
        let (spec, what) = (self.spec.clone(), error.to_string());
        if error.is_temporary() {
            OutputError::Open { spec, what }
        } else {
            OutputError::Wrong { spec, what }
        }
    }

    /// The two messages of a run.
    fn run_messages(&self, run: &RunContext<'_>) -> Result<RunMessages, OutputError> {
        let start_ms = since_epoch(run.started).as_millis() as u64;
        let name = run
            .run
            .map_or_else(|| start_ms.to_string(), |run| run.to_string());
        // As the file writer of the same source reads it (ess-dmsc/kafka-to-nexus, documentation,
        // writer_module_ev44_detector_events.md).
        let events = json!({
            "module": "ev44",
            "config": {"topic": self.events.topic, "source": self.source},
        });
        let group = |name: &str, class: &str, child: Value| {
            let class = json!([{"name": "NX_class", "dtype": "string", "values": class}]);
            json!({"type": "group", "name": name, "attributes": class, "children": [child]})
        };
        let events = group(&self.source, "NXevent_data", events);
        let structure = json!({"children": [group("entry", "NXentry", events)]});
        let metadata = json!({
            "program": "l0-trigger",
            "version": env!("CARGO_PKG_VERSION"),
            "run": run.run,
            "configuration": run.configuration,
        });
        let uuid = || {
            fs::read_to_string(UUID).map_err(|error| OutputError::Open {
                spec: self.spec.clone(),
                what: format!("{UUID}: {error}"),
            })
        };
        Ok(RunMessages {
            start_ms,
            file: format!("run_{name}.nxs"),
            name,
            instrument: self.source.clone(),
            job: uuid()?.trim().into(),
            command: uuid()?.trim().into(),
            nexus_structure: structure.to_string(),
            metadata: metadata.to_string(),
            brokers: self.brokers.clone(),
        })
    }
}

impl OutputPlan for KafkaPlan {
    fn selection(&self) -> Selection {
        match self.format {
            Format::Ev44 => Selection::Accepted,
            Format::Record => Selection::All,
        }
    }

    fn reach(&self) -> Result<(), OutputError> {
        let limit = self.limit()?;
        let mut known = self.limit.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some(limit);
        Ok(())
    }

    fn check(&self, _: &Registry) -> Result<(), OutputError> {
        self.properties().map(drop)
    }

    fn open(
        &self,
        run: &RunContext<'_>,
        counts: Arc<OutputCounts>,
    ) -> Result<Box<dyn EventOutput>, OutputError> {
        // Brokers that are away since then are no error: events wait for them, and are counted.
        let known = *self.limit.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = known.map_or_else(|| self.limit(), Ok)?;
        let producer = self.producer(&self.properties()?, limit, counts)?;
        let epochs = if run.recorded {
            Epochs::recorded(self.epoch_ns.unwrap_or(0))
        } else {
            Epochs::live(Arc::clone(&run.unix_ns), self.epoch_ns)
        };
        let collector = match self.format {
            Format::Ev44 => Collector::ev44(&self.source, epochs, limit),
            Format::Record => Collector::records(run.run.is_some(), limit),
        };
        let monitor = self.monitor.clone();
        let monitor =
            monitor.map(|place| Monitor::new(place, &self.source, Arc::clone(&run.monitor)));
        let runs = self.runs.clone();
        let runs = runs.map(|place| Ok::<_, OutputError>((place, self.run_messages(run)?)));
        Ok(Box::new(KafkaOutput {
            producer,
            events: self.events.clone(),
            collector,
            since: Instant::now(),
            monitor,
            runs: runs.transpose()?,
            has_begun: false,
        }))
    }
}

/// Whether a text is a host, a colon and a port.
fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty()
            && !host.contains(char::is_whitespace)
            && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

/// Whether a topic may have this name (Apache Kafka, class `org.apache.kafka.common.internals.Topic`).
fn is_topic(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..250).contains(&name.len()) && name.bytes().all(legal) && name != "." && name != ".."
}
