//! Usage of the plan.

use super::{
    context::PageContext,
    labels::AbsoluteTime,
    layout::{Layout, render},
};
use crate::{http::problem::Problem, usage};
use askama::Template;
use poem::Response;

#[derive(Template)]
#[template(path = "dashboard/usage.html")]
struct Usage {
    layout: Layout,
    plan: String,
    start: AbsoluteTime,
    end: AbsoluteTime,
    meters: [Meter; 3],
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
            Meter {
                name: "API requests",
                current: usage.api_requests.current,
                limit: usage.api_requests.limit,
            },
            Meter { name: "Published posts", current: usage.posts.current, limit: usage.posts.included },
            Meter {
                name: "Connected accounts",
                current: usage.social_accounts.current,
                limit: usage.social_accounts.limit,
            },
        ],
        overage: usage.posts.overage,
    };
    Ok(render(page.layout.status(), &page))
}
