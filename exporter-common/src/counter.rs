//! Every kernel-side count: index in the counter map, and name.

/// Samples taken of processes the exporter may see.
pub const SAMPLES: u32 = 0;
/// Samples that found no room in the ring buffer.
pub const SAMPLES_DROPPED: u32 = 1;
/// Code objects named at first sight.
pub const CODE_SENT: u32 = 2;
/// Code objects that found no room in the ring buffer.
pub const CODE_DROPPED: u32 = 3;
/// Code objects left for later because the sample's budget was spent.
pub const CODE_OVER_BUDGET: u32 = 4;
/// Process events that found no room.
pub const EVENTS_DROPPED: u32 = 5;
/// Samples of processes outside the exporter's pid namespace.
pub const OUTSIDE_NAMESPACE: u32 = 6;
/// Samples on a CPU beyond the scratch array.
pub const NO_SCRATCH: u32 = 7;
/// First of the walk statuses; see [`crate::walk_status`].
pub const WALK_STATUS: u32 = 8;
/// How many there are.
pub const COUNT: u32 = WALK_STATUS + crate::walk_status::COUNT as u32;

/// Name of a counter.
pub const fn as_str(counter: u32) -> &'static str {
    match counter {
        SAMPLES => "samples",
        SAMPLES_DROPPED => "samples_dropped_ring_full",
        CODE_SENT => "code_sent",
        CODE_DROPPED => "code_dropped_ring_full",
        CODE_OVER_BUDGET => "code_over_budget",
        EVENTS_DROPPED => "process_events_dropped_ring_full",
        OUTSIDE_NAMESPACE => "samples_outside_pid_namespace",
        NO_SCRATCH => "samples_without_scratch",
        _ if counter < COUNT => crate::walk_status::as_str((counter - WALK_STATUS) as u8),
        _ => "unknown_counter",
    }
}
