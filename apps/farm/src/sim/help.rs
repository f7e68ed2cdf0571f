//! The part of the help about scenarios: their policies and parameters.

use std::fmt::Write as _;

use pollux_farm::sim::Scenario;

/// All scenarios with their policies, and the parameters with ranges and defaults.
pub(super) fn scenarios() -> String {
    let mut text =
        String::from("Scenarios, with their policies (the first is the default) and parameters:\n");
    for scenario in Scenario::ALL {
        let policies: Vec<_> = scenario
            .policies()
            .iter()
            .map(|policy| policy.name())
            .collect();
        // Writing to a string does not fail.
        let _ = write!(text, "\n  {}: {}\n", scenario.name(), scenario.text());
        if !policies.is_empty() {
            let _ = writeln!(text, "    --policy {}", policies.join("|"));
        }
        for key in scenario.keys() {
            let name = format!("{}={}", key.name, key.default);
            let _ = writeln!(text, "    {name:20} {} ({})", key.text, key.kind);
        }
    }
    text.push_str(
        "\nExit status: 0 when the simulation ended, also by a signal; 1 when a report cannot be \
         written; 2 on a\nwrong option or parameter.",
    );
    text
}
