//! How people prove who they are: by a passkey, or at the operator's OpenID provider.

pub(crate) mod openid;
pub(crate) mod passkeys;
