//! SIGUSR1 pauses sampling, SIGUSR2 goes on with it: for whoever wants to know what profiling costs, or
//! wants none of it for a while, without a restart.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};

/// Whether sampling is paused.
#[derive(Clone, Debug, Default)]
pub struct Pause(Arc<AtomicBool>);

impl Pause {
    /// Listens on the runtime that is entered.
    ///
    /// # Errors
    /// When the signals cannot be heard.
    pub fn listen() -> std::io::Result<Self> {
        let pause = Self::default();
        let flag = Arc::clone(&pause.0);
        let mut first = signal(SignalKind::user_defined1())?;
        let mut second = signal(SignalKind::user_defined2())?;
        tokio::spawn(async move {
            loop {
                let paused = tokio::select! {
                    heard = first.recv() => heard.map(|()| true),
                    heard = second.recv() => heard.map(|()| false),
                };
                let Some(paused) = paused else { return };
                flag.store(paused, Ordering::Relaxed);
            }
        });
        Ok(pause)
    }

    /// Whether to pause.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    async fn becomes(pause: &Pause, wanted: bool) {
        let patience = Duration::from_secs(30);
        let waited = tokio::time::timeout(patience, async {
            while pause.is_requested() != wanted {
                tokio::task::yield_now().await;
            }
        });
        assert!(waited.await.is_ok(), "paused: {}, wanted {wanted}", pause.is_requested());
    }

    #[tokio::test]
    async fn the_two_signals_pause_and_go_on() {
        let pause = Pause::listen().unwrap();
        let signal = |name: &str| {
            let own = std::process::id().to_string();
            assert!(std::process::Command::new("kill").args([name, &own]).status().unwrap().success());
        };
        assert!(!pause.is_requested());
        signal("-USR1");
        becomes(&pause, true).await;
        signal("-USR2");
        becomes(&pause, false).await;
    }
}
