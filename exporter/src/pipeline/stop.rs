//! Ctrl-C and SIGTERM: the first one asks the profiler to stop, later stages end when their input
//! closes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};

/// Whether the user or the service manager wants the program to stop.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens to SIGINT and SIGTERM on a thread of its own.
    ///
    /// # Errors
    /// When the thread or the signal handlers cannot be set up.
    pub fn install() -> io::Result<Self> {
        let stop = Self::default();
        let flag = stop.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            runtime.block_on(async {
                signalled().await;
                flag.request();
            });
        })?;
        Ok(stop)
    }

    /// Asks to stop.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether to stop.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Waits for SIGINT or SIGTERM; without end where they cannot be heard.
pub async fn signalled() {
    let streams = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let (Ok(mut interrupt), Ok(mut terminate)) = streams else {
        tracing::warn!("signals cannot be heard; end the program with SIGKILL");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
