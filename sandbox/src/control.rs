//! Routes of the sandbox's own control API, and the choice of the platform for all other requests.

use super::{
    SIMULATORS, Sandbox, account,
    actions::{apply, internal, problem, with_account},
    admin_page, assets, find,
    hold::{Phase, Spec},
    journal, page, pipeline,
    simulator::Simulator,
};
use poem::{
    Endpoint, EndpointExt, IntoResponse, Request, Response, Result, Route, get, handler,
    http::{HeaderValue, StatusCode, header},
    post,
    web::{Data, Html, Json, Path, Query},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::time::Duration;

pub(crate) fn routes(sandbox: Sandbox) -> impl Endpoint + 'static {
    Route::new()
        .at("/_journal", get(list_entries))
        .at("/_journal/wait", get(await_entries))
        .at("/_accounts", post(connect))
        .at("/_accounts/:platform/:username/tokens/expire", post(expire))
        .at("/_accounts/:platform/:username/tokens/revoke", post(revoke))
        .at("/_accounts/:platform/:username/revoke", post(revoke))
        .at("/_holds", post(add_hold))
        .at("/_holds/:id", get(show_hold).delete(release))
        .at("/_holds/:id/wait", get(await_hold))
        .at("/_settings", get(show_settings).post(change))
        .at("/_media/:file", get(media))
        .at("/_assets/:file", get(assets::serve))
        .at("/_panel/faults", post(admin_page::arm))
        .at("/_panel/tokens", post(admin_page::end_tokens))
        .at("/_panel/settings", post(admin_page::change))
        .at("/*rest", PlatformRouter(sandbox.clone()))
        .data(sandbox)
        .map_to_response()
        .after(|answer: Result<Response>| async { answer.map(protect) })
}

/// Adds the policy of pages to a page that has none of its own.
fn protect(mut response: Response) -> Response {
    if response.content_type().is_some_and(|mime| mime.starts_with("text/html")) {
        response
            .headers_mut()
            .entry(header::CONTENT_SECURITY_POLICY)
            .or_insert(HeaderValue::from_static(page::POLICY));
    }
    response
}

#[derive(Deserialize)]
#[serde(default)]
struct Wait {
    count: usize,
    timeout_ms: u64,
    phase: Option<String>,
}

impl Default for Wait {
    fn default() -> Self {
        Self { count: 1, timeout_ms: 30_000, phase: None }
    }
}

#[handler]
async fn list_entries(Data(sandbox): Data<&Sandbox>, filter: Query<journal::Filter>) -> Result<Json<Value>> {
    let entries = sandbox.transaction(|tx| filter.entries(tx.store).collect::<Vec<_>>()).map_err(internal)?;
    Ok(Json(json!({ "entries": entries })))
}

#[handler]
async fn await_entries(
    Data(sandbox): Data<&Sandbox>,
    filter: Query<journal::Filter>,
    wait: Query<Wait>,
) -> Result<Response> {
    let mut journal = sandbox.0.journal.subscribe();
    let deadline = tokio::time::Instant::now() + Duration::from_millis(wait.timeout_ms);
    let (mut count, mut seen) = (0, filter.after.unwrap_or(0));
    loop {
        // Marked as seen before reading, so that an entry added in between wakes this loop.
        journal.borrow_and_update();
        let looked = sandbox.transaction(|tx| {
            let new = filter.entries_since(tx.store, seen + 1).count();
            (new, journal::last(tx.store))
        });
        let (new, last) = looked.map_err(internal)?;
        (count, seen) = (count + new, seen.max(last));
        let is_over = count >= wait.count;
        if is_over || tokio::time::timeout_at(deadline, journal.changed()).await.is_err() {
            let entries =
                sandbox.transaction(|tx| filter.entries(tx.store).collect::<Vec<_>>()).map_err(internal)?;
            let status = if is_over { StatusCode::OK } else { StatusCode::REQUEST_TIMEOUT };
            return Ok(Json(json!({ "entries": entries })).with_status(status).into_response());
        }
    }
}

#[derive(Deserialize)]
struct ConnectRequest {
    platform: String,
    username: Option<String>,
    service: Option<String>,
}

#[handler]
async fn connect(Data(sandbox): Data<&Sandbox>, body: Json<ConnectRequest>) -> Response {
    let Json(ConnectRequest { platform, username, service }) = body;
    match sandbox.connect_at(&platform, username.as_deref().unwrap_or("sandbox"), service) {
        Err(error) => problem(StatusCode::BAD_REQUEST, format!("{error:#}")),
        Ok(connected) => Json(json!({
            "identity": connected.identity,
            "grant": connected.grant,
            "app": connected.app.map(|app| json!({
                "client_id": app.client_id, "client_secret": app.client_secret, "access": app.access,
            })),
        }))
        .with_status(StatusCode::CREATED)
        .into_response(),
    }
}

#[handler]
async fn expire(Data(sandbox): Data<&Sandbox>, at: Path<(String, String)>) -> Result<Response> {
    with_account(sandbox, &at.0, |simulator, tx, account| simulator.grants().expire(tx, account))
}

#[handler]
async fn revoke(Data(sandbox): Data<&Sandbox>, at: Path<(String, String)>) -> Result<Response> {
    with_account(sandbox, &at.0, |simulator, tx, account| simulator.grants().revoke(tx, account))
}

#[handler]
async fn add_hold(Data(sandbox): Data<&Sandbox>, spec: Json<Spec>) -> Response {
    let id = sandbox.0.holds.add(spec.0);
    Json(json!({ "id": id })).with_status(StatusCode::CREATED).into_response()
}

