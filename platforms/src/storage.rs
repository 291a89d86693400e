//! Uploads to a platform's storage by a signed form, as in Amazon S3.
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-HTTPPOSTForms.html>

use crate::{Result, Session, classify};
use domain::Failure;
use reqwest::{
    Body,
    multipart::{Form, Part},
};

/// A file to upload.
pub(crate) struct File<'a> {
    pub(crate) name: &'a str,
    pub(crate) mime: &'a str,
    /// Length of the body in bytes.
    pub(crate) length: u64,
    pub(crate) body: Body,
}

/// Sends a file with the fields of its form, which must precede it.
///
/// # Errors
///
/// `rejected_413` when the file is too large; otherwise a failure with a known effect, because the next attempt
/// requests a new form.
pub(crate) async fn send(
    cx: &Session<'_>,
    address: &str,
    fields: impl IntoIterator<Item = (String, String)>,
    file: File<'_>,
) -> Result<()> {
    let File { name, mime, length, body } = file;
    let form = fields.into_iter().fold(Form::new(), |form, (name, value)| form.text(name, value));
    let part = Part::stream_with_length(body, length).file_name(name.to_owned());
    let form = form.part("file", typed(part, mime)?);
    let reply = cx.post(address).without_grant().multipart(form).timeout_for_body(length).send_raw().await?;
    match reply.status.as_u16() {
        200..=299 => Ok(()),
        400 | 413 if reply.text.contains("EntityTooLarge") => {
            let platform = cx.platform.name();
            Err(Failure::rejected(413, format!("{name} with its {length} bytes is too large for {platform}")))
        }
        status => {
            let message = format!("the upload answered {}", classify::message(&reply));
            Err(Failure::upstream(if status >= 500 { status } else { 502 }, message).certain())
        }
    }
}

/// Sets the content type of a part of a form.
///
/// # Errors
///
/// `rejected_415` when the content type is malformed.
pub(crate) fn typed(part: Part, mime: &str) -> Result<Part> {
    part.mime_str(mime).map_err(|error| Failure::rejected(415, format!("{mime} is no content type: {error}")))
}
