//! A bounded queue of requests between the pipeline (a thread) and the exporter task.
//!
//! When it is full the oldest request goes and is counted: what is newest says most about now.
//! Closing it lets the task take what is left and then end.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use prost::Message as _;
use tokio::sync::Notify;

use crate::otlp::read::sample_count;

/// One request to be sent: encoded, so that what waits is small and its size known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// The request as protobuf.
    pub bytes: Vec<u8>,
    /// Samples in it, repeated ones counted.
    pub samples: u64,
}

impl Queued {
    /// Encodes a request.
    pub fn new(request: &ExportProfilesServiceRequest) -> Self {
        Self { bytes: request.encode_to_vec(), samples: sample_count(request) }
    }
}

/// Both ends of the queue; clones share it.
#[derive(Clone, Debug)]
pub struct Queue {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
    max_requests: usize,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct State {
    requests: VecDeque<Queued>,
    bytes: usize,
    closed: bool,
}

/// Default bound on waiting requests, as in the Collector.
pub const DEFAULT_MAX_REQUESTS: usize = 1_000;

/// Default bound on their bytes: 64 MiB, so that an absent Collector does not cost the host its memory.
pub const DEFAULT_MAX_BYTES: usize = 64 * 1024 * 1024;

impl Default for Queue {
    fn default() -> Self {
        Self::new(DEFAULT_MAX_REQUESTS, DEFAULT_MAX_BYTES)
    }
}

impl Queue {
    /// An empty queue. At least one request always fits, whatever its size.
    pub fn new(max_requests: usize, max_bytes: usize) -> Self {
        let (state, changed) = (Mutex::default(), Notify::new());
        let max_requests = max_requests.max(1);
        Self { shared: Arc::new(Shared { state, changed, max_requests, max_bytes }) }
    }

    /// Adds a request; returns what had to go for it: the oldest, or itself if the queue is closed.
    pub fn push(&self, request: Queued) -> Vec<Queued> {
        let mut state = self.lock();
        if state.closed {
            return vec![request];
        }
        let mut dropped = Vec::new();
        while state.requests.len() >= self.shared.max_requests
            || state.bytes + request.bytes.len() > self.shared.max_bytes
        {
            let Some(oldest) = state.requests.pop_front() else {
                break;
            };
            state.bytes -= oldest.bytes.len();
            dropped.push(oldest);
        }
        state.bytes += request.bytes.len();
        state.requests.push_back(request);
        drop(state);
        self.shared.changed.notify_one();
        dropped
    }

    /// The oldest request; waits for one. None once the queue is closed and empty. For one consumer.
    pub async fn pop(&self) -> Option<Queued> {
        loop {
            {
                let mut state = self.lock();
                if let Some(request) = state.requests.pop_front() {
                    state.bytes -= request.bytes.len();
                    return Some(request);
                }
                if state.closed {
                    return None;
                }
            }
            self.shared.changed.notified().await;
        }
    }

    /// No more comes in; what is there can still be taken.
    pub fn close(&self) {
        self.lock().closed = true;
        self.shared.changed.notify_one();
    }

    /// Takes all that is left.
    pub fn drain(&self) -> Vec<Queued> {
        let mut state = self.lock();
        state.bytes = 0;
        state.requests.drain(..).collect()
    }

    /// Waiting requests.
    pub fn len(&self) -> usize {
        self.lock().requests.len()
    }

    /// Is nothing waiting?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A poisoned lock holds a whole state all the same: no step above can stop half way.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(byte: u8, len: usize) -> Queued {
        Queued { bytes: vec![byte; len], samples: 1 }
    }

    #[tokio::test]
    async fn a_full_queue_drops_its_oldest() {
        let queue = Queue::new(2, 100);
        assert_eq!(queue.push(request(1, 1)), []);
        assert_eq!(queue.push(request(2, 1)), []);
        assert_eq!(queue.push(request(3, 1)), [request(1, 1)]);
        assert_eq!(queue.push(request(4, 99)), [request(2, 1)]);
        assert_eq!(queue.push(request(5, 200)), [request(3, 1), request(4, 99)]);
        assert_eq!(queue.pop().await, Some(request(5, 200)));
    }

    #[tokio::test]
    async fn a_closed_queue_gives_what_is_left_then_ends() {
        let queue = Queue::default();
        queue.push(request(1, 1));
        queue.close();
        assert_eq!(queue.push(request(2, 1)), [request(2, 1)]);
        assert_eq!(queue.pop().await, Some(request(1, 1)));
        assert_eq!(queue.pop().await, None);
    }

    #[tokio::test]
    async fn a_waiting_consumer_wakes() {
        let queue = Queue::default();
        let consumer = tokio::spawn({
            let queue = queue.clone();
            async move { queue.pop().await }
        });
        tokio::task::yield_now().await;
        queue.push(request(1, 1));
        assert_eq!(consumer.await.unwrap(), Some(request(1, 1)));
    }
}
