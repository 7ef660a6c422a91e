//! The exporter task against a scripted server in this process.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::profiles::v1development::profiles_service_server::{
    ProfilesService, ProfilesServiceServer,
};
use opentelemetry_proto::tonic::collector::profiles::v1development::{
    ExportProfilesPartialSuccess, ExportProfilesServiceRequest, ExportProfilesServiceResponse,
};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tonic::codec::CompressionEncoding;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::deliver::backoff::Backoff;
use crate::deliver::exporter::{CounterValues, Delivery, DeliveryConfig};
use crate::deliver::grpc::{DEVELOPMENT_VERSION_KEY, GrpcConfig};
use crate::deliver::queue::Queue;
use crate::otlp::{fixture, profile::build};

/// More requests than any test here sends.
const SEEN_REQUESTS: usize = 64;

type Answer = Result<ExportProfilesServiceResponse, Status>;

/// What the server saw of one request.
#[derive(Debug)]
struct Seen {
    request: ExportProfilesServiceRequest,
    version: Vec<String>,
    at: Instant,
}

/// Answers by the script, then with success.
struct Scripted {
    script: Mutex<VecDeque<Answer>>,
    seen: mpsc::Sender<Seen>,
}

#[tonic::async_trait]
impl ProfilesService for Scripted {
    async fn export(
        &self,
        request: Request<ExportProfilesServiceRequest>,
    ) -> Result<Response<ExportProfilesServiceResponse>, Status> {
        let version = request.metadata().get_all(DEVELOPMENT_VERSION_KEY).iter();
        let version = version.map(|value| value.to_str().unwrap().to_owned()).collect();
        self.seen.try_send(Seen { request: request.into_inner(), version, at: Instant::now() }).unwrap();
        let answer = self.script.lock().unwrap().pop_front();
        answer.unwrap_or_else(|| Ok(Default::default())).map(Response::new)
    }
}

struct Bench {
    delivery: Delivery,
    seen: mpsc::Receiver<Seen>,
}

async fn bench(script: Vec<Answer>, gzip: bool) -> Bench {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = listener.local_addr().unwrap().to_string();
    let (sender, seen) = mpsc::channel(SEEN_REQUESTS);
    let service = Scripted { script: Mutex::new(script.into()), seen: sender };
    let server = ProfilesServiceServer::new(service).accept_compressed(CompressionEncoding::Gzip);
    let router = tonic::transport::Server::builder().add_service(server);
    tokio::spawn(router.serve_with_incoming(TcpIncoming::from(listener)));
    // A long limit on a try: a paused clock jumps whenever all tasks wait for the network.
    let grpc =
        GrpcConfig { endpoint, gzip, headers: Vec::new(), timeout: Duration::from_secs(3_600 * 24 * 365) };
    let config = DeliveryConfig { grpc, backoff: Backoff::default() };
    let delivery = Delivery::spawn(&config, Queue::default()).unwrap();
    Bench { delivery, seen }
}

const LONG: Duration = Duration::from_secs(3_600 * 24 * 365);

impl Bench {
    async fn send_one(mut self) -> (CounterValues, Vec<Seen>) {
        self.delivery.push(&build(&fixture::window()));
        let counters = self.delivery.flush(LONG).await;
        let mut seen = Vec::new();
        while let Ok(one) = self.seen.try_recv() {
            seen.push(one);
        }
        (counters, seen)
    }
}

fn status(code: Code) -> Answer {
    Err(Status::new(code, "scripted"))
}

