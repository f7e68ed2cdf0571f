//! Writes the seed inputs of the target `control` into `corpus/control`: the lines of
//! docs/formats/images-control.md. `cargo run --example control_seeds` in this folder.

use std::fs;
use std::path::Path;

fn main() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fuzz.join("../../../docs/formats/images-control.md");
    let page = fs::read_to_string(page).expect("the page");
    let folder = fuzz.join("corpus/control");
    fs::create_dir_all(&folder).expect("the folder");
    let lines = page.lines().filter_map(|line| line.strip_prefix("    "));
    let lines: Vec<_> = lines.filter(|line| line.starts_with('{')).collect();
    for (n, line) in lines.iter().enumerate() {
        fs::write(folder.join(format!("line-{n:02}")), line).expect("the file");
    }
    let arm = r#"{"version":1,"request":{"arm":{"transfers":[{"name":"a","every":2,"rate_hz":9.0,"buffers":2,"region":[{"first_row":1,"rows":2,"first_column":3,"columns":4,"offset":5,"stride":6}]}]}}}"#;
    let ask = |what: &str| format!("{{\"version\":1,\"request\":\"{what}\"}}");
    let run = ["start", "pause", "resume", "stop", "status"].map(ask);
    let run = [&[arm.to_owned()][..], &run].concat().join("\n");
    fs::write(folder.join("run"), run).expect("the file");
}
