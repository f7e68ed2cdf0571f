//! The tests of the library's VFIO, by themselves, on devices that are bound to it.

use std::fs;

use anyhow::{Result, ensure};

use crate::nic::run;
use crate::test::Test;

/// For two 82574L.
pub(crate) const DEVICE: &[Test] = &[Test {
    name: "vfio",
    shows: "a device is taken, interrupts, reaches what is mapped alone, is reset and given back",
    run: |_| {
        library(&[
            "a_real_device_is_taken_used_and_given_back",
            "what_is_not_mapped_is_not_reached",
            "who_is_asked_for_the_device_hears_of_it",
        ])
    },
}];

/// For a device with virtual functions.
pub(crate) const FUNCTIONS: &[Test] = &[Test {
    name: "vfio-functions",
    shows: "virtual functions are made, had by who shows the token, and removed",
    run: |_| {
        // The kernel's administrator has to say so.
        fs::write("/sys/module/vfio_pci/parameters/enable_sriov", "1")?;
        library(&["virtual_functions_take_the_token_of_their_physical_function"])
    },
}];

/// Runs tests of the library, none of which may be skipped.
fn library(tests: &[&str]) -> Result<()> {
    let mut words = vec!["pollux-pmd-tests", "--nocapture", "--exact"];
    let names: Vec<_> = tests
        .iter()
        .map(|test| format!("bus::vfio::tests::devices::{test}"))
        .collect();
    words.extend(names.iter().map(String::as_str));
    let said = run(&words)?;
    print!("{said}");
    let count = tests.len();
    ensure!(
        said.contains(&format!(" {count} passed")) && !said.contains("skipped: "),
        "not all {count} tests were run: {said}"
    );
    Ok(())
}
