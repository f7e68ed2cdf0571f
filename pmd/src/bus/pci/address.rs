//! PCI addresses.

use std::fmt;
use std::str::FromStr;

/// The address of a PCI function, as the kernel writes it: `0000:03:00.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

/// Error: text that is not a PCI address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a PCI address: DOMAIN:BUS:DEVICE.FUNCTION or BUS:DEVICE.FUNCTION, as in \
         0000:03:00.0 or 03:00.0 (`pollux ports` lists the available ones)", .0.escape_debug())]
pub struct BadAddress(String);

/// Parses `domain:bus:device.function` in hexadecimal; the domain defaults to 0000.
impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let parse = || {
            let (front, function) = text.rsplit_once('.')?;
            let (front, device) = front.rsplit_once(':')?;
            let (domain, bus) = front.rsplit_once(':').unwrap_or(("0000", front));
            let hex = |text: &str, shortest: usize, longest: usize| {
                let digits = (shortest..=longest).contains(&text.len())
                    && text.bytes().all(|byte| byte.is_ascii_hexdigit());
                digits.then(|| u32::from_str_radix(text, 16).ok()).flatten()
            };
            let small = |text: &str, digits: usize, most: u8| {
                let number = u8::try_from(hex(text, digits, digits)?).ok()?;
                (number <= most).then_some(number)
            };
            Some(Self {
                domain: hex(domain, 4, 8)?,
                bus: small(bus, 2, 0xff)?,
                device: small(device, 2, 0x1f)?,
                function: small(function, 1, 7)?,
            })
        };
        parse().ok_or_else(|| BadAddress(text.into()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            domain,
            bus,
            device,
            function,
        } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let full = |text: &str| text.parse::<Address>().ok().map(|found| found.to_string());
        assert_eq!(full("0000:03:00.0").as_deref(), Some("0000:03:00.0"));
        assert_eq!(full("03:1F.7").as_deref(), Some("0000:03:1f.7"));
        assert_eq!(full("10000:e1:00.0").as_deref(), Some("10000:e1:00.0"));
        for text in [
            "",
            "eth0",
            "3:00.0",
            "03:20.0",
            "03:00.8",
            "03:00:0",
            "03.00.0",
            "0000:03:00.0:",
            "../..:00:00.0",
            "0000:+3:00.0",
            "00:03:00.0",
            "03:00.",
            ":::",
            "0000:03:00.0/..",
            "a:b:c.d",
        ] {
            assert_eq!(full(text), None, "{text}");
        }
    }
}
