//! Secrets of the settings.

use anyhow::Context;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use std::convert::Infallible;

/// A token. Prints as `***`.
#[derive(Clone)]
pub(crate) struct Token(pub(crate) String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Parses a token.
pub(crate) fn token(text: &str) -> anyhow::Result<Token> {
    anyhow::ensure!(text.len() >= 16, "a token needs at least 16 characters");
    Ok(Token(text.to_owned()))
}

/// Accepts any text as a token.
pub(crate) fn any(text: &str) -> Result<Token, Infallible> {
    Ok(Token(text.to_owned()))
}

/// 32 secret bytes. Prints as `***`.
#[derive(Clone, Copy)]
pub(crate) struct Secret(pub(crate) [u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Parses a secret.
pub(crate) fn secret(text: &str) -> anyhow::Result<Secret> {
    let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).context("not base64url")?;
    Ok(Secret(bytes.try_into().map_err(|_| anyhow::anyhow!("not 32 bytes long"))?))
}

/// Generates a secret in text form.
pub(crate) fn fresh_secret() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}
