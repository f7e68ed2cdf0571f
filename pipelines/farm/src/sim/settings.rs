//! Parameters of scenarios: `KEY=VALUE`, with ranges and defaults.

use std::collections::BTreeMap;
use std::fmt;

use thiserror::Error;

/// A parameter of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Values that it takes.
    pub kind: Kind,
    /// Its value if none is given.
    pub default: &'static str,
    /// What it is, with its unit.
    pub text: &'static str,
}

/// Values of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A whole number in a range.
    Whole(u64, u64),
    /// A number in a range.
    Real(f64, f64),
    /// A number in a range, or `max`.
    RealOrMax(f64, f64),
    /// `on` or `off`.
    Switch,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// Value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A whole number.
    Whole(u64),
    /// A number.
    Real(f64),
    /// `on` or `off`.
    Switch(bool),
    /// A word; `max` for the highest value.
    Word(&'static str),
}

/// Why a setting is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// No `KEY=VALUE`.
    #[error("{0}: write KEY=VALUE, as {1}")]
    Form(String, String),
    /// The scenario has no such parameter.
    #[error("{key}: there is no such parameter; there are {names}")]
    Unknown {
        /// The key.
        key: String,
        /// Those that there are.
        names: String,
    },
    /// The parameter has another range.
    #[error("{key}={value}: give {kind}")]
    Value {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
        /// The values that it takes.
        kind: Kind,
    },
    /// Values that exclude each other.
    #[error("{0}")]
    Conflict(String),
}

// Only the bounds are compared, and they are constants.
impl Eq for Kind {}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(least, most) => write!(f, "a whole number from {least} to {most}"),
            Self::Real(least, most) => write!(f, "a number from {least} to {most}"),
            Self::RealOrMax(least, most) => write!(f, "a number from {least} to {most}, or max"),
            Self::Switch => write!(f, "on or off"),
            Self::Word(words) => write!(f, "{}", words.join(" or ")),
        }
    }
}

impl Kind {
    fn read(self, text: &str) -> Option<Value> {
        let within = |least: f64, most: f64| {
            let number = text.parse::<f64>().ok()?;
            (least..=most)
                .contains(&number)
                .then_some(Value::Real(number))
        };
        match self {
            Self::Whole(least, most) => {
                let number = text.parse().ok()?;
                (least..=most)
                    .contains(&number)
                    .then_some(Value::Whole(number))
            }
            Self::RealOrMax(..) if text == "max" => Some(Value::Word("max")),
            Self::Real(least, most) | Self::RealOrMax(least, most) => within(least, most),
            Self::Switch => match text {
                "on" | "true" | "1" => Some(Value::Switch(true)),
                "off" | "false" | "0" => Some(Value::Switch(false)),
                _ => None,
            },
            Self::Word(words) => {
                let word = words.iter().find(|&&word| word == text)?;
                Some(Value::Word(word))
            }
        }
    }
}

/// Values of all parameters of a scenario.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(transparent)]
pub struct Settings(BTreeMap<&'static str, Value>);

impl Settings {
    /// Reads `KEY=VALUE` settings; the last of a key counts. Other parameters have their defaults.
    ///
    /// # Errors
    /// An unknown key, or a value outside of its range, with what is allowed.
    pub fn read<'a>(
        keys: &'static [Key],
        given: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, SettingsError> {
        let mut values = BTreeMap::new();
        for key in keys {
            values.extend(key.kind.read(key.default).map(|value| (key.name, value)));
        }
        for text in given {
            let Some((name, value)) = text.split_once('=') else {
                let example = keys
                    .first()
                    .map(|key| format!("{}={}", key.name, key.default));
                return Err(SettingsError::Form(
                    text.into(),
                    example.unwrap_or_default(),
                ));
            };
            let Some(key) = keys.iter().find(|key| key.name == name) else {
                let names: Vec<_> = keys.iter().map(|key| key.name).collect();
                return Err(SettingsError::Unknown {
                    key: name.into(),
                    names: names.join(", "),
                });
            };
            let Some(value) = key.kind.read(value) else {
                return Err(SettingsError::Value {
                    key: key.name,
                    value: value.into(),
                    kind: key.kind,
                });
            };
            values.insert(key.name, value);
        }
        Ok(Self(values))
    }

    /// A whole number; 0 for a parameter that has none.
    #[must_use]
    pub fn whole(&self, name: &str) -> u64 {
        match self.0.get(name) {
            Some(Value::Whole(number)) => *number,
            _ => 0,
        }
    }

    /// A number; `None` for `max`.
    #[must_use]
    pub fn real(&self, name: &str) -> Option<f64> {
        match self.0.get(name) {
            Some(Value::Real(number)) => Some(*number),
            _ => None,
        }
    }

    /// Whether a switch is on.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Value::Switch(true))
    }

    /// A word; empty for a parameter that has none.
    #[must_use]
    pub fn word(&self, name: &str) -> &'static str {
        match self.0.get(name) {
            Some(Value::Word(word)) => word,
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &[Key] = &[
        Key {
            name: "ports",
            kind: Kind::Whole(1, 9),
            default: "8",
            text: "",
        },
        Key {
            name: "load",
            kind: Kind::RealOrMax(0.1, 0.9),
            default: "max",
            text: "",
        },
        Key {
            name: "barrier",
            kind: Kind::Switch,
            default: "on",
            text: "",
        },
        Key {
            name: "sizes",
            kind: Kind::Word(&["fixed", "exponential"]),
            default: "fixed",
            text: "",
        },
    ];

    #[test]
    fn values_are_read_and_others_have_their_defaults() {
        let read = Settings::read(KEYS, ["ports=3", "load=0.5", "ports=4"]).unwrap();
        assert_eq!(read.whole("ports"), 4);
        assert_eq!(read.real("load"), Some(0.5));
        assert!(read.is_on("barrier"));
        assert_eq!(read.word("sizes"), "fixed");
        let read = Settings::read(KEYS, ["barrier=off", "load=max", "sizes=exponential"]).unwrap();
        assert_eq!(read.real("load"), None);
        assert!(!read.is_on("barrier"));
        assert_eq!(read.word("sizes"), "exponential");
    }

    #[test]
    fn others_are_refused_with_what_is_allowed() {
        for (text, expected) in [
            ("ports", "ports: write KEY=VALUE, as ports=8"),
            (
                "port=1",
                "port: there is no such parameter; there are ports, load, barrier, sizes",
            ),
            ("ports=0", "ports=0: give a whole number from 1 to 9"),
            (
                "ports=18446744073709551616",
                "ports=18446744073709551616: give a whole number from 1 to 9",
            ),
            ("ports=2.5", "ports=2.5: give a whole number from 1 to 9"),
            ("load=1", "load=1: give a number from 0.1 to 0.9, or max"),
            (
                "load=nan",
                "load=nan: give a number from 0.1 to 0.9, or max",
            ),
            ("barrier=", "barrier=: give on or off"),
            ("sizes=big", "sizes=big: give fixed or exponential"),
        ] {
            let error = Settings::read(KEYS, [text]).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
