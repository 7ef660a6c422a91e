//! The HTTP side: `POST /v1development/profiles`, protobuf, plain or gzip.

use std::future::Future;
use std::io::Read as _;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use flate2::read::GzDecoder;
use opentelemetry_proto::tonic::collector::profiles::v1development::{
    ExportProfilesServiceRequest, ExportProfilesServiceResponse,
};
use prost::Message as _;
use tokio::net::TcpListener;

use super::inbox::Inbox;
use super::{MAX_REQUEST_BYTES, ReceiveError};

/// Path of the profiles service.
const PATH: &str = "/v1development/profiles";

const PROTOBUF: &str = "application/x-protobuf";

pub(super) async fn serve(
    listener: TcpListener,
    inbox: &Arc<Inbox>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ReceiveError> {
    let router = Router::new()
        .route(PATH, post(export))
        .layer(DefaultBodyLimit::max(MAX_REQUEST_BYTES))
        .with_state(Arc::clone(inbox));
    axum::serve(listener, router).with_graceful_shutdown(shutdown).await.map_err(ReceiveError::Http)
}

async fn export(State(inbox): State<Arc<Inbox>>, headers: HeaderMap, body: Bytes) -> Response {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = header(CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
    if !media_type.eq_ignore_ascii_case(PROTOBUF) {
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send content-type application/x-protobuf");
    }
    let body = match header(CONTENT_ENCODING) {
        "" | "identity" => body,
        "gzip" => match gunzip(&body) {
            Ok(plain) => Bytes::from(plain),
            Err(error) => return refuse(StatusCode::BAD_REQUEST, &format!("bad gzip: {error}")),
        },
        other => {
            let text = format!("content-encoding {other:?}: send gzip or none");
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, &text);
        }
    };
    match ExportProfilesServiceRequest::decode(body.clone()) {
        Err(error) => refuse(StatusCode::BAD_REQUEST, &format!("not an export request: {error}")),
        Ok(request) => {
            inbox.take("http", &request, &body);
            let answer = ExportProfilesServiceResponse::default().encode_to_vec();
            ([(CONTENT_TYPE, PROTOBUF)], answer).into_response()
        }
    }
}

/// Stops at the limit, so that a small body cannot fill the memory.
fn gunzip(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    let limit = MAX_REQUEST_BYTES as u64;
    GzDecoder::new(body).take(limit + 1).read_to_end(&mut plain)?;
    if plain.len() > MAX_REQUEST_BYTES {
        return Err(std::io::Error::other("too large after decompression"));
    }
    Ok(plain)
}

fn refuse(status: StatusCode, text: &str) -> Response {
    (status, text.to_owned()).into_response()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn gzip_is_read_up_to_the_limit() {
        assert_eq!(gunzip(&gzip(b"profile")).unwrap(), b"profile");
        assert!(gunzip(&gzip(&vec![0; MAX_REQUEST_BYTES + 1])).is_err());
        assert!(gunzip(b"profile").is_err());
    }
}
