//! The HTTP side: `POST /v1development/profiles`, protobuf, not compressed.

use std::future::Future;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
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
    axum::serve(listener, router)
        .with_graceful_shutdown(shutdown)
        .await
        .map_err(ReceiveError::Http)
}

async fn export(State(inbox): State<Arc<Inbox>>, headers: HeaderMap, body: Bytes) -> Response {
    let header = |name| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let media_type = header(CONTENT_TYPE)
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    if !media_type.eq_ignore_ascii_case(PROTOBUF) {
        return refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send content-type application/x-protobuf",
        );
    }
    if !matches!(header(CONTENT_ENCODING), "" | "identity") {
        return refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send without compression",
        );
    }
    match ExportProfilesServiceRequest::decode(body.clone()) {
        Err(error) => refuse(
            StatusCode::BAD_REQUEST,
            &format!("not an export request: {error}"),
        ),
        Ok(request) => {
            inbox.take("http", &request, &body);
            let answer = ExportProfilesServiceResponse::default().encode_to_vec();
            ([(CONTENT_TYPE, PROTOBUF)], answer).into_response()
        }
    }
}

fn refuse(status: StatusCode, text: &str) -> Response {
    (status, text.to_owned()).into_response()
}
