//! Address of a line server.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::address;

/// Where a line server listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Address {
    /// Path of a Unix stream socket, which only its owner can connect to.
    Unix(PathBuf),
    /// A TCP address.
    Tcp(SocketAddr),
}

impl FromStr for Address {
    type Err = String;

    /// `unix:PATH`, or any text with a `/`, is a path; `tcp:ADDRESS:PORT`, or `ADDRESS:PORT`, is a TCP
    /// address.
    fn from_str(text: &str) -> Result<Self, String> {
        let path = text.strip_prefix("unix:");
        if let Some(path) = path.or_else(|| text.contains('/').then_some(text)) {
            if path.is_empty() {
                return Err("write unix:PATH: the path is missing".into());
            }
            return Ok(Self::Unix(path.into()));
        }
        let found = address(text.strip_prefix("tcp:").unwrap_or(text));
        found.map(Self::Tcp).map_err(|error| {
            format!("`{text}` is no address: {error}; of a Unix socket, write unix:PATH")
        })
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.to_string()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown() {
        for (text, shown) in [
            ("unix:control", "unix:control"),
            ("/run/control", "unix:/run/control"),
            ("./control", "unix:./control"),
            ("127.0.0.1:9000", "tcp:127.0.0.1:9000"),
            ("tcp:[::1]:9000", "tcp:[::1]:9000"),
        ] {
            let address: Address = text.parse().expect(text);
            assert_eq!(address.to_string(), shown);
            assert_eq!(shown.parse(), Ok(address));
        }
        for text in ["", "control", "unix:", "tcp:", "9000", "a:b"] {
            let error = text.parse::<Address>().expect_err(text);
            assert!(error.contains("unix:PATH"), "{error}");
        }
    }
}
