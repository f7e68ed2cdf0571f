//! `include/pollux.h` is what cbindgen makes of the sources.
#![allow(clippy::unwrap_used)]

use std::path::Path;

#[test]
fn the_header_is_that_of_the_sources() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for file in ["frame", "options", "open", "api"] {
        builder = builder.with_src(folder.join("src").join(file).with_extension("rs"));
    }
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let header = folder.join("include/pollux.h");
    if std::fs::read(&header).unwrap_or_default() != made {
        let fresh = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pollux.h");
        std::fs::write(&fresh, made).unwrap();
        panic!(
            "the header is out of date: cp {} {}",
            fresh.display(),
            header.display()
        );
    }
}
