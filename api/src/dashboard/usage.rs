//! Usage of the plan.

use super::{
    context::PageContext,
    labels::AbsoluteTime,
    layout::{Layout, render},
};
use crate::{
    http::problem::Problem,
    usage::{self, Metered},
};
use askama::Template;
use poem::Response;

#[derive(Template)]
#[template(path = "dashboard/usage.html")]
struct Usage {
    layout: Layout,
    plan: String,
    start: AbsoluteTime,
    end: AbsoluteTime,
    meters: Vec<Meter>,
    overage: u64,
}

struct Meter {
    name: &'static str,
    current: u64,
    limit: Option<u64>,
}

/// Shows the page.
pub(crate) async fn show(context: &PageContext<'_>) -> Result<Response, Problem> {
    let usage = usage::read(&context.call()).await?.usage;
    let page = Usage {
        layout: context.layout("Usage", "/usage"),
        plan: usage.plan.name,
        start: AbsoluteTime(usage.billing_period.start.0),
        end: AbsoluteTime(usage.billing_period.end.0),
        meters: [
            ("API requests", usage.api_requests),
            ("Published posts", Metered { current: usage.posts.current, limit: usage.posts.included }),
            ("Connected accounts", usage.social_accounts),
            ("Webhook endpoints", usage.webhook_endpoints),
            ("API keys", usage.api_keys),
            ("Profiles", usage.profiles),
            ("Team members", usage.team_members),
            ("Posting slots", usage.slots),
            ("Bytes of media", usage.storage_bytes),
        ]
        .map(|(name, Metered { current, limit })| Meter { name, current, limit })
        .into(),
        overage: usage.posts.overage,
    };
    Ok(render(page.layout.status(), &page))
}
