//! Arbitrary text as a port spec: it is refused, by the parser or by its driver's check of the
//! options, or printed as an equivalent spec.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_pmd::{PortSpec, Registry};

thread_local! {
    static REGISTRY: Registry = Registry::builtin();
}

fuzz_target!(|text: &str| {
    let checked = REGISTRY.with(|registry| registry.check(text));
    if let Err(why) = &checked {
        assert!(why.is_usage(), "nothing was opened: {why}");
    }
    let Ok(spec) = text.parse::<PortSpec>() else {
        assert!(checked.is_err());
        return;
    };
    assert_eq!(spec.to_string().parse(), Ok(spec.clone()), "{spec}");
    for part in text.split([':', ',']) {
        let key = part.split_once('=').map_or(part, |(key, _)| key);
        let number = spec.parse_option::<u16>(key, 0, "a number");
        match spec.option(key) {
            Some(value) => assert_eq!(number.ok(), value.parse().ok()),
            None => assert_eq!(number, Ok(0)),
        }
    }
});
