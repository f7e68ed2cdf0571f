//! Options of port specs.

/// An option `key=value` of a driver's specs. `key` alone means `key=on`.
#[derive(Clone, Copy, Debug)]
pub struct SpecOption {
    /// The key.
    pub key: &'static str,
    /// Accepted values: `on|off`, `BYTES`.
    pub values: &'static str,
    /// Value without the option.
    pub default: &'static str,
    /// Effect of the option.
    pub text: &'static str,
}
