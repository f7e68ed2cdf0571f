//! Receive-side scaling (RSS): hash key, and indirection table from hash to receive queue.

use std::fmt;
use std::str::FromStr;

use super::SpecOption;
use crate::spec::{PortSpec, SpecError};

/// Option `rss-key`.
pub const RSS_KEY: SpecOption = SpecOption {
    key: "rss-key",
    values: "HEX",
    default: "that of Microsoft's specification",
    text: "82574L and 82576: key of the hash that shares flows out to receive queues, 40 bytes",
};

/// Option `rss-table`.
pub const RSS_TABLE: SpecOption = SpecOption {
    key: "rss-table",
    values: "QUEUE+QUEUE...",
    default: "all queues by turns",
    text: "82574L and 82576: receive queues of the hashes 0, 1, 2, ..., 1 to 128 of them, a power \
           of two, which repeat",
};

/// RSS hash key (Toeplitz).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RssKey(Vec<u8>);

impl RssKey {
    /// A key of these bytes, in the order of Microsoft's specification.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    /// The bytes of the key.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The error for a text that is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an RSS key: write two hexadecimal digits for each byte")]
pub struct BadRssKey;

impl FromStr for RssKey {
    type Err = BadRssKey;

    fn from_str(text: &str) -> Result<Self, BadRssKey> {
        let (digits, rest) = text.as_bytes().as_chunks::<2>();
        let byte = |pair: &[u8; 2]| {
            let [high, low] = pair.map(|digit| char::from(digit).to_digit(16));
            Some((high? << 4 | low?) as u8)
        };
        let bytes: Option<Vec<_>> = digits.iter().map(byte).collect();
        match bytes {
            Some(bytes) if rest.is_empty() && !bytes.is_empty() => Ok(Self(bytes)),
            _ => Err(BadRssKey),
        }
    }
}

impl fmt::Display for RssKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Indirection table: receive queues by the lowest bits of the hash. A table shorter than the
/// device's is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RssTable(Vec<u16>);

impl RssTable {
    /// A table of these queues, counted from the port's first.
    #[must_use]
    pub fn new(queues: &[u16]) -> Self {
        Self(queues.into())
    }

    /// The queues of the table.
    #[must_use]
    pub fn queues(&self) -> &[u16] {
        &self.0
    }
}

/// The error for a text that is not a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an RSS table: write receive queues separated by +, as in 0+1+1+1")]
pub struct BadRssTable;

impl FromStr for RssTable {
    type Err = BadRssTable;

    fn from_str(text: &str) -> Result<Self, BadRssTable> {
        let queues: Result<Vec<_>, _> = text.split('+').map(str::parse).collect();
        queues.map(Self).map_err(|_| BadRssTable)
    }
}

impl fmt::Display for RssTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queues: Vec<_> = self.0.iter().map(u16::to_string).collect();
        f.write_str(&queues.join("+"))
    }
}

/// How flows are distributed over receive queues; the driver chooses what is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rss {
    /// Hash key.
    pub key: Option<RssKey>,
    /// Indirection table.
    pub table: Option<RssTable>,
}

/// Key and table sizes of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RssSupport {
    /// Length of the key in bytes.
    pub key: usize,
    /// Number of entries of the table, a power of two.
    pub table: usize,
}

