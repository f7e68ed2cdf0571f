//! Errors of outputs before a run begins. What goes wrong later is counted.

/// Why an output cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The spec is wrong.
    #[error("output spec `{spec}`: {what}")]
    Spec {
        /// The whole spec.
        spec: String,
        /// The fault, and the remedy.
        what: String,
    },
    /// No output is of this kind.
    #[error("output spec `{spec}`: there is no output `{kind}`; there are: {known}")]
    UnknownKind {
        /// The whole spec.
        spec: String,
        /// The part in front of the colon.
        kind: String,
        /// The kinds.
        known: String,
    },
    /// The kind exists, in other builds.
    #[error(
        "output spec `{spec}`: outputs of kind {kind} are not built in: cargo build --features \
         {feature}"
    )]
    NotBuiltIn {
        /// The whole spec.
        spec: String,
        /// The kind.
        kind: &'static str,
        /// The feature that builds it in.
        feature: &'static str,
    },
    /// The spec is well-formed, but wrong for what it names: a file, a name, the other side.
    #[error("output `{spec}`: {what}")]
    Wrong {
        /// The whole spec.
        spec: String,
        /// The fault, and the remedy.
        what: String,
    },
    /// The output cannot be opened, now.
    #[error("output `{spec}`: {what}")]
    Open {
        /// The whole spec.
        spec: String,
        /// What failed, and why.
        what: String,
    },
}

impl OutputError {
    /// Whether the request is wrong, so that it fails in the same way until it is corrected: status 2.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Open { .. })
    }
}
