//! VF token: the shared secret of a virtual function and its physical function, when programs use
//! both.

use std::fmt;
use std::str::FromStr;

/// A UUID that is shared by the program of a physical function and those of its virtual functions:
/// without it, VFIO does not hand out the one while a program uses the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VfToken(pub(super) [u8; 16]);

/// Error: text that is not a UUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a UUID: 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12, as uuidgen makes it")]
pub struct BadToken;

impl FromStr for VfToken {
    type Err = BadToken;

    fn from_str(text: &str) -> Result<Self, BadToken> {
        // RFC 9562 section 4.
        if !text.split('-').map(str::len).eq([8, 4, 4, 4, 12]) {
            return Err(BadToken);
        }
        let digits = text.bytes().filter(|&byte| byte != b'-');
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let digits: Option<Vec<u8>> = digits.map(digit).collect();
        let digits = digits.ok_or(BadToken)?;
        let mut token = [0; 16];
        let (pairs, _) = digits.as_chunks();
        for (byte, [high, low]) in token.iter_mut().zip(pairs) {
            *byte = high << 4 | low;
        }
        Ok(Self(token))
    }
}

impl fmt::Display for VfToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            let dash = if matches!(i, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tokens_are_uuids() {
        let text = "0123abCD-4567-89ab-cdef-0011223344ff";
        let token: VfToken = text.parse().unwrap();
        assert_eq!(token.to_string(), text.to_lowercase());
        for bad in [
            "",
            "0123abcd456789abcdef0011223344ff",
            "0123abcd-4567-89ab-cdef-0011223344fg",
            "0123abcd-4567-89ab-cdef-0011223344f",
            "0123abcd-4567-89ab-cdef-0011223344\u{e9}",
            "0123abcd-4567-89ab-cdef-0011223344ff-",
        ] {
            assert_eq!(bad.parse::<VfToken>(), Err(BadToken), "{bad}");
        }
    }
}
