//! Registries of port drivers and stages for a trigger.

use pollux_na62::stage_registry;
use pollux_pipelines::registry::StageRegistry;
use pollux_pmd::Registry;

/// Registries of port drivers and stages for a trigger.
pub struct Registries {
    pub ports: Registry,
    pub stages: StageRegistry,
}

impl Default for Registries {
    fn default() -> Self {
        Self {
            ports: pollux_app::ports::registry(),
            stages: stage_registry(),
        }
    }
}
