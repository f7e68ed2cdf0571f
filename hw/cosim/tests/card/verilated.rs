//! The RTL of the card passes the suite: with a prompt host, and with an adversarial
//! one.

#[cfg(not(has_verilator))]
#[test]
fn card_from_its_rtl() {
    println!("skipped: no simulated card: built without the feature `verilated`, or no Verilator");
}

/// The suite, with a host of this behaviour.
#[cfg(has_verilator)]
macro_rules! suite {
    ($name:ident, $seed:literal) => {
        mod $name {
            use pollux_cosim::pcie::Behaviour;
            use pollux_cosim::verilated::VerilatedCard;

            pollux_cosim::conformance!(VerilatedCard::new($seed, Behaviour::$name()));
        }
    };
}

#[cfg(has_verilator)]
suite!(prompt, 1);
#[cfg(has_verilator)]
suite!(adversarial, 2);
