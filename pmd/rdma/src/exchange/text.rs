//! Hexadecimal fields of fixed width, as the tools print them.

use super::ExchangeError;

/// A message of fields of fixed width, read from the front.
pub(super) struct Fields<'a> {
    message: &'a [u8],
    rest: &'a [u8],
    step: &'static str,
    expected: &'static str,
}

impl<'a> Fields<'a> {
    pub(super) fn new(message: &'a [u8], step: &'static str, expected: &'static str) -> Self {
        Self {
            message,
            rest: message,
            step,
            expected,
        }
    }

    /// A number of exactly so many hexadecimal digits, 16 at most.
    pub(super) fn hex(&mut self, digits: usize) -> Result<u64, ExchangeError> {
        let (field, rest) = self
            .rest
            .split_at_checked(digits)
            .ok_or_else(|| self.error())?;
        let mut number = 0;
        for &digit in field {
            let digit = char::from(digit).to_digit(16).ok_or_else(|| self.error())?;
            number = number << 4 | u64::from(digit);
        }
        self.rest = rest;
        Ok(number)
    }

    /// A byte that has to be there.
    pub(super) fn mark(&mut self, mark: u8) -> Result<(), ExchangeError> {
        match self.rest.split_first() {
            Some((&first, rest)) if first == mark => {
                self.rest = rest;
                Ok(())
            }
            _ => Err(self.error()),
        }
    }

    /// The message is not the expected one.
    pub(super) fn error(&self) -> ExchangeError {
        ExchangeError::malformed(self.step, self.message, self.expected)
    }
}
