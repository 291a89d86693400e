//! The dashboard's pages, and its forms at their limits.

use super::{
    Finding,
    scene::{Call, Row, Scene},
};
use reqwest::Method;
use tests::{login, proof::is_full};
use url::form_urlencoded;

/// Most fields of a form.
const FIELDS: u128 = 2000;

/// Returns the call of a page, or of a form that the page of this origin sends.
fn call(origin: &str, cookie: &str, method: &Method, path: &str, form: &[(String, String)]) -> Call {
    let mut headers = vec![("cookie", cookie.to_owned())];
    let mut body = Vec::new();
    if method == Method::POST {
        headers.push(("origin", origin.to_owned()));
        headers.push(("sec-fetch-site", "same-origin".to_owned()));
        headers.push(("content-type", "application/x-www-form-urlencoded".to_owned()));
        body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish().into_bytes();
    }
    Call { method: method.clone(), url: format!("{origin}/dashboard{path}"), headers, body }
}

fn fields(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A form: its path, its content in words, and its fields.
type Form = (String, &'static str, Vec<(String, String)>);

/// Returns the forms that are submitted.
fn forms() -> Vec<Form> {
    let all = |name: &str, row: Row, count| {
        (1..=count).map(|number| (name.to_owned(), row.id(number).to_string())).collect::<Vec<_>>()
    };
    let accounts = || all("account", Row::Account, 1000);
    let post = |action: &str, text: &str, count: usize| {
        let mut form = accounts();
        form.extend(fields(&[("action", action), ("is_draft", "true"), ("zone", "UTC")]));
        form.extend(std::iter::repeat_n(("text".to_owned(), text.to_owned()), count));
        form
    };
    let long = "Text @ada <#a> ".repeat(200);
    let mut forms = Vec::new();
    for path in ["/compose", "/compose/preview"] {
        forms.push((path.to_owned(), "1,000 accounts", post("preview", "Hello", 1)));
        forms.push((path.to_owned(), "1,000 accounts and ten long texts", post("preview", &long, 10)));
    }
    forms.push(("/compose".to_owned(), "1,000 accounts, once more", post("edit", &long, 10)));
    forms.push(("/compose".to_owned(), "a draft for 1,000 accounts", post("draft", "Hello", 1)));
    // More than a page has, and as many as it has.
    forms.push(("/posts/cancel".to_owned(), "posts of an account", all("post", Row::Open, FIELDS - 1)));
    forms.push(("/posts/cancel".to_owned(), "published posts", all("post", Row::Post, FIELDS - 1)));
    forms.push(("/posts/retry".to_owned(), "failed posts", all("post", Row::Dead, FIELDS - 1)));
    forms.push(("/posts/cancel".to_owned(), "a page of posts", all("post", Row::Open, 25)));
    let mut failed = all("post", Row::Failed, 1);
    failed.extend(all("post", Row::Dead, 24));
    forms.push(("/posts/retry".to_owned(), "a page of failed posts", failed));
    let group = [("status", "dead"), ("platform", "x"), ("code", "content_rejected")];
    forms.push(("/retry".to_owned(), "failed posts for a reason", fields(&group)));
    forms.push((format!("/posts/{}/cancel", Row::Scheduled.id(1)), "a post to all accounts", Vec::new()));
    forms
}

/// Sends a call, which must not fail, and returns what it cost.
async fn visit(scene: &mut Scene, name: String, input: &str, call: Call) -> Finding {
    let measured = scene.send(&call).await;
    assert!(measured.status < 500, "{name}: {}", String::from_utf8_lossy(&measured.body));
    Finding::of(name, input, call, &measured)
}

/// Opens every page with the largest of what it can show, and sends the forms.
pub(super) async fn over_dashboard(scene: &mut Scene) -> Vec<Finding> {
    let origin = scene.world.base.trim_end_matches("/api/v1").to_owned();
    let cookie = login::sign_in(&scene.world).await;
    let mut findings = Vec::new();
    for (method, path, _) in dashboard::routes() {
        if method != Method::GET {
            continue;
        }
        let mut worst: Option<Finding> = None;
        let queries: &[&str] = match path {
            "/posts" => &["", "?q=no+such+text", "?status=failed"],
            "/search" => &["?q=lorem", "?q=user", "?q=no+such+text"],
            "/calendar" => &["", "?view=week"],
            _ => &[""],
        };
        for index in 0..if path.contains('{') && is_full() { 6 } else { 3 } {
            let target = filled(scene, path, index);
            for query in queries {
                let call = call(&origin, &cookie, &method, &format!("{target}{query}"), &[]);
                let found =
                    visit(scene, format!("GET /dashboard{path}"), &format!("{target}{query}"), call).await;
                if worst.as_ref().is_none_or(|worst| found.weight() > worst.weight()) {
                    worst = Some(found);
                }
            }
            if !path.contains('{') {
                break;
            }
        }
        findings.extend(worst);
    }
    let from = format!("/compose?from={}", scene.id("posts"));
    let copied = call(&origin, &cookie, &Method::GET, &from, &[]);
    findings.push(visit(scene, "GET /dashboard/compose".to_owned(), "a copy of a post to all", copied).await);
    for (path, input, form) in forms() {
        let sent = call(&origin, &cookie, &Method::POST, &path, &form);
        findings.push(
            visit(
                scene,
                format!(
                    "POST /dashboard{}, {input}",
                    path.replace(&Row::Scheduled.id(1).to_string(), "{id}")
                ),
                input,
                sent,
            )
            .await,
        );
    }
    findings
}

/// Returns the path of a page with ids of the organization.
fn filled(scene: &Scene, path: &str, index: usize) -> String {
    let section = path.split('/').nth(1).unwrap_or_default();
    let fill = |segment: &str| {
        let collection = match (segment, section) {
            ("{target}", _) => "targets",
            ("{delivery}", _) => "deliveries",
            ("{position}", _) => return "0".to_owned(),
            ("{id}", "accounts") => "social-accounts",
            ("{id}", "analytics" | "posts") => "posts",
            ("{id}", section) => section,
            _ => return segment.to_owned(),
        };
        let ids = scene.ids.get(collection);
        let id = ids.and_then(|ids| ids.get(index.min(ids.len() - 1)));
        id.cloned().unwrap_or_else(|| uuid::Uuid::nil().to_string())
    };
    path.split('/').map(fill).collect::<Vec<_>>().join("/")
}
