//! Results of actions: numbers in the query of the page that follows, told in words.

use super::PATH;
use crate::{
    context,
    fields::{self, Fields},
};
use poem::Response;
use std::collections::BTreeMap;

/// Results, by the query parameter with their number: one, and several.
const RESULTS: [(&str, &str, &str); 15] = [
    ("retried", "target is attempted now", "targets are attempted now"),
    ("restarted", "dead target starts over", "dead targets start over"),
    ("held", "target is frozen and waits for the release", "targets are frozen and wait for the release"),
    ("ended", "target has ended", "targets have ended"),
    (
        "looked_up",
        "target may be live: a worker looks it up and ends it then",
        "targets may be live: a worker looks them up and ends them then",
    ),
    (
        "unchanged",
        "target was not changed: it has ended or does not wait",
        "targets were not changed: they have ended or do not wait",
    ),
    ("resumed", "message for an overdue row was written", "messages for overdue rows were written"),
    ("unparked", "parked message is sent again", "parked messages are sent again"),
    ("frozen", "freeze is in force", "freezes are in force"),
    ("released", "target goes on", "targets go on"),
    ("repeated", "delivery is repeated", "deliveries are repeated"),
    ("under_way", "delivery is still under way", "deliveries are still under way"),
    (
        "unreachable",
        "delivery was not repeated: its endpoint is paused or was deleted",
        "deliveries were not repeated: their endpoint is paused or was deleted",
    ),
    ("revoked", "key is revoked", "keys are revoked"),
    ("sessions", "session has ended", "sessions have ended"),
];

/// Numbers of results.
#[derive(Default)]
pub(super) struct Outcome(BTreeMap<&'static str, u64>);

impl Outcome {
    /// One result.
    pub(super) fn of(name: &'static str, number: u64) -> Self {
        Self(BTreeMap::from([(name, number)]))
    }

    /// Counts one more.
    pub(super) fn add(&mut self, name: &'static str) {
        *self.0.entry(name).or_default() += 1;
    }

    /// Sets a number.
    pub(super) fn set(&mut self, name: &'static str, number: u64) {
        self.0.insert(name, number);
    }

    /// Redirects to a page of the operators that tells the results; `query` is the rest of its query.
    pub(super) fn see<'a>(
        &self,
        path: &str,
        query: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Response {
        let numbers: Vec<_> = self.0.iter().map(|(name, number)| (*name, number.to_string())).collect();
        let numbers = fields::write(numbers.iter().map(|(name, number)| (*name, number.as_str())));
        let query = fields::write(query);
        let separator = if query.is_empty() { "" } else { "&" };
        see(&format!("{path}?{query}{separator}{numbers}"))
    }
}

/// Redirects to a page of the operators.
pub(super) fn see(path: &str) -> Response {
    context::see(&format!("{PATH}{path}"))
}

/// Tells the results in a query; `None` without any.
pub(super) fn notice(query: &Fields) -> Option<String> {
    let told: Vec<_> = RESULTS
        .iter()
        .filter_map(|(name, one, several)| {
            let number: u64 = query.given(name)?.parse().ok()?;
            Some(format!("{number} {}.", if number == 1 { one } else { several }))
        })
        .collect();
    (!told.is_empty()).then(|| told.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_told_with_their_numbers() {
        let told = |query: &str| notice(&Fields::parse(query.as_bytes()));
        assert_eq!(
            told("unchanged=1&retried=2&platform=x").unwrap(),
            "2 targets are attempted now. 1 target was not changed: it has ended or does not wait."
        );
        assert_eq!(told("resumed=0").unwrap(), "0 messages for overdue rows were written.");
        assert_eq!((told("platform=x"), told("retried=many")), (None, None));
    }

    #[test]
    fn a_result_leads_to_its_page() {
        let mut outcome = Outcome::of("ended", 1);
        outcome.add("ended");
        outcome.add("unchanged");
        let response = outcome.see("/stuck", [("code", "a b")]);
        let location = response.headers()["location"].to_str().unwrap();
        assert_eq!(location, "/dashboard/operators/stuck?code=a+b&ended=2&unchanged=1");
        assert!(outcome.0.keys().all(|name| RESULTS.iter().any(|(known, ..)| known == name)));
    }
}
