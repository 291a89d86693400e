//! The control panel: what goes wrong next, at a click.
//!
//! The first page has its forms, and shows again what they changed. Only its own forms count: a page of
//! another site, open in the same browser, must not spoil what somebody is trying out.

use super::{
    Sandbox,
    control::{apply, problem, with_account},
    fault::{self, Armed},
};
use poem::{
    IntoResponse, Request, Response, Result, handler,
    http::{StatusCode, header},
    web::{Data, Form},
};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A fault that is to come.
#[derive(Deserialize)]
struct Wish {
    platform: String,
    username: String,
    word: String,
    tries: u64,
}

/// Tokens to be ended.
#[derive(Deserialize)]
struct Tokens {
    platform: String,
    username: String,
    end: End,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum End {
    Expire,
    Revoke,
}

/// Lets an account's next tries meet a fault.
#[handler]
pub(super) async fn arm(
    request: &Request,
    Data(sandbox): Data<&Sandbox>,
    Form(wish): Form<Wish>,
) -> Result<Response> {
    if is_foreign(request) {
        return Ok(refusal());
    }
    let Some(word) = fault::word(&wish.word) else {
        return Ok(problem(StatusCode::BAD_REQUEST, "no such fault"));
    };
    let at = (wish.platform, wish.username);
    let armed = with_account(sandbox, &at, |_, turn, account| {
        fault::arm(turn, &Armed::of(account, word, wish.tries));
    })?;
    Ok(back(&at, armed))
}

/// Lets an account's tokens run out, or takes its consent back.
#[handler]
pub(super) async fn end_tokens(
    request: &Request,
    Data(sandbox): Data<&Sandbox>,
    Form(tokens): Form<Tokens>,
) -> Result<Response> {
    if is_foreign(request) {
        return Ok(refusal());
    }
    let at = (tokens.platform, tokens.username);
    let ended = with_account(sandbox, &at, |host, turn, account| match tokens.end {
        End::Expire => host.grants().expire(turn, account),
        End::Revoke => host.grants().revoke(turn, account),
    })?;
    Ok(back(&at, ended))
}

/// Changes settings.
#[handler]
pub(super) async fn change(
    request: &Request,
    Data(sandbox): Data<&Sandbox>,
    Form(changes): Form<BTreeMap<String, u64>>,
) -> Result<Response> {
    if is_foreign(request) {
        return Ok(refusal());
    }
    let changes: Map<_, _> = changes.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
    Ok(match apply(sandbox, changes)? {
        Ok(_) => see("/#settings"),
        Err(error) => problem(StatusCode::BAD_REQUEST, error.to_string()),
    })
}

/// Whether a page of another site sent this. Programs say nothing of the kind, and are no browsers.
fn is_foreign(request: &Request) -> bool {
    request.header("sec-fetch-site").is_some_and(|site| site != "same-origin")
}

fn refusal() -> Response {
    problem(StatusCode::FORBIDDEN, "this form was not sent by a page of the sandbox")
}

/// Back to the account, where what was wanted was done.
fn back((platform, username): &(String, String), done: Response) -> Response {
    if done.status().is_success() { see(&format!("/#{platform}-{username}")) } else { done }
}

fn see(place: &str) -> Response {
    StatusCode::SEE_OTHER.with_header(header::LOCATION, place).into_response()
}
