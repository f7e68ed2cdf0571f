//! Queue on a ring of either kind.

/// A queue on a split ring, or on a packed one.
pub(super) enum Either<S, P> {
    Split(S),
    Packed(P),
}

/// The same expression for both.
macro_rules! either {
    ($queue:expr, $name:ident => $result:expr) => {
        match $queue {
            Either::Split($name) => $result,
            Either::Packed($name) => $result,
        }
    };
}
pub(super) use either;
