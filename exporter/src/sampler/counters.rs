//! The kernel side's counters, summed over CPUs.

use aya::maps::{MapData, PerCpuArray};
use exporter_common::counter;

/// Reads every counter: (name, value).
///
/// # Errors
/// When the map cannot be read.
pub fn read(map: &PerCpuArray<MapData, u64>) -> Result<Vec<(&'static str, u64)>, aya::maps::MapError> {
    (0..counter::COUNT).map(|index| Ok((counter::as_str(index), map.get(&index, 0)?.iter().sum()))).collect()
}
