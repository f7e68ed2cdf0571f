//! Messages of schemas pl72 and 6s4t: start and end of a run.
//!
//! Source: ess-dmsc/streaming-data-types, schemas/pl72_run_start.fbs and schemas/6s4t_run_stop.fbs.

use flatbuffers::FlatBufferBuilder;

use crate::schema::field;

/// Texts of the two messages of a run.
#[derive(Clone, Debug)]
pub struct RunMessages {
    /// Start of the run, in ms since the Unix epoch.
    pub start_ms: u64,
    /// Name of the run.
    pub name: String,
    /// Name of the instrument.
    pub instrument: String,
    /// UUID of the file writer's job for this run.
    pub job: String,
    /// UUID of the command that ends the job.
    pub command: String,
    /// Description of the file that the job writes, in JSON.
    pub nexus_structure: String,
    /// Name of that file.
    pub file: String,
    /// Facts about the run, in JSON.
    pub metadata: String,
    /// Addresses of the brokers.
    pub brokers: String,
}

impl RunMessages {
    /// The message at the start, of schema pl72.
    #[must_use]
    pub fn start(&self) -> Vec<u8> {
        let texts = [
            (field(2), &self.name),
            (field(3), &self.instrument),
            (field(4), &self.nexus_structure),
            (field(5), &self.job),
            (field(6), &self.brokers),
            (field(8), &self.file),
            (field(11), &self.metadata),
        ];
        message("pl72", self.start_ms, &texts)
    }

    /// The message at the end, of schema 6s4t; its time is in ms since the Unix epoch.
    #[must_use]
    pub fn stop(&self, stop_ms: u64) -> Vec<u8> {
        let texts = [
            (field(1), &self.name),
            (field(2), &self.job),
            (field(4), &self.command),
        ];
        message("6s4t", stop_ms, &texts)
    }
}

/// Both tables begin with a time; other fields are texts.
fn message(schema: &str, time_ms: u64, texts: &[(u16, &String)]) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let texts: Vec<_> = texts
        .iter()
        .map(|&(field, text)| (field, builder.create_string(text)))
        .collect();
    let table = builder.start_table();
    builder.push_slot_always(field(0), time_ms);
    for (field, text) in texts {
        builder.push_slot_always(field, text);
    }
    let table = builder.end_table(table);
    builder.finish(table, Some(schema));
    builder.finished_data().to_vec()
}
