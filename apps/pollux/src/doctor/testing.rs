//! Test support: runs checks on a synthetic machine.

use super::Examine;
use super::finding::{Finding, Level};
use super::machine::Machine;
use pollux_machine::testing::Tree;

/// A check, and the files that it reads.
pub(super) struct Case {
    examine: Examine,
    tree: Tree,
}

impl Case {
    pub(super) fn of(examine: Examine) -> Self {
        Self {
            examine,
            tree: Tree::new(),
        }
    }

    pub(super) fn file(self, path: &str, text: &str) -> Self {
        self.tree.file(path, text);
        self
    }

    /// Adds a file, after which there is one finding, of that level. A warning or worse must have a
    /// remedy.
    #[track_caller]
    pub(super) fn is(self, text: &str, path: &str, level: Level) {
        let finding = self.file(path, text).finding();
        assert_eq!(finding.level, level, "{finding:?}");
        match level {
            Level::Ok => assert_eq!(finding.remedy, None, "{finding:?}"),
            Level::Note => {}
            Level::Warn | Level::Bad => assert!(finding.remedy.is_some(), "{finding:?}"),
        }
    }

    /// The one finding.
    #[track_caller]
    pub(super) fn finding(self) -> Finding {
        let mut findings = self.findings();
        assert_eq!(findings.len(), 1, "{findings:?}");
        findings.remove(0)
    }

    pub(super) fn findings(&self) -> Vec<Finding> {
        findings(self.examine, &self.tree)
    }
}

pub(super) fn findings(examine: Examine, tree: &Tree) -> Vec<Finding> {
    examine(&Machine::new(tree.sys(), None))
}

pub(super) fn levels(examine: Examine, tree: &Tree) -> Vec<Level> {
    findings(examine, tree)
        .iter()
        .map(|finding| finding.level)
        .collect()
}
