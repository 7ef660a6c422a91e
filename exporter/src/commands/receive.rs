//! `receive`: a small OTLP profiles receiver for debugging any exporter.

use crate::cli::ReceiveArgs;
use crate::exit::Exit;
use crate::pipeline::stop::signalled;
use crate::receive;
use crate::say;

/// Serves until it is told to stop.
pub fn run(arguments: &ReceiveArgs) -> Exit {
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            say!("receive: cannot start: {error}");
            return Exit::Failed;
        }
    };
    say!("receiving OTLP profiles: gRPC at {}, HTTP at {}", arguments.grpc, arguments.http);
    let served = runtime.block_on(receive::serve(
        Some(arguments.grpc),
        Some(arguments.http),
        arguments.output.clone(),
        signalled(),
    ));
    match served {
        Ok(stats) => {
            say!(
                "received {} requests, {} samples, {} findings",
                stats.requests,
                stats.samples,
                stats.findings
            );
            Exit::Success
        }
        Err(error) => {
            say!("receive: {error}");
            Exit::Failed
        }
    }
}
