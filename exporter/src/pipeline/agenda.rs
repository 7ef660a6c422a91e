//! When which process is looked at again. Looks become rarer as a process ages, so what they cost is
//! bounded by the number of processes, and what happens late is found late in proportion.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A process is looked at again after its age divided by this: what it does at an age T is seen within
/// T / 4.
const AGE_PART: u32 = 4;
/// The shortest wait while an interpreter is starting: it runs its first frame some 10 ms after exec.
const STARTING: Duration = Duration::from_millis(1);
/// The shortest wait for code that may be loaded.
const QUIET: Duration = Duration::from_millis(5);
/// The shortest wait for a further interpreter in a Python process, which only is told.
const PYTHON: Duration = Duration::from_secs(1);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(10);
/// Looks at quiet processes a second. One costs some 50 µs, so all of them 1 % of a core; with more
/// than 2,000 old processes the waits become longer than [`LONGEST`].
const QUIET_RATE: u32 = 200;

/// Why a process is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its interpreter is starting.
    Starting,
    /// It may load one.
    Quiet,
    /// It has one, and may load another.
    Python,
}

/// The plan.
#[derive(Debug)]
pub struct Agenda {
    /// Those that wake the profiler.
    starting: BTreeSet<(Instant, u32)>,
    /// Those that are looked at when it is awake.
    quiet: BTreeSet<(Instant, u32)>,
    /// Looks left in the second that began then.
    budget: (Instant, u32),
}

/// A process's place in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    at: Instant,
    wakes: bool,
}

impl Agenda {
    /// An empty one.
    pub fn new(now: Instant) -> Self {
        Self { starting: BTreeSet::new(), quiet: BTreeSet::new(), budget: (now, QUIET_RATE) }
    }

    /// Plans a look at a process of this age.
    pub fn plan(&mut self, pid: u32, reason: Reason, age: Duration, now: Instant) -> Place {
        let shortest = match reason {
            Reason::Starting => STARTING,
            Reason::Quiet => QUIET,
            Reason::Python => PYTHON,
        };
        let wait = (age / AGE_PART).clamp(shortest, LONGEST);
        // What waits long need not wake anybody.
        self.plan_at(pid, now + wait, reason == Reason::Starting && wait < PYTHON)
    }

    /// Plans a look at that moment.
    pub fn plan_at(&mut self, pid: u32, at: Instant, wakes: bool) -> Place {
        if wakes {
            self.starting.insert((at, pid))
        } else {
            self.quiet.insert((at, pid))
        };
        Place { at, wakes }
    }

    /// Takes a look out of the plan.
    pub fn drop_place(&mut self, pid: u32, place: Place) {
        let set = if place.wakes { &mut self.starting } else { &mut self.quiet };
        set.remove(&(place.at, pid));
    }

    /// The next moment for which it is worth to wake up.
    pub fn next(&self) -> Option<Instant> {
        self.starting.first().map(|(at, _)| *at)
    }

    /// Takes a process whose look is due.
    pub fn due(&mut self, now: Instant) -> Option<u32> {
        if self.starting.first().is_some_and(|(at, _)| *at <= now) {
            return self.starting.pop_first().map(|(_, pid)| pid);
        }
        if now.duration_since(self.budget.0) >= Duration::from_secs(1) {
            self.budget = (now, QUIET_RATE);
        }
        if self.budget.1 > 0 && self.quiet.first().is_some_and(|(at, _)| *at <= now) {
            self.budget.1 -= 1;
            return self.quiet.pop_first().map(|(_, pid)| pid);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn waits_grow_with_age_between_their_bounds() {
        let now = Instant::now();
        let mut agenda = Agenda::new(now);
        let mut wait = |reason, age| agenda.plan(1, reason, age, now).at - now;
        assert_eq!(wait(Reason::Starting, ms(0)), ms(1));
        assert_eq!(wait(Reason::Starting, ms(40)), ms(10));
        assert_eq!(wait(Reason::Quiet, ms(0)), ms(5));
        assert_eq!(wait(Reason::Quiet, ms(12_000)), ms(3_000));
        assert_eq!(wait(Reason::Quiet, ms(1 << 40)), ms(10_000));
        assert_eq!(wait(Reason::Python, ms(0)), ms(1_000));
    }

    #[test]
    fn due_ones_come_once_and_starting_ones_first() {
        let now = Instant::now();
        let mut agenda = Agenda::new(now);
        agenda.plan(1, Reason::Quiet, ms(0), now);
        agenda.plan(2, Reason::Starting, ms(100), now);
        let place = agenda.plan(3, Reason::Starting, ms(0), now);
        assert_eq!(agenda.due(now), None);
        agenda.drop_place(3, place);
        assert_eq!(agenda.next(), Some(now + ms(25)));
        let later = now + ms(30);
        assert_eq!([agenda.due(later), agenda.due(later), agenda.due(later)], [Some(2), Some(1), None]);
        assert_eq!(agenda.next(), None);
    }

    #[test]
    fn quiet_looks_have_a_rate() {
        let now = Instant::now();
        let mut agenda = Agenda::new(now);
        for pid in 0..2 * QUIET_RATE {
            agenda.plan_at(pid, now, false);
        }
        let count = |agenda: &mut Agenda, at| std::iter::from_fn(|| agenda.due(at)).count();
        assert_eq!(count(&mut agenda, now), QUIET_RATE as usize);
        assert_eq!(count(&mut agenda, now + ms(999)), 0);
        assert_eq!(count(&mut agenda, now + ms(1_000)), QUIET_RATE as usize);
    }
}
