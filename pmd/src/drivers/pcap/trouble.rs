//! What went wrong in a queue, for the port to tell.

use std::sync::{Arc, Mutex, PoisonError};

/// What went wrong in a queue, for `stop` to tell; the first report stays.
#[derive(Clone, Default)]
pub(super) struct Trouble(Arc<Mutex<Option<String>>>);

impl Trouble {
    pub(super) fn report(&self, what: String) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(what);
    }

    pub(super) fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