#[tokio::test(start_paused = true)]
async fn a_request_arrives_as_it_was_with_one_version() {
    for gzip in [false, true] {
        let mut bench = bench(Vec::new(), gzip).await;
        let request = build(&fixture::window());
        bench.delivery.push(&request);
        let counters = bench.delivery.flush(LONG).await;
        let seen = bench.seen.recv().await.unwrap();
        assert_eq!(seen.request, request);
        assert_eq!(seen.version, ["1"]);
        let expected = CounterValues { requests_sent: 1, samples_accepted: 4, ..Default::default() };
        assert_eq!(counters, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_is_retried_with_its_profile_id() {
    let script = vec![status(Code::Unavailable), status(Code::Aborted)];
    let (counters, seen) = bench(script, false).await.send_one().await;
    let expected = CounterValues { requests_sent: 1, samples_accepted: 4, retries: 2, ..Default::default() };
    assert_eq!(counters, expected);
    assert!(seen.windows(2).all(|pair| pair[0].request == pair[1].request));
    // First wait: 5 s ± 50 %.
    let wait = seen[1].at - seen[0].at;
    assert!(wait >= Duration::from_millis(2_500), "{wait:?}");
}

#[tokio::test(start_paused = true)]
async fn the_wait_that_the_server_asks_for_is_kept() {
    let asked = Duration::from_secs(90);
    let details = ErrorDetails::with_retry_info(Some(asked));
    let script = vec![Err(Status::with_error_details(Code::ResourceExhausted, "busy", details))];
    let (counters, seen) = bench(script, false).await.send_one().await;
    assert_eq!(counters.retries, 1);
    assert!(seen[1].at - seen[0].at >= asked);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_retryable_is_sent_once_and_counted() {
    for code in [Code::InvalidArgument, Code::Unimplemented, Code::Internal] {
        let (counters, seen) = bench(vec![status(code)], false).await.send_one().await;
        assert_eq!(counters, CounterValues { samples_rejected: 4, ..Default::default() }, "{code:?}");
        assert_eq!(seen.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn partial_success_is_not_retried() {
    let partial = ExportProfilesPartialSuccess { rejected_profiles: 1, error_message: "bad".into() };
    let script = vec![Ok(ExportProfilesServiceResponse { partial_success: Some(partial) })];
    let (counters, seen) = bench(script, false).await.send_one().await;
    let expected = CounterValues { requests_sent: 1, samples_rejected: 4, ..Default::default() };
    assert_eq!((counters, seen.len()), (expected, 1));
}

#[tokio::test(start_paused = true)]
async fn it_gives_up_after_the_longest_time() {
    let script = vec![status(Code::Unavailable); 200];
    let (counters, seen) = bench(script, false).await.send_one().await;
    assert_eq!(counters.samples_dropped_expired, 4);
    assert_eq!(counters.retries as usize, seen.len() - 1);
    assert!(seen[seen.len() - 1].at - seen[0].at <= Duration::from_secs(300));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_the_shutdown_is_kept_and_the_rest_counted() {
    let bench = bench(vec![status(Code::Unavailable); 200], false).await;
    let request = build(&fixture::window());
    bench.delivery.push(&request);
    bench.delivery.push(&request);
    let counters = bench.delivery.flush(Duration::from_secs(60)).await;
    assert_eq!(counters.samples_dropped_shutdown, 8);
}

#[tokio::test]
async fn a_receiver_that_comes_late_gets_everything() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let short = Duration::from_millis(10);
    let config = DeliveryConfig {
        grpc: GrpcConfig { endpoint: address.to_string(), ..Default::default() },
        backoff: Backoff::new(short, short, 1.0, 0.0, Duration::ZERO).unwrap(),
    };
    let delivery = Delivery::spawn(&config, Queue::default()).unwrap();
    let counters = delivery.counters();
    delivery.push(&build(&fixture::window()));
    while counters.values().retries == 0 {
        tokio::time::sleep(short).await;
    }
    let (sender, _seen) = mpsc::channel(SEEN_REQUESTS);
    let service = Scripted { script: Mutex::default(), seen: sender };
    let server = ProfilesServiceServer::new(service);
    tokio::spawn(tonic::transport::Server::builder().add_service(server).serve(address));
    let counters = delivery.flush(Duration::from_secs(60)).await;
    assert_eq!((counters.requests_sent, counters.samples_accepted), (1, 4));
}

#[tokio::test]
async fn a_full_queue_is_counted() {
    let config = DeliveryConfig::default();
    let delivery = Arc::new(Delivery::spawn(&config, Queue::new(1, usize::MAX)).unwrap());
    // The task has not run yet: this test has one thread and does not wait.
    for _ in 0..3 {
        delivery.push(&build(&fixture::window()));
    }
    assert_eq!(delivery.counters().values().samples_dropped_queue_full, 8);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_too_large_is_sent_in_halves() {
    let script = vec![status(Code::ResourceExhausted), status(Code::ResourceExhausted)];
    let (counters, seen) = bench(script, false).await.send_one().await;
    let expected = CounterValues { requests_sent: 3, samples_accepted: 4, ..Default::default() };
    assert_eq!((counters, seen.len()), (expected, 5));
    let script = vec![status(Code::ResourceExhausted); 9];
    let (counters, _) = bench(script, false).await.send_one().await;
    assert_eq!(counters, CounterValues { samples_rejected: 4, ..Default::default() });
}
