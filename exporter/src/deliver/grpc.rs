//! The gRPC client: one try of one request.

use std::time::Duration;

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::collector::profiles::v1development::profiles_service_client::ProfilesServiceClient;
use tonic::codec::CompressionEncoding;
use tonic::metadata::{Ascii, MetadataKey, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use crate::deliver::outcome::{Outcome, of_response, of_status};

/// Metadata key by which a Collector (v0.163.0 and later) tells schemas apart.
pub const DEVELOPMENT_VERSION_KEY: &str = "otlp-profiles-development-version";

/// Tied to the schema that is compiled in, so no setting.
pub const DEVELOPMENT_VERSION: &str = "1";

/// Default limit on one try.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where and how to send.
#[derive(Clone, PartialEq, Eq)]
pub struct GrpcConfig {
    /// `http://host:port` or `host:port`.
    pub endpoint: String,
    /// Limit on one try.
    pub timeout: Duration,
    /// Compress requests by gzip.
    pub gzip: bool,
    /// Further metadata of every request, by lower-case name; values are secrets.
    pub headers: Vec<(String, String)>,
}

impl std::fmt::Debug for GrpcConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { endpoint, timeout, gzip, headers } = self;
        let names: Vec<&String> = headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("GrpcConfig")
            .field("endpoint", endpoint)
            .field("timeout", timeout)
            .field("gzip", gzip)
            .field("headers", &names)
            .finish()
    }
}

impl Default for GrpcConfig {
    fn default() -> Self {
        Self {
            endpoint: "http://localhost:4317".to_owned(),
            timeout: DEFAULT_TIMEOUT,
            gzip: false,
            headers: Vec::new(),
        }
    }
}

/// An endpoint that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// Not a URL.
    #[error("endpoint {endpoint:?} is not host:port nor http://host:port")]
    Invalid {
        /// As configured.
        endpoint: String,
        /// What is wrong.
        #[source]
        source: tonic::transport::Error,
    },
    /// A header that gRPC cannot carry.
    #[error("header {name:?} cannot be sent: names are lower-case ASCII, values printable ASCII")]
    Header {
        /// Its name; the value is a secret.
        name: String,
    },
    /// A scheme that this client does not speak.
    #[error("endpoint {endpoint:?} has a scheme that is not supported; use http://host:port")]
    Scheme {
        /// As configured.
        endpoint: String,
    },
}

/// A client that connects when it first sends, and again when the connection broke.
#[derive(Clone, Debug)]
pub struct GrpcClient {
    client: ProfilesServiceClient<Channel>,
    timeout: Duration,
    headers: Vec<Header>,
}

type Header = (MetadataKey<Ascii>, MetadataValue<Ascii>);

/// A header as metadata; marked as sensitive, so that nothing prints its value.
fn header(name: &str, value: &str) -> Option<Header> {
    let mut value: MetadataValue<Ascii> = value.parse().ok()?;
    value.set_sensitive(true);
    Some((name.parse().ok()?, value))
}

impl GrpcClient {
    /// Checks the endpoint; does not connect. To be called within a tokio runtime.
    pub fn new(config: &GrpcConfig) -> Result<Self, EndpointError> {
        let GrpcConfig { endpoint, timeout, gzip, headers } = config;
        let url = match endpoint.split_once("://") {
            None => format!("http://{endpoint}"),
            Some(("http", _)) => endpoint.clone(),
            Some(_) => {
                return Err(EndpointError::Scheme { endpoint: endpoint.clone() });
            }
        };
        let invalid = |source| EndpointError::Invalid { endpoint: endpoint.clone(), source };
        let channel = Endpoint::from_shared(url)
            .and_then(|url| url.user_agent(concat!("otel-profile-exporter/", env!("CARGO_PKG_VERSION"))))
            .map_err(invalid)?
            .connect_timeout(*timeout)
            .connect_lazy();
        let mut client = ProfilesServiceClient::new(channel).accept_compressed(CompressionEncoding::Gzip);
        if *gzip {
            client = client.send_compressed(CompressionEncoding::Gzip);
        }
        let headers = headers
            .iter()
            .map(|(name, value)| {
                header(name, value).ok_or_else(|| EndpointError::Header { name: name.clone() })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { client, timeout: *timeout, headers })
    }

    /// Sends once.
    pub async fn send(&self, message: ExportProfilesServiceRequest) -> Outcome {
        let mut request = Request::new(message);
        request.set_timeout(self.timeout);
        let version = MetadataValue::from_static(DEVELOPMENT_VERSION);
        request.metadata_mut().insert(DEVELOPMENT_VERSION_KEY, version);
        for (name, value) in &self.headers {
            request.metadata_mut().insert(name.clone(), value.clone());
        }
        let mut client = self.client.clone();
        match tokio::time::timeout(self.timeout, client.export(request)).await {
            Ok(Ok(response)) => of_response(response.into_inner()),
            Ok(Err(status)) => of_status(&status),
            Err(_) => of_status(&Status::deadline_exceeded(format!("no answer in {:?}", self.timeout))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn endpoints_with_and_without_scheme() {
        let new =
            |endpoint: &str| GrpcClient::new(&GrpcConfig { endpoint: endpoint.into(), ..Default::default() });
        assert!(new("localhost:4317").is_ok());
        assert!(new("http://127.0.0.1:4317").is_ok());
        assert!(matches!(new("ftp://host:1"), Err(EndpointError::Scheme { .. })));
        assert!(matches!(new("host name:1"), Err(EndpointError::Invalid { .. })));
    }
}
