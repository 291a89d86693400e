//! Each rule by which a simulator refuses content is known to the check.
//!
//! A simulator names the cause of each refusal (`Cause` in its sources), and the key of a rule about content stands in the
//! journal. [`SAMPLES`] has a post for each of them: it is published without a check, and the simulator refuses it by that
//! rule; so the sample is real. Then the check has to find an error in it. A rule without a sample fails, as does a
//! sample without a rule.

use super::samples::{Proof, SAMPLES, Sample};
use crate::fixtures::{Actor, World};
use domain::Severity;
use platforms::{
    Adapter, PublishRequest, ReplyTo,
    check::{AccountKind, ContainerContent, check_for},
};
use regex::Regex;
use std::{collections::BTreeSet, fs, path::Path};

/// Sources that several simulators share: the file, and the platforms.
const SHARED: &[(&str, &[&str])] = &[("container.rs", &["instagram", "threads"])];

/// Returns the keys of a simulator's rules about content: those in its code, and those of its schemas.
fn rules(platform: &str) -> BTreeSet<String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").join("sandbox/src");
    let mut files = vec![sources.join(format!("{platform}.rs"))];
    files
        .extend(fs::read_dir(sources.join(platform)).into_iter().flatten().flatten().map(|file| file.path()));
    let shared = SHARED.iter().filter(|(_, platforms)| platforms.contains(&platform));
    files.extend(shared.map(|(file, _)| sources.join(file)));
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    let mut all = sandbox::schema_rules(platform);
    for file in files {
        let source = fs::read_to_string(&file).expect("a source");
        for (at, name) in source.match_indices("Content(") {
            let argument = argument(&source[at + name.len()..]);
            let keys: Vec<_> = LITERAL.captures_iter(argument).map(|found| found[1].to_owned()).collect();
            assert!(!keys.is_empty(), "{}: Content({argument}) has no literal as its key", file.display());
            all.extend(keys);
        }
    }
    all
}

static LITERAL: std::sync::LazyLock<Regex> =
    std::sync::LazyLock::new(|| Regex::new("\"([a-z_]+)\"").expect("a pattern"));

/// Returns the text up to the parenthesis that closes.
fn argument(rest: &str) -> &str {
    let mut depth = 1;
    for (at, c) in rest.char_indices() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if depth == 0 {
            return &rest[..at];
        }
    }
    panic!("{rest:.40} has no end")
}

/// Publishes a sample without a check, and returns the rules by which the simulator refused it, and how it ended.
async fn broken_by(actor: &Actor, sample: &Sample) -> (Vec<String>, String) {
    let before = actor.rules().await.len();
    let mut posts = posts(actor, sample);
    let reply = if posts.len() == 2 { posts.pop() } else { None };
    let mut ended = Ok(String::new());
    for post in posts {
        ended = actor.publish(&post).await;
        if let Some(reply) = &reply {
            let id = ended.expect("the post above a reply is published");
            let reply = PublishRequest {
                position: 1,
                reply_to: Some(ReplyTo { root: id.clone(), parent: id }),
                ..reply.clone()
            };
            ended = actor.publish(&reply).await;
        }
    }
    // A post does not fail when a call after its publication is refused.
    (actor.rules().await.split_off(before), ended.unwrap_or_else(|failure| failure.message))
}

/// Returns the post of a sample, or a post and its reply.
fn posts(actor: &Actor, sample: &Sample) -> Vec<PublishRequest> {
    match sample.proof {
        Proof::Post(make) | Proof::TooLarge(make) | Proof::Fitted(make) | Proof::Kept(make) => {
            vec![make(actor)]
        }
        Proof::Reply(make) => vec![actor.post(sample.rule), make(actor)],
        Proof::Unreachable(why) => {
            assert!(!why.is_empty(), "{}: {}", sample.platform, sample.rule);
            Vec::new()
        }
    }
}

/// Returns the most severe of what the check finds in the sample.
fn told(actor: &Actor, sample: &Sample) -> Option<Severity> {
    let posts = posts(actor, sample);
    let contents: Vec<_> =
        posts.iter().map(|post| ContainerContent { text: &post.text, media: &post.media }).collect();
    let account = AccountKind { account_type: &actor.account.account_type, scopes: &[] };
    let settings = posts.last().map(|post| post.settings.clone()).unwrap_or_default();
    let issues = check_for(actor.platform, account, &contents, &settings);
    let is_refused = issues.iter().any(|issue| issue.severity == Severity::Error);
    issues.first().map(|_| if is_refused { Severity::Error } else { Severity::Warning })
}

/// Publishes a sample of each rule about content, each of which the check refuses as well.
pub(crate) async fn each_rule_about_content_is_checked(platform: &'static Adapter) {
    let name = platform.id;
    let samples: Vec<_> = SAMPLES.iter().filter(|sample| sample.platform == name).collect();
    let (known, sampled) = (rules(name), samples.iter().map(|sample| sample.rule.to_owned()).collect());
    let missing: Vec<_> = known.difference(&sampled).collect();
    let stale: Vec<_> = sampled.difference(&known).collect();
    assert!(missing.is_empty() && stale.is_empty(), "{name}: no samples of {missing:?}, no rules {stale:?}");
    let world = World::start().await;
    let actor = world.actor(platform);
    let mut wrong = Vec::new();
    for sample in samples {
        let (is_broken, is_known) = match sample.proof {
            Proof::Unreachable(_) => continue,
            Proof::TooLarge(_) => (None, told(&actor, sample) == Some(Severity::Error)),
            Proof::Post(_) | Proof::Reply(_) => (Some(true), told(&actor, sample) == Some(Severity::Error)),
            Proof::Kept(_) => (Some(false), told(&actor, sample).is_some()),
            Proof::Fitted(make) => {
                let post = make(&actor);
                (Some(true), platform.fits(0, &post.settings, &post.media).iter().any(Option::is_some))
            }
        };
        if let Some(is_broken) = is_broken {
            let (broken, ended) = broken_by(&actor, sample).await;
            let is_expected = broken.first().map(String::as_str) == is_broken.then_some(sample.rule);
            if !is_expected {
                wrong.push(format!("{}: the sample broke {broken:?} and ended with: {ended}", sample.rule));
            }
        }
        if !is_known {
            wrong.push(format!("{}: the check lets it pass", sample.rule));
        }
    }
    assert!(wrong.is_empty(), "{name}: {wrong:#?}");
}
