//! Capture filter on UDP destination ports.

use std::fmt;

use pollux_pmd::Cause;
use pollux_pmd::mempool::Mbuf;
use pollux_pmd::net::{ParseOptions, Parsed, classify};

/// Filter: UDP datagrams to some ports.
#[derive(Clone)]
pub(super) struct Filter {
    text: String,
    /// One bit for each UDP port.
    ports: Box<[u64; 1024]>,
}

impl Filter {
    /// Parses `udp.dst=9000,9500-9510`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let form = "udp.dst=PORTS, as in udp.dst=9000,9500-9510";
        let list = text.strip_prefix("udp.dst=").ok_or(form)?;
        let mut ports = Box::new([0; 1024]);
        for part in list.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Ok(first), Ok(last)) = (first.parse::<u16>(), last.parse::<u16>()) else {
                return Err(format!("`{part}` is no port or range; {form}"));
            };
            if first > last {
                return Err(format!("`{part}` runs backwards"));
            }
            for port in first..=last {
                ports[usize::from(port / 64)] |= 1 << (port % 64);
            }
        }
        Ok(Self {
            text: text.into(),
            ports,
        })
    }

    /// Union of several filters; without filters, everything is accepted.
    pub(super) fn any(filters: &[Self]) -> Option<Self> {
        let mut filters = filters.iter().cloned();
        let first = filters.next()?;
        Some(filters.fold(first, |mut sum, filter| {
            sum.text = format!("{} or {}", sum.text, filter.text);
            for (sum, bits) in sum.ports.iter_mut().zip(filter.ports.iter()) {
                *sum |= bits;
            }
            sum
        }))
    }

    /// Accepts a frame, or returns the drop cause. Checksums are not verified: a capture includes
    /// frames with wrong ones.
    #[inline]
    pub(super) fn judge(&self, frame: &Mbuf) -> Result<(), Cause> {
        match classify(frame, &ParseOptions::TRUSTED)? {
            Parsed::Udp(udp) => {
                let port = udp.dst_port;
                let wanted = self.ports[usize::from(port / 64)] & 1 << (port % 64) != 0;
                if wanted {
                    Ok(())
                } else {
                    Err(Cause::DemuxMiss)
                }
            }
            Parsed::Arp | Parsed::IcmpEcho | Parsed::Other => Err(Cause::NotForUs),
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ports(filter: &Filter) -> Vec<u16> {
        let set = |port: &u16| filter.ports[usize::from(port / 64)] & 1 << (port % 64) != 0;
        (0..=u16::MAX).filter(set).collect()
    }

    #[test]
    fn ports_and_ranges() {
        let parse = |text| Filter::parse(text).unwrap();
        assert_eq!(ports(&parse("udp.dst=9000")), [9000]);
        assert_eq!(
            ports(&parse("udp.dst=0,63-65,65535")),
            [0, 63, 64, 65, 65535]
        );
        assert_eq!(ports(&parse("udp.dst=0-65535")).len(), 65_536);
        let both = Filter::any(&[parse("udp.dst=1"), parse("udp.dst=3")]).unwrap();
        assert_eq!(
            (ports(&both), both.to_string().as_str()),
            (vec![1, 3], "udp.dst=1 or udp.dst=3")
        );
        assert!(Filter::any(&[]).is_none());
    }

    #[test]
    fn nonsense_is_told() {
        for text in [
            "",
            "udp.dst=",
            "udp.dst=x",
            "udp.dst=1-",
            "udp.dst=65536",
            "udp.dst=2-1",
            "tcp.dst=1",
        ] {
            assert!(Filter::parse(text).is_err(), "{text}");
        }
    }
}
