//! Bodies of signals, which anyone with Temporal's CLI can send.
//!
//! A signal whose body can't be decoded fails the workflow task, again and again, until an operator resets the
//! workflow. So bodies are decoded here: a malformed one is ignored and logged.

use serde::{Serialize, de::DeserializeOwned};
use temporalio_common::{
    data_converters::{
        GenericPayloadConverter, PayloadConversionError, PayloadConverter, SerializationContext,
        TemporalDeserializable, TemporalSerializable,
    },
    protos::temporal::api::common::v1::Payload,
};
use tracing::warn;

/// The body of a signal: a `T`, or the decoding error.
#[derive(Clone, Debug)]
pub struct Lenient<T>(Result<T, String>);

impl<T> Lenient<T> {
    /// Wraps a body to send.
    pub fn new(body: T) -> Self {
        Self(Ok(body))
    }

    /// Returns the body; logs a malformed one and returns `None`.
    pub(crate) fn read(self, signal: &'static str) -> Option<T> {
        self.0.inspect_err(|error| warn!(signal, error, "Ignored a signal whose body can't be read")).ok()
    }
}

impl<T: Serialize + 'static> TemporalSerializable for Lenient<T> {
    fn to_payload(&self, cx: &SerializationContext<'_>) -> Result<Payload, PayloadConversionError> {
        match &self.0 {
            Ok(body) => PayloadConverter::serde_json().to_payload(cx, body),
            Err(_) => Err(PayloadConversionError::WrongEncoding),
        }
    }
}

impl<T: DeserializeOwned + 'static> TemporalDeserializable for Lenient<T> {
    fn from_payload(cx: &SerializationContext<'_>, payload: Payload) -> Result<Self, PayloadConversionError> {
        Self::from_payloads(cx, vec![payload])
    }

    fn from_payloads(
        cx: &SerializationContext<'_>,
        payloads: Vec<Payload>,
    ) -> Result<Self, PayloadConversionError> {
        // A body without meaning may be missing.
        let payload = payloads.into_iter().next().unwrap_or_default();
        let read: Result<T, _> = PayloadConverter::serde_json().from_payload(cx, payload);
        Ok(Self(read.map_err(|error| error.to_string())))
    }
}
