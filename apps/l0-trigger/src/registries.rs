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

#[cfg(test)]
mod tests {
    use super::output_kinds;
    use crate::program::command;

    #[test]
    fn the_help_has_every_output() {
        let help = command().render_long_help().to_string();
        let help: String = help.split_whitespace().collect();
        for kind in output_kinds() {
            assert!(help.contains(kind.usage), "{}", kind.usage);
        }
    }
}
