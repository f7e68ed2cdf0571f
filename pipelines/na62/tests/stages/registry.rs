//! Pipelines from TOML: error messages are complete.

use crate::common::env;
use pollux_na62::l0::{Decision, Event, Frame};
use pollux_na62::stage_registry;
use pollux_pipelines::Pipeline;

fn pipeline<In: 'static, Out: 'static>(toml: &str) -> Result<Pipeline<In, Out>, String> {
    let config: toml::Table = toml.parse().unwrap();
    let tables: Vec<toml::Table> = config["stage"].clone().try_into().unwrap();
    let made = stage_registry().pipeline(&tables, &mut env(4));
    made.map_err(|error| error.to_string())
}

/// The error message for a chain from frames to decisions.
fn refusal(toml: &str) -> String {
    pipeline::<Frame, Decision>(toml).err().unwrap()
}

const CHAIN: &str = r#"
    [[stage]]
    name = "decompress"
    boards = [0, 1, 2, 7]

    [[stage]]
    name = "build"
    deadline_us = 250

    [[stage]]
    name = "rings"
    max_rings = 2

    [[stage]]
    name = "decide"

    [[stage.rule]]
    name = "ring"
    radius_mm = [80, 200]
"#;

#[test]
fn the_chain_of_the_trigger_is_made_from_its_tables() {
    let made = pipeline::<Frame, Decision>(CHAIN).unwrap();
    let names: Vec<_> = made.times().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(names, ["decompress", "build", "rings", "decide"]);
}

#[test]
fn an_unknown_stage_is_named_beside_those_that_there_are() {
    assert_eq!(
        refusal(&CHAIN.replace("\"build\"", "\"biuld\"")),
        "no stage `biuld`; there are: decompress, read-mep, read-tel62, read-mtp, build, merge, rings, decide"
    );
}

#[test]
fn a_typo_in_an_option_is_named_beside_those_that_there_are() {
    assert_eq!(
        refusal(&CHAIN.replace("deadline_us", "dedline_us")),
        "stage `build`: unknown field `dedline_us`, expected one of `window_slots`, \
         `deadline_us`, `horizon_us`, `max_open`, `hot_hits`"
    );
    assert_eq!(
        refusal(&CHAIN.replace("radius_mm", "radius")),
        "stage `decide`: unknown field `radius`, expected one of `name`, `min_rings`, \
         `max_rings`, `radius_mm`, `max_chi2_mm2`, `min_significance`, `disk`, `min_hits`, `max_hits`, `min_sources`, `sources`, `prescale` \
         in `rule`"
    );
    assert_eq!(
        refusal(&CHAIN.replace("boards", "board")),
        "stage `decompress`: unknown field `board`, expected `source_id` or `boards`"
    );
    let message = refusal(&CHAIN.replace("max_rings", "rings_max"));
    assert!(message.starts_with("stage `rings`: unknown field `rings_max`, expected one of `min_"));
}

#[test]
fn a_value_of_the_wrong_type_or_out_of_range_is_named() {
    for (from, to, message) in [
        (
            "= 250",
            "= \"long\"",
            "stage `build`: invalid type: string \"long\", expected u64 in `deadline_us`",
        ),
        (
            "= 250",
            "= -1",
            "stage `build`: invalid value: integer `-1`, expected u64 in `deadline_us`",
        ),
        (
            "= 250",
            "= 0",
            "stage `build`: deadline_us = 0: it must be 1 to 60000000 (a minute)",
        ),
        (
            "7]",
            "700]",
            "stage `decompress`: invalid value: integer `700`, expected u8 in `boards`",
        ),
        (
            ", 7]",
            "]",
            "stage `decompress`: 3 boards for 4 sources: one each",
        ),
        (
            "max_rings = 2",
            "max_rings = 9",
            "stage `rings`: max_rings must be 1 to 4",
        ),
        (
            "[80, 200]",
            "[200, 80]",
            "stage `decide`: rule `ring`: radius_mm = [200, 80]: smallest first, both in mm",
        ),
    ] {
        assert_eq!(refusal(&CHAIN.replace(from, to)), message);
    }
}

#[test]
fn a_stage_needs_a_name() {
    let message = "[[stage]] number 2 has no `name`";
    assert_eq!(
        refusal("[[stage]]\nname = \"decompress\"\n[[stage]]\ndeadline_us = 3"),
        message
    );
    assert_eq!(
        refusal("[[stage]]\nname = \"decompress\"\n[[stage]]\nname = 3"),
        message
    );
}

#[test]
fn stages_that_do_not_fit_are_named_with_their_kinds() {
    let stages = "[[stage]]\nname = \"rings\"\n[[stage]]\nname = \"build\"";
    assert_eq!(
        pipeline::<Event, Decision>(stages).err().unwrap(),
        "stage `build` takes fragments, but stage `rings` before it makes events with rings"
    );
    assert_eq!(
        refusal(stages),
        "stage `rings` takes events, but the pipeline is given frames"
    );
    let short = CHAIN
        .split("[[stage]]\n    name = \"decide\"")
        .next()
        .unwrap();
    assert_eq!(
        refusal(short),
        "the pipeline must make decisions, but its last stage, `rings`, makes events with rings"
    );
    assert_eq!(refusal("stage = []"), "a pipeline needs at least one stage");
}
