//! Registries of port drivers, stages and outputs for a trigger.

#[cfg(feature = "kafka")]
use pollux_kafka::KIND as KAFKA;
use pollux_na62::stage_registry;
#[cfg(not(feature = "kafka"))]
use pollux_output::OutputError;
use pollux_output::OutputKind;
use pollux_pipelines::registry::StageRegistry;
use pollux_pmd::Registry;

/// Registries of port drivers, stages and outputs for a trigger.
pub struct Registries {
    pub ports: Registry,
    pub stages: StageRegistry,
    pub outputs: Vec<OutputKind>,
}

impl Default for Registries {
    fn default() -> Self {
        Self {
            ports: pollux_app::ports::registry(),
            stages: stage_registry(),
            outputs: output_kinds(),
        }
    }
}

/// The kinds of `--output`.
fn output_kinds() -> Vec<OutputKind> {
    vec![pollux_output::ejfat::KIND, KAFKA]
}

/// Placeholder for outputs of kind `kafka` in builds without them.
#[cfg(not(feature = "kafka"))]
const KAFKA: OutputKind = OutputKind {
    name: "kafka",
    usage: "kafka:HOST:PORT[+HOST:PORT],topic=T",
    plan: |spec| {
        Err(OutputError::NotBuiltIn {
            spec: spec.to_string(),
            kind: "kafka",
            feature: "kafka",
        })
    },
};
