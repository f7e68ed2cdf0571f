//! Exclusive use of a device within this process.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Keys of the devices in use; a static.
pub(crate) struct Claims<K>(Mutex<BTreeSet<K>>);

impl<K: Copy + Ord> Claims<K> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeSet::new()))
    }

    /// Claims a device; `None` if it is in use.
    pub(crate) fn take(&'static self, key: K) -> Option<Claim<K>> {
        let mut claimed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        claimed.insert(key).then(|| Claim { claims: self, key })
    }
}

/// Exclusive use of a device, until dropped. Drop it before another device can have the same key.
pub(crate) struct Claim<K: Copy + Ord + 'static> {
    claims: &'static Claims<K>,
    key: K,
}

impl<K: Copy + Ord> Drop for Claim<K> {
    fn drop(&mut self) {
        let mut claimed = self.claims.0.lock().unwrap_or_else(PoisonError::into_inner);
        claimed.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_is_claimed_again_only_when_it_is_let_go() {
        static CLAIMS: Claims<u8> = Claims::new();
        let one = CLAIMS.take(1);
        assert!(one.is_some() && CLAIMS.take(1).is_none());
        // The refused claim has not released it.
        assert!(CLAIMS.take(1).is_none() && CLAIMS.take(2).is_some());
        drop(one);
        assert!(CLAIMS.take(1).is_some());
    }
}
