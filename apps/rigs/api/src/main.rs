//! Prints the public items of a crate, one a line, from the JSON that rustdoc writes of it.

use std::io::{Write, stdout};
use std::path::PathBuf;

use anyhow::{Context, bail};
use public_api::Builder;

fn main() -> anyhow::Result<()> {
    let files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [file] = files.as_slice() else {
        bail!(
            "usage: pollux-api FILE, where FILE is the JSON that rustdoc writes of a crate; scripts/api makes it"
        );
    };
    // Left out is what every type has: blanket implementations, auto traits, and derived ones.
    let api = Builder::from_rustdoc_json(file)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .with_context(|| {
            format!(
                "{}: not the JSON of a rustdoc that is understood here",
                file.display()
            )
        })?;
    let mut out = stdout().lock();
    for item in api.items() {
        writeln!(out, "{item}")?;
    }
    Ok(())
}