#[handler]
async fn show_hold(Data(sandbox): Data<&Sandbox>, id: Path<u64>) -> Response {
    match sandbox.0.holds.get(*id) {
        Some(hold) => Json(json!({ "id": hold.id, "phase": hold.phase().borrow().word() })).into_response(),
        None => problem(StatusCode::NOT_FOUND, "no such hold"),
    }
}

#[handler]
async fn await_hold(Data(sandbox): Data<&Sandbox>, id: Path<u64>, wait: Query<Wait>) -> Response {
    let Some(hold) = sandbox.0.holds.get(*id) else { return problem(StatusCode::NOT_FOUND, "no such hold") };
    let mut phase = hold.phase();
    let wanted = wait.phase.as_deref().unwrap_or("held");
    let reached = phase.wait_for(|phase| match wanted {
        "held" => *phase != Phase::Waiting,
        _ => phase.word() == wanted,
    });
    let reached = tokio::time::timeout(Duration::from_millis(wait.timeout_ms), reached).await;
    let status = if reached.is_ok() { StatusCode::OK } else { StatusCode::REQUEST_TIMEOUT };
    drop(reached);
    let word = phase.borrow().word();
    Json(json!({ "id": hold.id, "phase": word })).with_status(status).into_response()
}

#[handler]
async fn release(Data(sandbox): Data<&Sandbox>, id: Path<u64>) -> Response {
    match sandbox.0.holds.release(*id) {
        Some(_) => StatusCode::NO_CONTENT.into_response(),
        None => problem(StatusCode::NOT_FOUND, "no such hold"),
    }
}

#[handler]
async fn show_settings(Data(sandbox): Data<&Sandbox>) -> Result<Response> {
    let settings = sandbox.transaction(|tx| tx.settings.clone()).map_err(internal)?;
    Ok(Json(settings).into_response())
}

#[handler]
async fn change(Data(sandbox): Data<&Sandbox>, changes: Json<Map<String, Value>>) -> Result<Response> {
    Ok(match apply(sandbox, changes.0)? {
        Ok(settings) => Json(settings).into_response(),
        Err(error) => problem(StatusCode::BAD_REQUEST, error.to_string()),
    })
}

#[handler]
async fn media(Data(sandbox): Data<&Sandbox>, file: Path<String>) -> Response {
    match sandbox.0.files.read(&file) {
        Some(bytes) => {
            let mime = infer::get(&bytes).map_or("application/octet-stream", |kind| kind.mime_type());
            // An uploaded file must not run as a page of this origin.
            Response::builder()
                .content_type(mime)
                .header("x-content-type-options", "nosniff")
                .header("content-security-policy", "sandbox")
                .body(bytes)
        }
        None => problem(StatusCode::NOT_FOUND, "no such file, or too large to be kept"),
    }
}

fn index(sandbox: &Sandbox) -> Result<Html<String>> {
    let html = sandbox.transaction(|tx| page::panel(tx.store, tx.settings));
    Ok(Html(html.map_err(internal)?))
}

/// Routes by the first segment: a platform's name leads to its pages here, a host name to that platform.
/// Anything else may be the path of a client that uses the sandbox as the platform.
struct PlatformRouter(Sandbox);

impl Endpoint for PlatformRouter {
    type Output = Response;

    async fn call(&self, request: Request) -> Result<Response> {
        route(&self.0, request).await
    }
}

async fn route(sandbox: &Sandbox, request: Request) -> Result<Response> {
    let path = decode(request.uri().path());
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    if segments.is_empty() {
        return index(sandbox).map(IntoResponse::into_response);
    }
    if let Some(simulator) = segments.first().and_then(|name| find(name)) {
        return show(sandbox, simulator, &segments[1..]);
    }
    let (name, rest) = match segments.first() {
        Some(name) if name.contains('.') => (*name, path[1 + name.len()..].to_owned()),
        _ => ("", path.clone()),
    };
    let name = name.to_lowercase();
    match SIMULATORS.iter().find(|simulator| simulator.claims(&name, &rest)) {
        Some(simulator) => Ok(pipeline::handle(sandbox, *simulator, &name, &rest, request).await),
        None => Ok(problem(StatusCode::NOT_FOUND, format!("nothing here speaks for {path}"))),
    }
}

fn show(sandbox: &Sandbox, simulator: &'static dyn Simulator, rest: &[&str]) -> Result<Response> {
    let found = sandbox.transaction(|tx| {
        let (username, post) = match rest {
            [username] => (username, None),
            [username, post] => (username, Some(*post)),
            _ => return None,
        };
        let account =
            account::by_username(tx.store, simulator.id(), &simulator.validate_username(username).ok()?)?;
        match post {
            None => Some(page::account(tx, simulator, &account)),
            Some(post) => {
                let views = simulator.posts(tx, &account);
                let view = views.iter().find(|view| view.id == post)?;
                Some(page::post(tx, simulator, &account, view))
            }
        }
    });
    Ok(match found.map_err(internal)? {
        Some(html) => Html(html).into_response(),
        None => Html(page::missing()).with_status(StatusCode::NOT_FOUND).into_response(),
    })
}

/// Percent-decodes a path, in which a plus sign stays as it is.
pub(super) fn decode(path: &str) -> String {
    let query = format!("p={}", path.replace('+', "%2B").replace('&', "%26"));
    url::form_urlencoded::parse(query.as_bytes())
        .next()
        .map(|(_, path)| path.into_owned())
        .unwrap_or_default()
}
