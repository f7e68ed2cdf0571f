//! Brokers before a run: reachable, with the topics that the output needs.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::FromClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::error::Error;

/// Maximum time for each answer of the brokers.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum length of a message where neither the broker nor the configuration names one: librdkafka's
/// default (CONFIGURATION.md, `message.max.bytes`), below that of brokers (`max.message.bytes`).
const DEFAULT_LIMIT: usize = 1_000_000;

/// The property of a client's maximum, and that of a topic.
pub(crate) const CLIENT_LIMIT: &str = "message.max.bytes";
const TOPIC_LIMIT: &str = "max.message.bytes";

/// A partition of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the topic.
    pub topic: String,
    /// Number of the partition, from 0.
    pub partition: i32,
}

/// Checks that the brokers answer and that each place is there; creates missing topics, with one
/// partition and the broker's replication. Returns the maximum length of a message in the first place.
///
/// # Errors
/// No broker, wrong properties, a topic that cannot be created, a missing partition.
pub(crate) fn prepare(
    config: &ClientConfig,
    brokers: &str,
    places: &[Place],
) -> Result<usize, Error> {
    let client = AdminClient::from_config(config).map_err(property)?;
    reach(brokers)?;
    let no_answer = |what: String| Error::NoAnswer {
        brokers: brokers.into(),
        what,
    };
    // Of all topics: a request for one creates it, with as many partitions as the broker likes.
    let metadata = client.inner().fetch_metadata(None, PATIENCE);
    let metadata = metadata.map_err(|error| no_answer(message(&error)))?;
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| no_answer(error.to_string()))?;
    for place in places {
        let found = metadata
            .topics()
            .iter()
            .find(|topic| topic.name() == place.topic);
        let partitions = found.map_or(1, |topic| topic.partitions().len());
        if usize::try_from(place.partition).is_ok_and(|n| n >= partitions) {
            return Err(Error::NoPartition {
                topic: place.topic.clone(),
                partitions,
                partition: place.partition,
            });
        }
        if found.is_none() {
            runtime.block_on(create(&client, &place.topic))?;
        }
    }
    let of_topic = places
        .first()
        .map(|place| runtime.block_on(limit(&client, &place.topic)));
    let limit = config.get(CLIENT_LIMIT).and_then(|text| text.parse().ok());
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    Ok(of_topic
        .flatten()
        .map_or(limit, |of_topic| limit.min(of_topic)))
}

/// Connects to any of the addresses, for the system's own words if there is none: librdkafka reports
/// each failure in the same words.
fn reach(brokers: &str) -> Result<(), Error> {
    let mut failed = None;
    for address in brokers.split(',') {
        let sockets = match address.to_socket_addrs() {
            Ok(sockets) => sockets,
            Err(error) => {
                let address = address.into();
                // A broker that is away may come back, whatever the other names are.
                failed.get_or_insert(Error::NoHost { address, error });
                continue;
            }
        };
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for socket in sockets {
            match TcpStream::connect_timeout(&socket, PATIENCE) {
                Ok(_) => return Ok(()),
                Err(error) => last = error,
            }
        }
        failed = Some(Error::Unreachable {
            address: address.into(),
            error: last,
        });
    }
    failed.map_or(Ok(()), Err)
}

async fn create(client: &AdminClient<DefaultClientContext>, topic: &str) -> Result<(), Error> {
    let new = NewTopic::new(topic, 1, TopicReplication::Fixed(-1));
    let options = options().operation_timeout(Some(PATIENCE));
    let failed = |what| Error::Create {
        topic: topic.into(),
        what,
    };
    let results = client.create_topics([&new], &options).await;
    let results = results.map_err(|error| failed(message(&error)))?;
    for result in results {
        match result {
            // Another program was faster.
            Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err((_, code)) => return Err(failed(code.to_string())),
        }
    }
    Ok(())
}

/// The topic's own maximum; `None` if the broker does not tell.
async fn limit(client: &AdminClient<DefaultClientContext>, topic: &str) -> Option<usize> {
    let resource = ResourceSpecifier::Topic(topic);
    let described = client
        .describe_configs([&resource], &options())
        .await
        .ok()?;
    let resource = described.into_iter().next()?.ok()?;
    resource.get(TOPIC_LIMIT)?.value.as_ref()?.parse().ok()
}

fn options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(PATIENCE))
}

/// An error of the configuration, without the value: it may be a secret.
pub(crate) fn property(error: KafkaError) -> Error {
    let what = match error {
        KafkaError::ClientConfig(_, what, _, _) | KafkaError::ClientCreation(what) => what,
        other => message(&other),
    };
    let absent = what.contains("not available at build time") || what.contains("not built with");
    let remedy = if absent && cfg!(not(feature = "tls")) {
        " (build with the feature kafka-tls)"
    } else {
        ""
    };
    Error::Property(format!("{what}{remedy}"))
}

/// The words of an error of librdkafka.
pub(crate) fn message(error: &KafkaError) -> String {
    match error.rdkafka_error_code() {
        Some(code) => code.to_string(),
        None => error.to_string(),
    }
}
