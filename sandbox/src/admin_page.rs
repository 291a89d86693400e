//! The forms of the control panel, which arm faults, end tokens and change settings.
//!
//! The first page has the forms and shows the result. Forms sent by a page of another site are refused.

use super::{
    Sandbox,
    actions::{apply, problem, with_account},
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

/// Form that arms an account with a fault.
#[derive(Deserialize)]
struct FaultForm {
    platform: String,
    username: String,
    word: String,
    tries: u64,
}

/// Form that expires or revokes an account's tokens.
#[derive(Deserialize)]
struct TokensForm {
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

/// Arms an account with a fault.
#[handler]
pub(super) async fn arm(
    request: &Request,
    Data(sandbox): Data<&Sandbox>,
    Form(form): Form<FaultForm>,
) -> Result<Response> {
    if is_cross_site(request) {
        return Ok(refusal());
    }
    let Some(word) = fault::word(&form.word) else {
        return Ok(problem(StatusCode::BAD_REQUEST, "no such fault"));
    };
    let at = (form.platform, form.username);
    let armed = with_account(sandbox, &at, |_, tx, account| {
        fault::arm(tx, &Armed::of(account, word, form.tries));
    })?;
    Ok(redirect_to_account(&at, armed))
}

/// Expires or revokes an account's tokens.
#[handler]
pub(super) async fn end_tokens(
    request: &Request,
    Data(sandbox): Data<&Sandbox>,
    Form(tokens): Form<TokensForm>,
) -> Result<Response> {
    if is_cross_site(request) {
        return Ok(refusal());
    }
    let at = (tokens.platform, tokens.username);
    let ended = with_account(sandbox, &at, |simulator, tx, account| match tokens.end {
        End::Expire => simulator.grants().expire(tx, account),
        End::Revoke => simulator.grants().revoke(tx, account),
    })?;
    Ok(redirect_to_account(&at, ended))
}

#[handler]
pub(super) async fn change(
    request: &Request,
    Data(sandbox): Data<&Sandbox>,
    Form(changes): Form<BTreeMap<String, String>>,
) -> Result<Response> {
    if is_cross_site(request) {
        return Ok(refusal());
    }
    let typed = |value: String| value.parse::<u64>().map_or_else(|_| Value::from(value), Value::from);
    let changes: Map<_, _> = changes.into_iter().map(|(name, value)| (name, typed(value))).collect();
    Ok(match apply(sandbox, changes)? {
        Ok(_) => redirect("/#settings"),
        Err(error) => problem(StatusCode::BAD_REQUEST, error.to_string()),
    })
}

/// Returns whether a page of another site sent the form. Clients that are not browsers send no such header.
fn is_cross_site(request: &Request) -> bool {
    request.header("sec-fetch-site").is_some_and(|site| site != "same-origin")
}

fn refusal() -> Response {
    problem(StatusCode::FORBIDDEN, "this form was not sent by a page of the sandbox")
}

/// Redirects to the account when the action succeeded.
fn redirect_to_account((platform, username): &(String, String), done: Response) -> Response {
    if done.status().is_success() { redirect(&format!("/#{platform}-{username}")) } else { done }
}

fn redirect(place: &str) -> Response {
    StatusCode::SEE_OTHER.with_header(header::LOCATION, place).into_response()
}
