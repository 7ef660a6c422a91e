//! How an interpreter came into its process, in words for a person.

use std::fmt;

/// Where the interpreter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildKind {
    /// In the executable.
    Static,
    /// In a library.
    Shared,
}

/// How the interpreter was built into the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    /// Where the interpreter is.
    pub kind: BuildKind,
    /// Whether another program than `python` holds it.
    pub is_embedded: bool,
    /// Whether its file has no `.symtab`.
    pub is_stripped: bool,
    /// Whether its dynamic symbols name it.
    pub is_exported: bool,
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            BuildKind::Static => "static",
            BuildKind::Shared => "shared",
        })?;
        let marks = [
            (self.is_embedded, ", embedded"),
            (self.is_stripped, ", stripped"),
            (!self.is_exported, ", nothing exported"),
        ];
        marks.iter().filter(|(is_so, _)| *is_so).try_for_each(|(_, text)| f.write_str(text))
    }
}

/// Where the layout comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutSource {
    /// The interpreter's own `_Py_DebugOffsets` (3.13 and later).
    DebugOffsets,
    /// The table of its version.
    Table,
    /// The table of the one version that fits the live process: nothing names the version.
    TableByTrial,
}

impl fmt::Display for LayoutSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DebugOffsets => "its own debug offsets",
            Self::Table => "the table of its version",
            Self::TableByTrial => "the table that fits it",
        })
    }
}

/// What the profile of a process lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Code objects have plain names only (before 3.11).
    QualifiedNames,
    /// Neither a thread-local variable nor a key leads to the thread state.
    Route,
    /// A further interpreter in the process is not walked.
    OtherRuntimes,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::QualifiedNames => "qualified names (Python has them from 3.11 on)",
            Self::Route => "threads beyond the first 64 of the interpreter",
            Self::OtherRuntimes => "frames of the further interpreter in it",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let mut build =
            Build { kind: BuildKind::Shared, is_embedded: false, is_stripped: false, is_exported: true };
        assert_eq!(build.to_string(), "shared");
        build.is_stripped = true;
        build.is_embedded = true;
        build.kind = BuildKind::Static;
        build.is_exported = false;
        assert_eq!(build.to_string(), "static, embedded, stripped, nothing exported");
    }
}
