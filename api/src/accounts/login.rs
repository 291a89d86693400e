//! Shared by OAuth and password logins: encrypting credentials for the workers.

use crate::http::caller::Call;
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Serialize;
use store::vault;

/// Encrypts a user's credentials for the workers.
pub(crate) fn seal(call: &Call<'_>, platform: &str, brought: &impl Serialize) -> String {
    let plain = serde_json::to_vec(brought).expect("it is plain data");
    BASE64_STANDARD.encode(call.app.config.sealer.seal(&plain, &vault::aad_login(call.owner, platform)))
}
