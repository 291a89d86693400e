//! Look-up of organizations and members.
//! <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/organizations/organization-lookup-api>
//! <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/posts-atmention-search-api>
//!
//! The organizations are the pages of the sandbox's members; each has its vanity name as the domain
//! `{name}.example`, and all members follow all pages.

use super::{
    Caller, ID, Outcome, Request, Response, Transaction, avatar, forbidden, invalid, page_of, paged, view,
};
use crate::account::{Account, FAMILY_NAME};
use crate::exchange::Cause::{Protocol, State};
use serde_json::{Map, Value, json};

/// Members in one answer of the typeahead.
const FOLLOWERS: usize = 10;

fn members(tx: &Transaction) -> impl Iterator<Item = Account> {
    tx.store.with_prefix("").filter(|account: &Account| account.platform == ID)
}

/// Returns an organization as those see it who do not administer it.
fn public_view(account: &Account) -> Value {
    let mut organization = view(account);
    let vanity_name = organization["vanityName"].as_str().unwrap_or_default();
    organization["localizedWebsite"] = json!(format!("https://{vanity_name}.example"));
    organization["primaryOrganizationType"] = json!("NONE");
    organization["locations"] = json!([]);
    organization
}

/// `GET /rest/organizations?q=vanityName` or `emailDomain`. Both are compared as a whole, without regard to case.
pub(super) fn find(tx: &mut Transaction, request: &Request, caller: &Caller) -> Outcome {
    caller.check_may(&["rw_organization_admin"], "organizations.FINDER")?;
    let by = request.query("q").unwrap_or_default();
    let suffix = match by {
        "vanityName" => "",
        "emailDomain" => ".example",
        _ => return Err(invalid(State, &format!("organizations have no finder \"{by}\""))),
    };
    let wanted = request.query(by).filter(|wanted| !wanted.is_empty());
    let wanted = wanted.ok_or_else(|| invalid(Protocol, &format!("{by} is required")))?.to_lowercase();
    let found = members(tx).map(|account| public_view(&account)).filter(|organization| {
        let vanity_name = organization["vanityName"].as_str().unwrap_or_default();
        format!("{vanity_name}{suffix}").to_lowercase() == wanted
    });
    let found = found.collect();
    paged(request, found)
}

/// `GET /rest/organizationsLookup?ids=List(…)`: organizations that the member need not administer.
pub(super) fn lookup(tx: &mut Transaction, request: &Request, _: &Caller) -> Outcome {
    let asked = request.query("ids").and_then(|ids| ids.strip_prefix("List(")?.strip_suffix(')'));
    let asked: Vec<&str> =
        asked.ok_or_else(|| invalid(Protocol, "ids has to be List(…)"))?.split(',').collect();
    if asked.iter().any(|id| id.parse::<u64>().is_err()) {
        return Err(invalid(Protocol, "ids has to be a list of numbers"));
    }
    let found = members(tx).map(|account| (page_of(&account), account));
    let results: Map<String, Value> = found
        .filter(|(id, _)| asked.contains(&id.as_str()))
        .map(|(id, account)| (id, public_view(&account)))
        .collect();
    Ok(Response::json(200, &json!({ "results": results, "statuses": {}, "errors": {} })))
}

/// `GET /rest/peopleTypeahead?q=organizationFollowers`: followers of a page whose first or last name begins with
/// the keywords.
pub(super) fn followers(tx: &mut Transaction, request: &Request, caller: &Caller) -> Outcome {
    caller.check_may(&["r_organization_followers"], "peopleTypeahead.FINDER-organizationFollowers")?;
    if request.query("q") != Some("organizationFollowers") {
        return Err(invalid(Protocol, "q has to be organizationFollowers"));
    }
    let page = format!("urn:li:organization:{}", page_of(&caller.account));
    if request.query("organization") != Some(&page) {
        return Err(forbidden("peopleTypeahead.FINDER-organizationFollowers"));
    }
    let keywords = request.query("keywords").unwrap_or_default().to_lowercase();
    let is_name = |c: char| c.is_alphabetic() || " '-.".contains(c);
    if keywords.is_empty() || !keywords.chars().all(is_name) {
        return Err(invalid(Protocol, "keywords has to be the beginning of a name"));
    }
    let found = members(tx)
        .filter(|member| member.id != caller.account.id && member.username.starts_with(&keywords))
        .take(FOLLOWERS)
        .map(|member| {
            json!({
                "member": format!("urn:li:person:{}", member.id),
                "firstName": member.given_name(),
                "lastName": FAMILY_NAME,
                "headline": "Member of the sandbox",
                "photo": avatar(&member),
            })
        });
    let found = found.collect();
    paged(request, found)
}
