//! `sampling`: how often, and how much of each stack.

use std::ops::RangeInclusive;
use std::str::FromStr;

use super::validate::{Reader, Section, number};

/// Rates that are taken, in samples a second on each CPU. Above 1000 the kernel's own limits begin to
/// bite (`perf_event_max_sample_rate`) and a profiler becomes a load.
pub const RATE_HZ: RangeInclusive<u32> = 1..=1000;

/// The section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Samples a second on each CPU.
    pub rate: u32,
    /// How much of native stacks to take.
    pub native: Native,
}

/// How much of native stacks to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Native {
    /// Python frames only.
    None,
}

impl Native {
    /// The word for it in files and flags.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
        }
    }
}

impl FromStr for Native {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "leaf" | "all" => Err(format!("`{text}` is not built yet: native stacks come later; write none")),
            _ => Err(format!("`{text}` is not known; write none")),
        }
    }
}

/// Reads the section over `into`.
pub(super) fn read(reader: &mut Reader<'_>, section: &Section<'_>, into: &mut Sampling) {
    reader.value(
        section,
        "rate",
        &mut into.rate,
        "a whole number from 1 to 1000 (samples a second)",
        |text| number(text, &RATE_HZ),
    );
    reader.value(section, "native", &mut into.native, "none", str::parse);
}
