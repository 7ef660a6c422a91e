//! A small OTLP profiles receiver, for looking at what any exporter sends.
//!
//! Enters: requests by gRPC and by HTTP (protobuf). Leaves: a line for each on standard output with its
//! findings, and the request as it came in a file, `000001.pb`, `000002.pb`, … of the output folder;
//! the bytes are a `ProfilesData` as well.

mod grpc;
mod http;
mod inbox;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use tokio::net::TcpListener;
use tokio::sync::watch;

use inbox::Inbox;
pub use inbox::ReceiveStats;

/// Largest request taken, also after decompression: what the specification recommends.
pub const MAX_REQUEST_BYTES: usize = 64 * 1024 * 1024;

/// Why the receiver ended, or never started.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// Neither address was given.
    #[error("nothing to listen on: give --grpc ADDR, --http ADDR or both")]
    NoAddress,
    /// An address could not be bound.
    #[error("cannot listen on {address}; is another receiver running there?")]
    Bind {
        /// Which.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The output folder could not be made.
    #[error("cannot create the output folder {}", path.display())]
    Output {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The gRPC server failed.
    #[error("the gRPC server failed")]
    Grpc(#[from] tonic::transport::Error),
    /// The HTTP server failed.
    #[error("the HTTP server failed")]
    Http(#[source] io::Error),
}

/// A receiver that listens but does not serve yet: its addresses are known, with port 0 too.
#[derive(Debug)]
pub struct Receiver {
    grpc: Option<TcpListener>,
    http: Option<TcpListener>,
    inbox: Arc<Inbox>,
}

impl Receiver {
    /// Listens. A client that connects from now on is served once [`Receiver::run`] is called.
    pub async fn bind(
        grpc: Option<SocketAddr>,
        http: Option<SocketAddr>,
        output: Option<PathBuf>,
    ) -> Result<Self, ReceiveError> {
        if grpc.is_none() && http.is_none() {
            return Err(ReceiveError::NoAddress);
        }
        if let Some(path) = &output {
            std::fs::create_dir_all(path)
                .map_err(|source| ReceiveError::Output { path: path.clone(), source })?;
        }
        let inbox = Arc::new(Inbox::new(output));
        Ok(Self { grpc: listen(grpc).await?, http: listen(http).await?, inbox })
    }

    /// Hands each request to `reader` instead of printing it; one that has no room is left out with a
    /// warning.
    pub fn hand_to(&self, reader: SyncSender<ExportProfilesServiceRequest>) {
        self.inbox.hand_to(reader);
    }

    /// Address of the gRPC server.
    pub fn grpc_addr(&self) -> Option<SocketAddr> {
        self.grpc.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Address of the HTTP server.
    pub fn http_addr(&self) -> Option<SocketAddr> {
        self.http.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Serves until `shutdown` is done and the requests under way are answered.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<ReceiveStats, ReceiveError> {
        let (stop, stopped) = watch::channel(false);
        let grpc = async {
            match self.grpc {
                Some(listener) => grpc::serve(listener, &self.inbox, stopping(stopped.clone())).await,
                None => Ok(()),
            }
        };
        let http = async {
            match self.http {
                Some(listener) => http::serve(listener, &self.inbox, stopping(stopped.clone())).await,
                None => Ok(()),
            }
        };
        let stopper = async {
            shutdown.await;
            stop.send_replace(true);
            Ok(())
        };
        tokio::try_join!(grpc, http, stopper)?;
        Ok(self.inbox.stats())
    }
}

/// [`Receiver::bind`] and [`Receiver::run`] in one.
pub async fn serve(
    grpc: Option<SocketAddr>,
    http: Option<SocketAddr>,
    output: Option<PathBuf>,
    shutdown: impl Future<Output = ()>,
) -> Result<ReceiveStats, ReceiveError> {
    Receiver::bind(grpc, http, output).await?.run(shutdown).await
}

async fn listen(address: Option<SocketAddr>) -> Result<Option<TcpListener>, ReceiveError> {
    let Some(address) = address else {
        return Ok(None);
    };
    let bound = TcpListener::bind(address).await;
    bound.map(Some).map_err(|source| ReceiveError::Bind { address, source })
}

/// Done when the sender says so, or is gone.
async fn stopping(mut stopped: watch::Receiver<bool>) {
    if stopped.wait_for(|stop| *stop).await.is_err() {
        tracing::debug!("the receiver is gone");
    }
}
