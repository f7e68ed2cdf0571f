//! Options of `pollux rdma bench`.

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::ValueEnum;
use pollux_app::{Cpus, ReportOptions, bytes_within, seconds};
use pollux_rdma::{Mtu, Operation, QueuePair};

use super::super::mtu::mtu;
use super::plan::Plan;

/// Largest message.
const MOST: u64 = 1 << 28;

/// Measure rate and latency of PUT, GET and messages between two cores
///
/// Without a port the two ends share memory; with ports they are RoCEv2 endpoints, one on each core:
/// `loopback` is a wire between the two, other ports are two that are connected to each other. Each
/// operation is measured for each size, by trials of --trial:
///
///   rate     requests are posted as long as the queue pair takes them; bytes and requests a second
///   latency  one request at a time. Of a PUT (with immediate) and of a message the time there and back:
///            the other end answers with the same. Of a GET until the data are there
///
/// Both cores poll, so give them two CPUs that nothing else uses. Sizes up to 2 KiB are sent from the
/// descriptor, larger ones from registered memory. The data that arrived are compared with those that
/// were sent, and the ledger of the frames is checked. A signal ends the run with the results so far.
///
/// Examples:
///   pollux rdma bench --cores 2,3
///   pollux rdma bench loopback --operation put --bytes 1048576 --measure rate --cores 2,3
///   pollux rdma bench af_packet:eth1 af_packet:eth2 --mtu 1024 --report run.json
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(
    after_help = "Exit status: 0 when all was measured or a signal ended the run, 1 when a measurement failed or \
                  data were wrong, 2 on a wrong option."
)]
pub(in super::super) struct Args {
    /// Ports of the two ends, or `loopback` for both; without a port: shared memory
    #[arg(value_name = "PORT", num_args = 0..=2)]
    pub(super) ports: Vec<String>,

    /// What is measured: put, get, send (a message)
    #[arg(long, value_name = "LIST", value_enum, value_delimiter = ',')]
    #[arg(default_value = "put,get,send", hide_possible_values = true)]
    operation: Vec<Request>,

    /// How it is measured: rate, latency
    #[arg(long, value_name = "LIST", value_enum, value_delimiter = ',')]
    #[arg(default_value = "rate,latency", hide_possible_values = true)]
    measure: Vec<Measure>,

    /// Bytes of a request, 1 B to 256 MiB
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = size)]
    #[arg(default_value = "8,64,4096,65536,1048576")]
    bytes: Vec<u32>,

    /// Requests at a time, of a rate
    #[arg(long, value_name = "N", default_value_t = QueuePair::REQUESTS as u32)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=QueuePair::REQUESTS as i64))]
    pub(super) depth: u32,

    /// Bytes of data in a packet, of RoCEv2
    #[arg(long, value_name = "BYTES", default_value = "4096", value_parser = mtu)]
    pub(super) mtu: Mtu,

    /// Duration of a trial, after a tenth of it that is not counted
    #[arg(long, value_name = "TIME", default_value = "1", value_parser = seconds)]
    pub(super) trial: Duration,

    /// CPUs of the two ends, that of the requester first [default: the last two]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cores: Vec<Cpus>,

    #[command(flatten)]
    pub(super) report: ReportOptions,
}

/// An operation.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Request {
    Put,
    Get,
    Send,
}

/// What is found out.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Measure {
    Rate,
    Latency,
}

fn size(text: &str) -> Result<u32, String> {
    bytes_within(text, 1..=MOST).map(|bytes| bytes as u32)
}

impl Args {
    pub(super) fn cores(&self) -> Vec<usize> {
        Cpus::of(&self.cores)
    }

    /// Refuses a port that no frame of comes back to.
    pub(super) fn check(&self) -> Result<()> {
        if let [port] = &self.ports[..] {
            let is_wire = port.split(':').next() == Some("loopback");
            ensure!(
                is_wire,
                "{port}: one port is `loopback`, which is a wire; of others give two that are connected"
            );
        }
        Ok(())
    }

    /// All measurements, one size after the other.
    pub(super) fn plans(&self) -> Vec<Plan> {
        let mut plans = Vec::new();
        for &measure in &self.measure {
            for &request in &self.operation {
                plans.extend(self.bytes.iter().map(|&bytes| Plan {
                    operation: request.into(),
                    is_rate: measure == Measure::Rate,
                    bytes,
                    depth: self.depth,
                    trial: self.trial,
                }));
            }
        }
        plans
    }
}

impl From<Request> for Operation {
    fn from(request: Request) -> Self {
        match request {
            Request::Put => Self::Put,
            Request::Get => Self::Get,
            Request::Send => Self::Send,
        }
    }
}
