//! `run`: the daemon. Samples until it is told to stop, and sends a window each interval.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::cli::RunArgs;
use crate::config::{Compression, Config, Fault};
use crate::deliver::backoff::Backoff;
use crate::deliver::exporter::{Delivery, DeliveryConfig, Sender};
use crate::deliver::grpc::GrpcConfig;
use crate::deliver::queue::{self, Queue};
use crate::exit::Exit;
use crate::otlp::{split, validate};
use crate::pipeline::pause::Pause;
use crate::pipeline::profiler::{Options, Profiler};
use crate::pipeline::stop::Stop;
use crate::process::stat;
use crate::sampler::loader::LoadError;
use crate::say;

/// One turn of the loop at most: the answer to a signal.
const TURN: Duration = Duration::from_millis(100);
/// How soon the first window is sent: who has just started the exporter wants to see something.
const FIRST_WINDOW: Duration = Duration::from_millis(250);
/// How long the last windows may take to be delivered when the exporter ends.
const FLUSH_DEADLINE: Duration = Duration::from_secs(5);
/// Growth of the pause between tries, and its jitter, as in the Collector.
const MULTIPLIER: f64 = 1.5;
const JITTER: f64 = 0.5;

/// Runs the daemon.
pub fn run(arguments: &RunArgs) -> Exit {
    let config = match arguments.configuration() {
        Ok(config) => config,
        Err(faults) => return refuse(&faults),
    };
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    match daemon(&config) {
        Ok(()) => Exit::Success,
        Err(error) => {
            say!("run: {error:#}");
            match error.downcast_ref() {
                Some(LoadError::NotPermitted { .. }) => Exit::MissingPrivilege,
                _ => Exit::Failed,
            }
        }
    }
}

fn refuse(faults: &[Fault]) -> Exit {
    for fault in faults {
        say!("{fault}");
    }
    Exit::Failed
}

fn daemon(config: &Config) -> Result<()> {
    let stop = Stop::install().context("listening to signals")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("deliver")
        .enable_all()
        .build()
        .context("starting the delivery")?;
    let queue = Queue::new(config.export.sending_queue.queue_size, queue::DEFAULT_MAX_BYTES);
    let (delivery, pause) = {
        let _inside = runtime.enter();
        let pause = Pause::listen().context("listening to signals")?;
        (Delivery::spawn(&delivery_config(config)?, queue)?, pause)
    };
    let options =
        Options { rate: config.sampling.rate, pids: config.processes.pids.clone(), only_wanted: false };
    for pid in options.pids.iter().filter(|pid| stat::read(**pid).is_err()) {
        tracing::warn!(
            pid,
            "no such process now: give the pid of one that runs, as this pid namespace numbers it"
        );
    }
    let mut profiler = Profiler::start(&options)?;
    tracing::info!(
        rate = config.sampling.rate,
        endpoint = %config.export.endpoint,
        python_processes = profiler.python_count(),
        "sampling"
    );
    let sender = delivery.sender();
    let interval = config.export.interval;
    let mut next = Instant::now() + FIRST_WINDOW.min(interval);
    let mut paused = false;
    while !stop.is_requested() {
        if paused != pause.is_requested() {
            paused = !paused;
            profiler.sample(!paused)?;
            tracing::info!("{}", if paused { "paused; SIGUSR2 goes on" } else { "sampling again" });
        }
        profiler.poll(TURN.min(next.saturating_duration_since(Instant::now())));
        if Instant::now() >= next {
            send(&mut profiler, &sender);
            next += interval;
            if next < Instant::now() {
                // The machine slept, or was too busy for a whole interval: no burst of empty windows.
                next = Instant::now() + interval;
            }
        }
    }
    profiler.stop();
    send(&mut profiler, &sender);
    let delivered = runtime.block_on(delivery.flush(FLUSH_DEADLINE));
    let counts = profiler.counts();
    let taken = counts.iter().find(|(name, _)| *name == "samples").map_or(0, |(_, n)| *n);
    tracing::info!(
        samples_taken = taken,
        samples_aggregated = profiler.counters.aggregated,
        samples_accepted = delivered.samples_accepted,
        samples_rejected = delivered.samples_rejected,
        samples_dropped = delivered.samples_dropped_queue_full
            + delivered.samples_dropped_expired
            + delivered.samples_dropped_shutdown,
        retries = delivered.retries,
        "stopped"
    );
    for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        tracing::debug!(name, count, "counter");
    }
    Ok(())
}

fn delivery_config(config: &Config) -> Result<DeliveryConfig> {
    let export = &config.export;
    let retry = &export.retry_on_failure;
    let backoff = if retry.enabled {
        Backoff::new(retry.initial_interval, retry.max_interval, MULTIPLIER, JITTER, retry.max_elapsed_time)
            .context("retry_on_failure")?
    } else {
        Backoff::never()
    };
    let headers =
        export.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
    Ok(DeliveryConfig {
        grpc: GrpcConfig {
            endpoint: export.endpoint.clone(),
            timeout: export.timeout,
            gzip: export.compression == Compression::Gzip,
            headers,
        },
        backoff,
    })
}

/// Takes the window and queues its requests; an empty window is not sent.
fn send(profiler: &mut Profiler, sender: &Sender) {
    let window = profiler.take_window();
    if window.processes.is_empty() {
        return;
    }
    for request in split::requests(&window, split::DEFAULT_MAX_BYTES) {
        if cfg!(debug_assertions) {
            for finding in validate::validate_own(&request) {
                tracing::error!("own request breaks a rule: {finding}");
            }
        }
        sender.push(&request);
    }
}
