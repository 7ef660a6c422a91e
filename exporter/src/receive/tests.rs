//! Both servers, by real clients.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use prost::Message as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{ReceiveError, ReceiveStats, Receiver};
use crate::deliver::exporter::{Delivery, DeliveryConfig};
use crate::deliver::grpc::GrpcConfig;
use crate::deliver::queue::Queue;
use crate::otlp::{fixture, profile::build};

struct Running {
    grpc: SocketAddr,
    http: SocketAddr,
    folder: PathBuf,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<ReceiveStats, ReceiveError>>,
}

async fn start(name: &str) -> Running {
    let any = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let folder = std::env::temp_dir().join(format!("otel-receive-{name}-{}", std::process::id()));
    let receiver = Receiver::bind(any, any, Some(folder.clone())).await.unwrap();
    let (grpc, http) = (receiver.grpc_addr().unwrap(), receiver.http_addr().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(receiver.run(async move { stopped.await.unwrap_or_default() }));
    Running { grpc, http, folder, stop, task }
}

impl Running {
    /// Statistics, and what was stored.
    async fn end(self) -> (ReceiveStats, Vec<Vec<u8>>) {
        self.stop.send(()).unwrap();
        let stats = self.task.await.unwrap().unwrap();
        let mut paths: Vec<_> =
            std::fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let stored = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
        std::fs::remove_dir_all(&self.folder).unwrap();
        (stats, stored)
    }

    async fn post(&self, path: &str, content_type: &str, body: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.http).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: {content_type}\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
    }
}

#[tokio::test]
async fn grpc_requests_are_stored_and_counted() {
    let running = start("grpc").await;
    let request = build(&fixture::window());
    for gzip in [false, true] {
        let grpc = GrpcConfig { endpoint: running.grpc.to_string(), gzip, ..Default::default() };
        let config = DeliveryConfig { grpc, ..Default::default() };
        let delivery = Delivery::spawn(&config, Queue::default()).unwrap();
        delivery.push(&request);
        let sent = delivery.flush(Duration::from_secs(60)).await;
        assert_eq!(sent.samples_accepted, 4, "gzip {gzip}: {sent:?}");
    }
    let (stats, stored) = running.end().await;
    assert_eq!(stats, ReceiveStats { requests: 2, samples: 8, ..Default::default() });
    assert_eq!(stored.len(), 2);
    assert_eq!(ExportProfilesServiceRequest::decode(stored[1].as_slice()).unwrap(), request);
}

#[tokio::test]
async fn http_requests_are_stored_as_they_came() {
    let running = start("http").await;
    let path = "/v1development/profiles";
    let good = build(&fixture::window());
    let mut bad = good.clone();
    bad.dictionary = None;
    let protobuf = "application/x-protobuf";
    let cases = [
        (path, protobuf, good.encode_to_vec(), 200),
        (path, protobuf, bad.encode_to_vec(), 200),
        (path, protobuf, vec![0xff; 9], 400),
        (path, "application/json", b"{}".to_vec(), 415),
        ("/v1/profiles", protobuf, good.encode_to_vec(), 404),
    ];
    for (path, content_type, body, status) in &cases {
        let answer = running.post(path, content_type, body).await;
        assert!(answer.contains(&format!(" {status} ")), "{path} {content_type}: {answer}");
    }
    let (stats, stored) = running.end().await;
    let expected =
        ReceiveStats { requests: 2, samples: 8, invalid_requests: 1, findings: 1, ..Default::default() };
    assert_eq!(stats, expected);
    assert_eq!(stored, [good.encode_to_vec(), bad.encode_to_vec()]);
}

#[tokio::test]
async fn without_an_address_nothing_starts() {
    let result = super::serve(None, None, None, async {}).await;
    assert!(matches!(result, Err(ReceiveError::NoAddress)));
}