impl Rss {
    /// All values are the driver's choice.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the key.
    #[must_use]
    pub fn key(mut self, key: RssKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets the table.
    #[must_use]
    pub fn table(mut self, table: RssTable) -> Self {
        self.table = Some(table);
        self
    }

    /// Reads [`RSS_KEY`] and [`RSS_TABLE`].
    ///
    /// # Errors
    /// A key that is not hexadecimal, or a table that is not a list of queues.
    pub fn from_spec(spec: &PortSpec) -> Result<Self, SpecError> {
        let key = spec.option(RSS_KEY.key).map(|text| {
            text.parse().map_err(|BadRssKey| {
                let expected = "hexadecimal digits, two for each byte";
                spec.bad_value(RSS_KEY.key, text, expected)
            })
        });
        let table = spec.option(RSS_TABLE.key).map(|text| {
            text.parse().map_err(|BadRssTable| {
                let expected = "receive queues with a + between, as in 0+1+1+1";
                spec.bad_value(RSS_TABLE.key, text, expected)
            })
        });
        Ok(Self {
            key: key.transpose()?,
            table: table.transpose()?,
        })
    }

    /// Takes what is `None` from `other`.
    pub(crate) fn or(&self, other: &Self) -> Self {
        Self {
            key: self.key.clone().or_else(|| other.key.clone()),
            table: self.table.clone().or_else(|| other.table.clone()),
        }
    }

    /// The queue of an entry of the device's table; without a table, the first `queues` queues in
    /// turn.
    pub(crate) fn queue(&self, entry: usize, queues: u16) -> u16 {
        let set = self.table.as_ref().and_then(|RssTable(table)| {
            let place = entry.checked_rem(table.len())?;
            table.get(place).copied()
        });
        set.unwrap_or((entry % usize::from(queues.max(1))) as u16)
    }

    /// Why this is invalid for so many receive queues: the request, and what the device offers.
    pub(crate) fn refusal(
        &self,
        rx_queues: u16,
        offered: Option<RssSupport>,
    ) -> Option<(String, String)> {
        if *self == Self::default() {
            return None;
        }
        let Some(offered) = offered else {
            let asked = "a key or a table of RSS".into();
            return Some((asked, "no choice of how flows are shared out".into()));
        };
        if let Some(key) = &self.key
            && key.0.len() != offered.key
        {
            let asked = format!("an RSS key of {} bytes", key.0.len());
            return Some((asked, format!("keys of {} bytes", offered.key)));
        }
        let RssTable(table) = self.table.as_ref()?;
        if table.is_empty() || !offered.table.is_multiple_of(table.len()) {
            let asked = format!("an RSS table of {} entries", table.len());
            let offered = format!("tables of 1 to {}, a power of two", offered.table);
            return Some((asked, offered));
        }
        let queue = table.iter().max().filter(|queue| **queue >= rx_queues)?;
        let asked = format!("an RSS table with queue {queue}");
        Some((
            asked,
            format!("queues 0 to {}", rx_queues.saturating_sub(1)),
        ))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn keys_and_tables_are_read_and_printed() {
        let spec: PortSpec = "pci:03:00.0,rss-key=6d5Aff,rss-table=0+1+1"
            .parse()
            .unwrap();
        let rss = Rss::from_spec(&spec).unwrap();
        let built = Rss::new()
            .key(RssKey::new(&[0x6d, 0x5a, 0xff]))
            .table(RssTable::new(&[0, 1, 1]));
        assert_eq!(rss, built);
        assert_eq!(rss.key.unwrap().to_string(), "6d5aff");
        assert_eq!(rss.table.unwrap().to_string(), "0+1+1");
        for (bad, said) in [
            ("rss-key=", "two for each byte"),
            ("rss-key=6d5", "two for each byte"),
            ("rss-key=6g", "two for each byte"),
            ("rss-table=", "0+1+1+1"),
            ("rss-table=0+", "0+1+1+1"),
            ("rss-table=70000", "0+1+1+1"),
        ] {
            let spec: PortSpec = format!("pci:03:00.0,{bad}").parse().unwrap();
            let error = Rss::from_spec(&spec).unwrap_err().to_string();
            assert!(error.contains(said), "{bad}: {error}");
        }
    }

    #[test]
    fn what_a_device_does_not_have_is_refused() {
        let offered = Some(RssSupport { key: 4, table: 8 });
        let key = |bytes: &[u8]| Rss::new().key(RssKey::new(bytes));
        let table = |queues: &[u16]| Rss::new().table(RssTable::new(queues));
        assert_eq!(Rss::new().refusal(1, None), None);
        assert_eq!(key(&[0; 4]).refusal(1, offered), None);
        assert_eq!(table(&[0, 1]).refusal(2, offered), None);
        for (rss, offered, said) in [
            (key(&[0; 4]), None, "no choice"),
            (key(&[0; 3]), offered, "keys of 4 bytes"),
            (table(&[]), offered, "tables of 1 to 8"),
            (table(&[0, 1, 0]), offered, "tables of 1 to 8"),
            (table(&[0; 16]), offered, "tables of 1 to 8"),
            (table(&[0, 2]), offered, "queues 0 to 1"),
        ] {
            let (_, there) = rss.refusal(2, offered).unwrap();
            assert!(there.contains(said), "{there}");
        }
        let short = table(&[1, 0]);
        assert_eq!(
            [0, 1, 2, 3].map(|entry| short.queue(entry, 4)),
            [1, 0, 1, 0]
        );
        assert_eq!(
            [0, 1, 2, 3].map(|entry| Rss::new().queue(entry, 3)),
            [0, 1, 2, 0]
        );
    }
}
