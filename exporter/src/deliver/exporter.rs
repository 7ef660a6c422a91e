//! The exporter task: takes requests from the queue in order, sends each until it is taken, refused or
//! too old, and counts what became of it.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use prost::Message as _;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::deliver::backoff::Backoff;
use crate::deliver::grpc::{EndpointError, GrpcClient, GrpcConfig};
use crate::deliver::outcome::Outcome;
use crate::deliver::queue::{Queue, Queued};
use crate::otlp::halve::halve;
use crate::otlp::read::sample_count;

/// One message of a kind at most this often.
const WARN_INTERVAL: Duration = Duration::from_secs(60);

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What became of requests and samples, since the start.
        #[derive(Debug, Default)]
        pub struct Counters { $($(#[$doc])* pub $name: AtomicU64,)* }

        /// [`Counters`] at one moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct CounterValues { $($(#[$doc])* pub $name: u64,)* }

        impl Counters {
            /// The values now.
            pub fn values(&self) -> CounterValues {
                CounterValues { $($name: self.$name.load(Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Requests that were taken, wholly or in part.
    requests_sent,
    /// Samples in requests that were taken without a refusal.
    samples_accepted,
    /// Samples in requests that were refused, or taken in part (how many of them OTLP does not say).
    samples_rejected,
    /// Samples that had to go because the queue was full.
    samples_dropped_queue_full,
    /// Samples given up after the last retry.
    samples_dropped_expired,
    /// Samples that were still waiting when the deadline of the shutdown came.
    samples_dropped_shutdown,
    /// Tries after the first; no drop.
    retries,
}

/// How to deliver.
#[derive(Clone, Debug, Default)]
pub struct DeliveryConfig {
    /// Where to.
    pub grpc: GrpcConfig,
    /// When to retry, and when to give up.
    pub backoff: Backoff,
}

/// The running task and its queue.
#[derive(Debug)]
pub struct Delivery {
    queue: Queue,
    counters: Arc<Counters>,
    /// Samples in the hands of the task, for the count at shutdown.
    in_hand: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Delivery {
    /// Starts the task; to be called within a tokio runtime. The receiver need not be there yet.
    pub fn spawn(config: &DeliveryConfig, queue: Queue) -> Result<Self, EndpointError> {
        let counters = Arc::new(Counters::default());
        let in_hand = Arc::new(AtomicU64::new(0));
        let worker = Worker {
            client: GrpcClient::new(&config.grpc)?,
            backoff: config.backoff,
            endpoint: config.grpc.endpoint.clone(),
            counters: Arc::clone(&counters),
            in_hand: Arc::clone(&in_hand),
            warned: HashMap::new(),
        };
        let task = tokio::spawn(worker.run(queue.clone()));
        Ok(Self { queue, counters, in_hand, task })
    }

    /// Queues a request; from any thread.
    pub fn push(&self, request: &ExportProfilesServiceRequest) {
        self.sender().push(request);
    }

    /// An end of the queue that other threads may keep.
    pub fn sender(&self) -> Sender {
        Sender { queue: self.queue.clone(), counters: Arc::clone(&self.counters) }
    }

    /// The counters, also after the end.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    /// Sends what is left, for at most `deadline`; what is not sent by then is counted and dropped.
    pub async fn flush(mut self, deadline: Duration) -> CounterValues {
        self.queue.close();
        let ended = tokio::time::timeout(deadline, &mut self.task).await;
        // A task that failed left its requests behind just as one that was too slow.
        if !matches!(ended, Ok(Ok(()))) {
            self.task.abort();
            let waiting: u64 = self.queue.drain().iter().map(|request| request.samples).sum();
            let dropped = waiting + self.in_hand.load(Relaxed);
            self.counters.samples_dropped_shutdown.fetch_add(dropped, Relaxed);
            tracing::warn!(samples = dropped, "not delivered before the end: was a Collector listening?");
        }
        self.counters.values()
    }
}

/// Puts requests into the queue and counts what had to go for them.
#[derive(Clone, Debug)]
pub struct Sender {
    queue: Queue,
    counters: Arc<Counters>,
}

impl Sender {
    /// Queues a request; never waits.
    pub fn push(&self, request: &ExportProfilesServiceRequest) {
        let dropped: u64 = self.queue.push(Queued::new(request)).iter().map(|old| old.samples).sum();
        self.counters.samples_dropped_queue_full.fetch_add(dropped, Relaxed);
    }
}

struct Worker {
    client: GrpcClient,
    backoff: Backoff,
    endpoint: String,
    counters: Arc<Counters>,
    in_hand: Arc<AtomicU64>,
    /// When a message of each kind was last logged.
    warned: HashMap<&'static str, Instant>,
}

impl Worker {
    async fn run(mut self, queue: Queue) {
        while let Some(request) = queue.pop().await {
            self.in_hand.store(request.samples, Relaxed);
            self.deliver(&request).await;
            self.in_hand.store(0, Relaxed);
        }
    }

    /// One request, until something has become of all of it; halves of it, where it is too large.
    async fn deliver(&mut self, request: &Queued) {
        let message = match ExportProfilesServiceRequest::decode(request.bytes.as_slice()) {
            Ok(message) => message,
            Err(error) => {
                let rejected = &self.counters.samples_rejected;
                rejected.fetch_add(request.samples, Relaxed);
                tracing::error!(%error, "a queued request does not decode");
                return;
            }
        };
        let first = Instant::now();
        let mut parts = vec![message];
        while let Some(part) = parts.pop() {
            let outcome = self.send(&part, first).await;
            if let Some(Outcome::TooLarge { reason }) = &outcome
                && let Some((front, back)) = halve(&part)
            {
                self.warn(reason, "too large for the receiver, sent in halves");
                parts.extend([back, front]);
                continue;
            }
            let samples = sample_count(&part);
            match outcome {
                Some(outcome) => self.finish(samples, outcome),
                None => {
                    let expired = &self.counters.samples_dropped_expired;
                    expired.fetch_add(samples, Relaxed);
                }
            }
            self.in_hand.fetch_sub(samples, Relaxed);
        }
    }

    /// Sends until the outcome is another than to retry; None if that took too long.
    async fn send(&mut self, message: &ExportProfilesServiceRequest, first: Instant) -> Option<Outcome> {
        let mut attempt = 0;
        loop {
            let (after, reason) = match self.client.send(message.clone()).await {
                Outcome::Retry { after, reason } => (after, reason),
                last => return Some(last),
            };
            let elapsed = first.elapsed();
            let Some(wait) = self.backoff.delay(attempt, elapsed, random(attempt), after) else {
                self.warn(&reason, "given up after the last retry");
                return None;
            };
            self.warn(&reason, "not delivered, will retry");
            tokio::time::sleep(wait).await;
            self.counters.retries.fetch_add(1, Relaxed);
            attempt = attempt.saturating_add(1);
        }
    }

    fn finish(&mut self, samples: u64, outcome: Outcome) {
        let counters = Arc::clone(&self.counters);
        match outcome {
            Outcome::Accepted => {
                counters.requests_sent.fetch_add(1, Relaxed);
                counters.samples_accepted.fetch_add(samples, Relaxed);
            }
            Outcome::Partial { rejected, message } => {
                counters.requests_sent.fetch_add(1, Relaxed);
                let counter =
                    if rejected == 0 { &counters.samples_accepted } else { &counters.samples_rejected };
                counter.fetch_add(samples, Relaxed);
                self.warn(&message, "taken in part or with a warning");
            }
            Outcome::Retry { reason, .. } | Outcome::TooLarge { reason } | Outcome::Rejected { reason } => {
                counters.samples_rejected.fetch_add(samples, Relaxed);
                self.warn(&reason, "refused");
            }
        }
    }

    /// A line in the log, of each kind at most one a minute.
    fn warn(&mut self, reason: &str, what: &'static str) {
        if self.warned.get(what).is_none_or(|last| last.elapsed() >= WARN_INTERVAL) {
            self.warned.insert(what, Instant::now());
            tracing::warn!(endpoint = self.endpoint, reason, "{what}");
        }
    }
}

/// From [0, 1), by the seed that the operating system gives each `RandomState`.
fn random(salt: u32) -> f64 {
    (RandomState::new().hash_one(salt) >> 11) as f64 / (1_u64 << 53) as f64
}
