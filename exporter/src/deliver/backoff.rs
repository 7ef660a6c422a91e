//! How long to wait before trying again: exponential with jitter, as a pure value.

use std::time::Duration;

/// A checked policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    initial: Duration,
    max_interval: Duration,
    multiplier: f64,
    randomization: f64,
    max_elapsed: Duration,
}

/// A policy that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackoffError {
    /// The first wait is zero: a refused request would be sent without end.
    #[error("initial_interval must be above zero")]
    InitialZero,
    /// The ceiling is below the first wait.
    #[error("max_interval must be at least initial_interval")]
    MaxBelowInitial,
    /// Waits would shrink.
    #[error("multiplier must be at least 1")]
    Multiplier,
    /// Jitter outside of what can be subtracted.
    #[error("randomization_factor must be from 0 to 1")]
    Randomization,
}

impl Default for Backoff {
    /// The Collector's defaults: 5 s, × 1.5, ± 50 %, at most 30 s, given up after 300 s.
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(5),
            max_interval: Duration::from_secs(30),
            multiplier: 1.5,
            randomization: 0.5,
            max_elapsed: Duration::from_secs(300),
        }
    }
}

impl Backoff {
    /// Never tries again.
    pub fn never() -> Self {
        Self { max_elapsed: Duration::from_nanos(1), ..Self::default() }
    }

    /// A policy; `max_elapsed` of zero means to retry without end, as in the Collector.
    pub fn new(
        initial: Duration,
        max_interval: Duration,
        multiplier: f64,
        randomization: f64,
        max_elapsed: Duration,
    ) -> Result<Self, BackoffError> {
        if initial.is_zero() {
            return Err(BackoffError::InitialZero);
        }
        if max_interval < initial {
            return Err(BackoffError::MaxBelowInitial);
        }
        if !multiplier.is_finite() || multiplier < 1.0 {
            return Err(BackoffError::Multiplier);
        }
        if !(0.0..=1.0).contains(&randomization) {
            return Err(BackoffError::Randomization);
        }
        Ok(Self { initial, max_interval, multiplier, randomization, max_elapsed })
    }

    /// Wait before retry number `attempt` (0 is the first), `elapsed` after the first try. `random` is
    /// from [0, 1); `asked` is what the server wants at least. None: give up.
    pub fn delay(
        &self,
        attempt: u32,
        elapsed: Duration,
        random: f64,
        asked: Option<Duration>,
    ) -> Option<Duration> {
        // Above 64 doublings every wait is at its ceiling; the bound keeps the power finite.
        let factor = self.multiplier.powi(i32::try_from(attempt.min(64)).unwrap_or(64));
        let seconds = (self.initial.as_secs_f64() * factor).min(self.max_interval.as_secs_f64());
        let jitter = 1.0 + self.randomization * (2.0 * random.clamp(0.0, 1.0) - 1.0);
        let wait = Duration::try_from_secs_f64(seconds * jitter).unwrap_or(self.max_interval);
        let wait = wait.max(asked.unwrap_or_default());
        let in_time = self.max_elapsed.is_zero() || elapsed.saturating_add(wait) <= self.max_elapsed;
        in_time.then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_grow_to_the_ceiling_within_the_jitter() {
        let backoff = Backoff::new(SECOND, 10 * SECOND, 2.0, 0.5, Duration::ZERO).unwrap();
        for (attempt, middle) in [(0, 1.0), (1, 2.0), (2, 4.0), (3, 8.0), (4, 10.0), (u32::MAX, 10.0)] {
            for (random, factor) in [(0.0, 0.5), (0.5, 1.0), (1.0, 1.5)] {
                let wait = backoff.delay(attempt, Duration::ZERO, random, None).unwrap();
                assert_eq!(wait, Duration::from_secs_f64(middle * factor), "{attempt} {random}");
            }
        }
    }

    #[test]
    fn the_server_may_ask_for_longer_but_not_for_shorter() {
        let backoff = Backoff::default();
        let wait = |asked| backoff.delay(0, Duration::ZERO, 0.5, asked);
        assert_eq!(wait(Some(60 * SECOND)), Some(60 * SECOND));
        assert_eq!(wait(Some(SECOND)), Some(5 * SECOND));
    }

    #[test]
    fn it_gives_up_when_the_wait_ends_too_late() {
        let backoff = Backoff::default();
        assert_eq!(backoff.delay(0, 295 * SECOND, 0.5, None), Some(5 * SECOND));
        assert_eq!(backoff.delay(0, 296 * SECOND, 0.5, None), None);
        assert_eq!(backoff.delay(0, Duration::ZERO, 0.5, Some(301 * SECOND)), None);
    }

    #[test]
    fn senseless_policies_are_refused() {
        let new =
            |initial, max, multiplier, random| Backoff::new(initial, max, multiplier, random, SECOND).err();
        assert_eq!(new(Duration::ZERO, SECOND, 2.0, 0.5), Some(BackoffError::InitialZero));
        assert_eq!(new(2 * SECOND, SECOND, 2.0, 0.5), Some(BackoffError::MaxBelowInitial));
        assert_eq!(new(SECOND, SECOND, f64::NAN, 0.5), Some(BackoffError::Multiplier));
        assert_eq!(new(SECOND, SECOND, 2.0, 1.5), Some(BackoffError::Randomization));
    }
}
