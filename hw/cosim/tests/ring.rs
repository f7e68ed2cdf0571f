//! The ring of the event builder from its RTL against the roles of `pollux-farm`.

#[cfg(has_verilator)]
#[test]
fn random_rings_decide_as_the_software_does() -> anyhow::Result<()> {
    let found = pollux_cosim::evb::compare(8, 60, 1000)?;
    assert!(found.mismatches.is_empty(), "{:?}", found.mismatches);
    assert!(found.events >= 8 * 60, "{} events", found.events);
    Ok(())
}

#[cfg(not(has_verilator))]
#[test]
fn random_rings_decide_as_the_software_does() {
    println!("skipped: no simulated ring: apt-get install verilator, and the feature `verilated`");
}
