//! The response to every deletion.

use poem_openapi::Object;
use uuid::Uuid;

/// A deleted resource.
#[derive(Debug, Object)]
#[oai(rename = "Removed")]
pub struct DeletedResource {
    /// The resource's id.
    pub id: Uuid,
    /// Always true.
    pub deleted: bool,
}
