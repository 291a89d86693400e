//! What is used of the plan.

use super::{
    frame::{Frame, render},
    visit::Visit,
    words::Clock,
};
use crate::{http::problem::Problem, usage};
use askama::Template;
use poem::Response;

#[derive(Template)]
#[template(path = "dashboard/usage.html")]
struct Usage {
    frame: Frame,
    plan: String,
    start: Clock,
    end: Clock,
    meters: [Meter; 3],
    overage: u64,
}

struct Meter {
    name: &'static str,
    current: u64,
    limit: Option<u64>,
}

/// Shows the page.
pub(crate) async fn show(visit: &Visit<'_>) -> Result<Response, Problem> {
    let usage = usage::read(&visit.call()).await?.usage;
    let page = Usage {
        frame: visit.frame("Usage", "/usage"),
        plan: usage.plan.name,
        start: Clock(usage.billing_period.start.0),
        end: Clock(usage.billing_period.end.0),
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
    Ok(render(page.frame.status(), &page))
}
