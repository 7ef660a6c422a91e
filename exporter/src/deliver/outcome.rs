//! What became of a request, by the OTLP table.

use std::time::Duration;

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceResponse;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// Result of one try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of it was taken.
    Accepted,
    /// Taken in part, or with a warning; never sent again.
    Partial {
        /// How many profiles were refused; 0 for a mere warning.
        rejected: u64,
        /// What the receiver says.
        message: String,
    },
    /// Not taken now; to be sent again.
    Retry {
        /// The least wait that the receiver asks for.
        after: Option<Duration>,
        /// What the receiver says.
        reason: String,
    },
    /// Too large for the receiver as it is: sending the same again is of no use.
    TooLarge {
        /// What the receiver says.
        reason: String,
    },
    /// Not taken, and not to be sent again.
    Rejected {
        /// What the receiver says, and where it is known, what to do.
        reason: String,
    },
}

/// What to do about UNIMPLEMENTED.
pub const UNIMPLEMENTED_HINT: &str = "the receiver has no profiles service: give the Collector a profiles \
     pipeline with the otlp receiver, and start it with --feature-gates=service.profilesSupport";

/// A response that came. That `partial_success` is present says nothing: the Collector always sends it.
pub fn of_response(response: ExportProfilesServiceResponse) -> Outcome {
    match response.partial_success {
        Some(partial) if partial.rejected_profiles > 0 || !partial.error_message.is_empty() => {
            let rejected = u64::try_from(partial.rejected_profiles).unwrap_or(0);
            Outcome::Partial { rejected, message: partial.error_message }
        }
        _ => Outcome::Accepted,
    }
}

/// A status that came, or that the transport made of a connection that failed or broke. The latter is
/// no answer of a receiver, whatever its code: it is tried again.
pub fn of_status(status: &Status) -> Outcome {
    let after = status.get_details_retry_info().map(|info| info.retry_delay.unwrap_or_default());
    let is_transport = std::error::Error::source(status).is_some();
    let reason =
        format!("{:?}: {}; {}", status.code(), status.message(), hint(status.code(), is_transport, status));
    if is_transport {
        return Outcome::Retry { after: None, reason };
    }
    match status.code() {
        Code::Ok => Outcome::Accepted,
        Code::Cancelled
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unavailable
        | Code::DataLoss => Outcome::Retry { after, reason },
        Code::ResourceExhausted if after.is_some() => Outcome::Retry { after, reason },
        Code::ResourceExhausted => Outcome::TooLarge { reason },
        Code::Unknown
        | Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::Unimplemented
        | Code::Internal
        | Code::Unauthenticated => Outcome::Rejected { reason },
    }
}

/// What to do about it.
fn hint(code: Code, is_transport: bool, status: &Status) -> &'static str {
    match code {
        _ if is_transport && status.message().contains("connect") => {
            "is a Collector listening there? `otel-profile-exporter doctor` tries it"
        }
        _ if is_transport => "does it speak gRPC there? OTLP's gRPC port is 4317; 4318 is HTTP",
        Code::Unimplemented => UNIMPLEMENTED_HINT,
        Code::Unauthenticated | Code::PermissionDenied => "check export.headers",
        Code::DeadlineExceeded => "see the receiver's log, or raise export.timeout",
        Code::ResourceExhausted => {
            "raise max_recv_msg_size_mib of the Collector's otlp receiver, or its memory"
        }
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::OutOfRange
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => "see the receiver's log",
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesPartialSuccess;
    use tonic_types::ErrorDetails;

    use super::*;

    #[test]
    fn the_otlp_table_is_followed() {
        let retried = [1, 4, 10, 11, 14, 15];
        for code in 1..=16 {
            let outcome = of_status(&Status::new(Code::from_i32(code), "no"));
            let retry = matches!(outcome, Outcome::Retry { after: None, .. });
            assert_eq!(retry, retried.contains(&code), "{code}: {outcome:?}");
            let too_large = matches!(outcome, Outcome::TooLarge { .. });
            assert_eq!(too_large, code == 8, "{code}: {outcome:?}");
        }
    }

    #[test]
    fn retry_info_is_read() {
        let delay = Duration::from_secs(7);
        for code in [Code::Unavailable, Code::ResourceExhausted] {
            let details = ErrorDetails::with_retry_info(Some(delay));
            let status = Status::with_error_details(code, "busy", details);
            let outcome = of_status(&status);
            assert!(matches!(outcome, Outcome::Retry { after: Some(d), .. } if d == delay), "{outcome:?}");
        }
    }

    #[test]
    fn an_empty_partial_success_is_success() {
        let of = |rejected_profiles, error_message: &str| {
            let partial =
                ExportProfilesPartialSuccess { rejected_profiles, error_message: error_message.into() };
            of_response(ExportProfilesServiceResponse { partial_success: Some(partial) })
        };
        assert_eq!(of(0, ""), Outcome::Accepted);
        assert_eq!(of(2, "bad"), Outcome::Partial { rejected: 2, message: "bad".into() });
        assert_eq!(of(0, "hm"), Outcome::Partial { rejected: 0, message: "hm".into() });
        assert_eq!(of_response(ExportProfilesServiceResponse::default()), Outcome::Accepted);
    }

    #[test]
    fn unimplemented_says_what_to_do() {
        let outcome = of_status(&Status::unimplemented("unknown service"));
        let Outcome::Rejected { reason } = outcome else { panic!("{outcome:?}") };
        assert!(reason.contains("service.profilesSupport"), "{reason}");
    }
}
