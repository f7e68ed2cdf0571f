//! Numbers of bursts in the names of files.

use pollux_na62::l0::L0Record;

/// The burst that a file began with. Bursts are numbered from 1 again after the last one; the names of
/// files count on, so that a run never names a file twice.
#[derive(Clone, Copy, Debug)]
pub struct BurstNumber {
    burst: u16,
    in_name: u32,
}

impl BurstNumber {
    /// The first burst.
    pub const FIRST: Self = Self {
        burst: 1,
        in_name: 1,
    };

    /// Number in the name of the file.
    pub const fn in_name(self) -> u32 {
        self.in_name
    }

    /// Whether an event of `burst` begins another file. Where boards disagree, events of the previous
    /// burst may arrive in between: they stay in the present file.
    pub fn turns_at(self, burst: u16) -> bool {
        L0Record::is_later_burst(burst, self.burst)
    }

    /// A later burst.
    #[must_use]
    pub fn turned(self, burst: u16) -> Self {
        let last = u32::from(L0Record::LAST_BURST);
        let ahead = (u32::from(burst) + last - u32::from(self.burst)) % last;
        Self {
            burst,
            in_name: self.in_name + ahead,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_on_where_bursts_begin_again() {
        let last = L0Record::LAST_BURST;
        let mut number = BurstNumber::FIRST;
        let mut names = Vec::new();
        for burst in [2, 3, 8000, 16_000, last, 1, 2, 8000, 16_000, 5] {
            assert!(number.turns_at(burst) && !number.turned(burst).turns_at(burst));
            number = number.turned(burst);
            names.push(number.in_name());
        }
        let last = u32::from(last);
        assert_eq!(names[..5], [2, 3, 8000, 16_000, last]);
        let second = [last + 1, last + 2, last + 8000, last + 16_000, 2 * last + 5];
        assert_eq!(names[5..], second);
    }
}
