//! Arbitrary text as the table of a pipeline: it is refused with a reason, or makes a pipeline that
//! starts and ends.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_na62::l0::{Decision, Frame};
use pollux_na62::{stage_env, stage_registry};
use pollux_pipelines::Moment;

fuzz_target!(|text: &str| {
    let Ok(mut config) = text.parse::<toml::Table>() else {
        return;
    };
    let Some(toml::Value::Array(stages)) = config.remove("stage") else {
        return;
    };
    let tables: Option<Vec<toml::Table>> = stages
        .into_iter()
        .map(|stage| stage.try_into().ok())
        .collect();
    let mut env = stage_env(2);
    let registry = stage_registry();
    match registry.pipeline::<Frame, Decision>(&tables.unwrap_or_default(), &mut env) {
        Ok(mut pipeline) => {
            let mut out = Vec::new();
            pipeline.tick(Moment(0), &mut out);
            pipeline.finish(&mut out);
            assert!(out.is_empty(), "nothing came in");
        }
        Err(why) => assert!(!why.to_string().is_empty()),
    }
});
