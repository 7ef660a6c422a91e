//! The gRPC side.

use std::future::Future;
use std::sync::Arc;

use opentelemetry_proto::tonic::collector::profiles::v1development::profiles_service_server::{
    ProfilesService, ProfilesServiceServer,
};
use opentelemetry_proto::tonic::collector::profiles::v1development::{
    ExportProfilesServiceRequest, ExportProfilesServiceResponse,
};
use prost::Message as _;
use tokio::net::TcpListener;
use tonic::codec::CompressionEncoding;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use super::inbox::Inbox;
use super::{MAX_REQUEST_BYTES, ReceiveError};

struct Service {
    inbox: Arc<Inbox>,
}

#[tonic::async_trait]
impl ProfilesService for Service {
    async fn export(
        &self,
        request: Request<ExportProfilesServiceRequest>,
    ) -> Result<Response<ExportProfilesServiceResponse>, Status> {
        let request = request.into_inner();
        // tonic hands over the message, not its bytes; unknown fields are lost in encoding it again.
        self.inbox.take("grpc", &request, &request.encode_to_vec());
        Ok(Response::new(ExportProfilesServiceResponse::default()))
    }
}

pub(super) async fn serve(
    listener: TcpListener,
    inbox: &Arc<Inbox>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ReceiveError> {
    let service = ProfilesServiceServer::new(Service { inbox: Arc::clone(inbox) })
        .max_decoding_message_size(MAX_REQUEST_BYTES)
        .accept_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Zstd);
    tonic::transport::Server::builder()
        .add_service(service)
        .serve_with_incoming_shutdown(TcpIncoming::from(listener), shutdown)
        .await?;
    Ok(())
}
