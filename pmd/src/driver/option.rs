//! The options of specs.

/// An option `key=value` of a driver's specs. `key` alone stands for `key=on`.
#[derive(Clone, Copy, Debug)]
pub struct SpecOption {
    /// The key.
    pub key: &'static str,
    /// The values that there are: `on|off`, `BYTES`.
    pub values: &'static str,
    /// What holds without the option.
    pub default: &'static str,
    /// What it does.
    pub text: &'static str,
}
