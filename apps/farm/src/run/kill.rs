//! Members that are to die in the run.

use std::fmt::{self, Display};
use std::str::FromStr;

use pollux_farm::role::Address;

/// A member that ends for good when it sees an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    /// The member: a node or a feeder.
    pub member: Address,
    /// The first event that it does nothing for.
    pub event: u64,
}

impl FromStr for Kill {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "write node:N@EVENT or feeder:N@EVENT, as node:3@5000";
        let (member, event) = text.split_once('@').ok_or(FORM)?;
        let (kind, number) = member.split_once(':').ok_or(FORM)?;
        let member = match kind {
            "node" => number.parse().map(Address::Node),
            "feeder" => number.parse().map(Address::Feeder),
            _ => return Err(FORM.into()),
        };
        let member = member.map_err(|_| FORM)?;
        let event = event.parse().map_err(|_| FORM)?;
        Ok(Self { member, event })
    }
}

/// As it is read.
impl Display for Kill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let event = self.event;
        match self.member {
            Address::Node(node) => write!(f, "node:{node}@{event}"),
            Address::Feeder(feeder) => write!(f, "feeder:{feeder}@{event}"),
            other => write!(f, "{other:?}@{event}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read() {
        let kill = |member, event| Ok(Kill { member, event });
        assert_eq!("node:3@50".parse(), kill(Address::Node(3), 50));
        assert_eq!(
            "node:3@50".parse().map(|k: Kill| k.to_string()),
            Ok("node:3@50".into())
        );
        assert_eq!("feeder:63@0".parse(), kill(Address::Feeder(63), 0));
        for text in [
            "",
            "node",
            "node:3",
            "node@3",
            "x:1@2",
            "node:-1@2",
            "feeder:256@1",
            "node:1@",
        ] {
            let error = text.parse::<Kill>().unwrap_err();
            assert!(error.contains("node:3@5000"), "{text}");
        }
    }
}
