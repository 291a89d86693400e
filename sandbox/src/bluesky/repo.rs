//! Repositories: <https://docs.bsky.app/docs/api/com-atproto-repo-create-record> and its neighbours.
//!
//! All writes of a request are checked before the first is applied. CIDs of records are real, so that a
//! client can compute them; commits have an id but no Merkle tree.

use super::{
    Account, Bluesky, Outcome, Request, Response, actor_account,
    blobs::Blob,
    document, input,
    lexicon::{self, BlobRef},
    member, refusal, required,
    session::admit,
    throttled, video,
};
use crate::exchange::Cause::{self, Protocol, State};
use crate::{Transaction, fault, rate_limit::RateLimit, simulator::Simulator, store::Record};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The collection of posts.
pub(super) const POSTS: &str = "app.bsky.feed.post";

const POINTS_HOUR: RateLimit = RateLimit { name: "bluesky.points_hour", limit: 5_000, seconds: 3_600 };
const POINTS_DAY: RateLimit = RateLimit { name: "bluesky.points_day", limit: 35_000, seconds: 86_400 };

/// A stored record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Stored {
    /// Id of the owner.
    pub(super) did: String,
    /// Collection, which is its type.
    pub(super) collection: String,
    pub(super) rkey: String,
    pub(super) cid: String,
    /// Content.
    pub(super) value: Value,
    /// Time when it was first stored.
    pub(super) indexed_at: DateTime<Utc>,
}

impl Record for Stored {
    const TABLE: &'static str = "bluesky.record";

    fn key(&self) -> String {
        format!("{}/{}/{}", self.did, self.collection, self.rkey)
    }
}

impl Stored {
    pub(super) fn uri(&self) -> String {
        format!("at://{}", self.key())
    }
}

/// Latest commit of a repository.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Head {
    did: String,
    rev: String,
    cid: String,
    micros: u64,
}

impl Record for Head {
    const TABLE: &'static str = "bluesky.head";

    fn key(&self) -> String {
        self.did.clone()
    }
}

/// Returns the number of records that reply to, quote, like or repost a record.
pub(super) fn count_links(tx: &Transaction, kind: &str, uri: &str) -> u64 {
    tx.store.linked_keys(&format!("bluesky.{kind}"), uri).count() as u64
}

/// Returns the addresses of the records that reply to, quote, like or repost a record.
pub(super) fn links(tx: &Transaction, kind: &str, uri: &str) -> Vec<String> {
    tx.store.linked_keys(&format!("bluesky.{kind}"), uri).collect()
}

/// Returns an account's posts, newest first.
pub(super) fn posts<'a>(tx: &'a Transaction, did: &str) -> impl Iterator<Item = Stored> + use<'a> {
    tx.store.with_prefix::<Stored>(&format!("{did}/{POSTS}/")).rev()
}

/// Returns the record at an address.
pub(super) fn at(tx: &Transaction, uri: &str) -> Option<Stored> {
    let (authority, rest) = uri.strip_prefix("at://")?.split_once('/')?;
    let account = actor_account(tx, authority)?;
    tx.store.get(&format!("{}/{rest}", account.id))
}

/// One write of a commit.
struct Write {
    verb: Verb,
    collection: String,
    rkey: String,
    value: Value,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Create,
    Update,
    Delete,
}

/// Result of one write.
struct Written {
    verb: Verb,
    uri: String,
    cid: String,
    status: &'static str,
}

/// Result of a commit.
struct Committed {
    commit: Option<Value>,
    written: Vec<Written>,
    published: Vec<String>,
    fault: Option<fault::Fault>,
}

impl Committed {
    fn respond(self, body: &Value) -> Response {
        let mut response = Response::json(200, body).with_fault(self.fault);
        response.published = self.published.into();
        response
    }
}

/// `createRecord`.
pub(super) fn create(tx: &mut Transaction, request: &Request) -> Outcome {
    let account = admit(tx, request)?;
    let body = input(request)?;
    let rkey = match &body["rkey"] {
        Value::Null => next_tid(tx, &account.id),
        _ => member(&body, "rkey")?.to_owned(),
    };
    let write = Write {
        verb: Verb::Create,
        collection: member(&body, "collection")?.to_owned(),
        rkey,
        value: body["record"].clone(),
    };
    one(tx, request, &account, &body, write)
}

/// `putRecord`. Writing the same record again changes nothing, and the response has no `commit`.
pub(super) fn put(tx: &mut Transaction, request: &Request) -> Outcome {
    let account = admit(tx, request)?;
    let body = input(request)?;
    let (collection, rkey) = (member(&body, "collection")?.to_owned(), member(&body, "rkey")?.to_owned());
    let present: Option<Stored> = tx.store.get(&format!("{}/{collection}/{rkey}", account.id));
    let verb = if present.is_some() { Verb::Update } else { Verb::Create };
    // Null differs from absent here: it demands that there is no record yet.
    if let Some(expected) = body.get("swapRecord") {
        let found = present.as_ref().map(|record| record.cid.as_str());
        if expected.as_str() != found {
            let message = format!("Record was at {}", found.unwrap_or("null"));
            return Err(refusal(State, 400, "InvalidSwap", &message));
        }
    }
    one(tx, request, &account, &body, Write { verb, collection, rkey, value: body["record"].clone() })
}

fn one(tx: &mut Transaction, request: &Request, account: &Account, body: &Value, write: Write) -> Outcome {
    if !body["record"].is_object() {
        return Err(refusal(Protocol, 400, "InvalidRequest", "Input must have the property \"record\""));
    }
    let committed = commit(tx, request, account, body, vec![write])?;
    let written = committed.written.first().expect("one write, one result");
    let mut reply = json!({ "uri": written.uri, "cid": written.cid, "validationStatus": written.status });
    if let Some(commit) = &committed.commit {
        reply["commit"] = commit.clone();
    }
    Ok(committed.respond(&reply))
}

/// `deleteRecord`. Succeeds if the record does not exist.
pub(super) fn delete(tx: &mut Transaction, request: &Request) -> Outcome {
    let account = admit(tx, request)?;
    let body = input(request)?;
    let (collection, rkey) = (member(&body, "collection")?.to_owned(), member(&body, "rkey")?.to_owned());
    let present: Option<Stored> = tx.store.get(&format!("{}/{collection}/{rkey}", account.id));
    if let Some(expected) = body["swapRecord"].as_str() {
        let found = present.as_ref().map_or("null", |record| record.cid.as_str());
        if expected != found {
            return Err(refusal(State, 400, "InvalidSwap", &format!("Record was at {found}")));
        }
    }
    let writes = match present {
        Some(_) => vec![Write { verb: Verb::Delete, collection, rkey, value: Value::Null }],
        None => Vec::new(),
    };
    let committed = commit(tx, request, &account, &body, writes)?;
    let reply = committed.commit.as_ref().map_or_else(|| json!({}), |commit| json!({ "commit": commit }));
    Ok(committed.respond(&reply))
}

/// `applyWrites`: all writes or none.
pub(super) fn apply(tx: &mut Transaction, request: &Request) -> Outcome {
    let account = admit(tx, request)?;
    let body = input(request)?;
    let Some(list) = body["writes"].as_array() else {
        return Err(refusal(Protocol, 400, "InvalidRequest", "Input must have the property \"writes\""));
    };
    if list.len() > 200 {
        return Err(refusal(Protocol, 400, "InvalidRequest", "Too many writes. Max: 200"));
    }
    let mut writes = Vec::new();
    for write in list {
        let collection = member(write, "collection")?.to_owned();
        let verb =
            match write["$type"].as_str().and_then(|kind| kind.strip_prefix("com.atproto.repo.applyWrites#"))
            {
                Some("create") => Verb::Create,
                Some("update") => Verb::Update,
                Some("delete") => Verb::Delete,
                _ => {
                    return Err(refusal(
                        Protocol,
                        400,
                        "InvalidRequest",
                        "Invalid app.bsky write: unknown $type of a write",
                    ));
                }
            };
        let rkey = match &write["rkey"] {
            Value::Null if verb == Verb::Create => next_tid(tx, &account.id),
            _ => member(write, "rkey")?.to_owned(),
        };
        if verb != Verb::Delete && !write["value"].is_object() {
            return Err(refusal(
                Protocol,
                400,
                "InvalidRequest",
                "Input/writes must have the property \"value\"",
            ));
        }
        writes.push(Write { verb, collection, rkey, value: write["value"].clone() });
    }
    let committed = commit(tx, request, &account, &body, writes)?;
    let results = committed.written.iter().map(|written| match written.verb {
        Verb::Delete => json!({ "$type": "com.atproto.repo.applyWrites#deleteResult" }),
        verb => json!({
            "$type": format!("com.atproto.repo.applyWrites#{}Result", if verb == Verb::Create { "create" } else { "update" }),
            "uri": written.uri,
            "cid": written.cid,
            "validationStatus": written.status,
        }),
    });
    let mut reply = json!({ "results": results.collect::<Vec<_>>() });
    if let Some(commit) = &committed.commit {
        reply["commit"] = commit.clone();
    }
    Ok(committed.respond(&reply))
}

/// Checks all writes, then applies them.
fn commit(
    tx: &mut Transaction,
    request: &Request,
    account: &Account,
    body: &Value,
    writes: Vec<Write>,
) -> Result<Committed, Response> {
    let repo = member(body, "repo")?;
    if actor_account(tx, repo).is_none_or(|named| named.id != account.id) {
        return Err(refusal(State, 401, "AuthRequired", "Authentication Required"));
    }
    let head = tx.store.get::<Head>(&account.id).unwrap_or_default();
    if let Some(expected) = body["swapCommit"].as_str().filter(|expected| *expected != head.cid) {
        tracing::debug!(expected, found = head.cid, "The repository has moved");
        return Err(refusal(State, 400, "InvalidSwap", &format!("Commit was at {}", head.cid)));
    }

    let mut texts = Vec::new();
    let mut checked = Vec::new();
    for mut write in writes {
        let status = if write.verb == Verb::Delete { "valid" } else { check(&mut write, &body["validate"])? };
        if write.collection == POSTS && write.verb != Verb::Delete {
            texts.push(write.value["text"].as_str().unwrap_or_default().to_owned());
        }
        checked.push((write, status));
    }
    let fault = Bluesky.trigger_fault(tx, request, &account.username, &texts.join("\n"))?;
    let cost = checked.iter().map(|(write, _)| match write.verb {
        Verb::Create => 3,
        Verb::Update => 2,
        Verb::Delete => 1,
    });
    let cost = cost.sum();
    for rule in [POINTS_HOUR, POINTS_DAY] {
        tx.spend(rule, &account.id, cost).map_err(|quota| throttled(tx, quota))?;
    }

    let mut committed = Committed { commit: None, written: Vec::new(), published: Vec::new(), fault };
    let mut changes = Vec::new();
    let mut touched = BTreeSet::new();
    for (write, status) in checked {
        let key = format!("{}/{}/{}", account.id, write.collection, write.rkey);
        let uri = format!("at://{key}");
        let present: Option<Stored> = tx.store.get(&key);
        let is_again = !touched.insert(key);
        if write.verb == Verb::Delete {
            let Some(present) = present else {
                return Err(refusal(State, 400, "InvalidRequest", &format!("Could not find record: {uri}")));
            };
            committed.written.push(Written { verb: Verb::Delete, uri, cid: String::new(), status });
            changes.push((present, true));
            continue;
        }
        // The real server fails on its own tree here, so a 500 never means "not created".
        if write.verb == Verb::Create && (present.is_some() || is_again) {
            return Err(refusal(State, 500, "InternalServerError", "Internal Server Error"));
        }
        if write.verb == Verb::Update && present.is_none() {
            return Err(refusal(State, 500, "InternalServerError", "Internal Server Error"));
        }
        let cid = lexicon::cid(&write.value).map_err(|error| {
            refusal(Protocol, 400, "InvalidRequest", &format!("Invalid {} record: {error}", write.collection))
        })?;
        let blobs = if status == "valid" {
            lexicon::check(&write.collection, &write.value).unwrap_or_default()
        } else {
            lexicon::blobs(&write.value)
        };
        for blob in blobs {
            present_blob(tx, account, &blob)?;
        }
        let is_same = present.as_ref().is_some_and(|present| present.cid == cid);
        if !is_same {
            if present.is_none() && write.collection == POSTS {
                committed.published.push(uri.clone());
            }
            let indexed_at = present.as_ref().map_or(tx.now, |present| present.indexed_at);
            let stored = Stored {
                did: account.id.clone(),
                collection: write.collection,
                rkey: write.rkey,
                cid: cid.clone(),
                value: write.value,
                indexed_at,
            };
            changes.push((stored, false));
        }
        committed.written.push(Written { verb: write.verb, uri, cid, status });
    }
    if changes.is_empty() {
        return Ok(committed);
    }

    let mut digest = Vec::new();
    for (record, is_gone) in changes {
        if let Some(before) = tx.store.get::<Stored>(&record.key()) {
            update_links(tx, &before, false);
        }
        digest.push(json!([record.uri(), if is_gone { Value::Null } else { json!(record.cid) }]));
        if is_gone {
            tx.store.remove::<Stored>(&record.key());
        } else {
            update_links(tx, &record, true);
            tx.store.put(&record);
        }
    }
    let rev = next_tid(tx, &account.id);
    let says = json!({ "did": account.id, "version": 3, "rev": rev, "prev": head.cid, "data": digest });
    let cid = lexicon::cid(&says).expect("a commit is plain data");
    let head = tx.store.get::<Head>(&account.id).unwrap_or_default();
    tx.store.put(&Head { did: account.id.clone(), rev: rev.clone(), cid: cid.clone(), ..head });
    committed.commit = Some(json!({ "cid": cid, "rev": rev }));
    Ok(committed)
}

/// Checks that a record may be written to its place.
fn check(write: &mut Write, validate: &Value) -> Result<&'static str, Response> {
    let refused = |cause: Cause, message: String| refusal(cause, 400, "InvalidRequest", &message);
    let collection = write.collection.as_str();
    let invalid = |message: String| refused(Protocol, message);
    if !lexicon::is_nsid(collection) {
        return Err(invalid("Input/collection must be a valid nsid".into()));
    }
    if !lexicon::is_record_key(&write.rkey) {
        return Err(invalid("Input/rkey must be a valid Record Key".into()));
    }
    if write.value.get("$type").is_none() {
        write.value["$type"] = json!(collection);
    }
    if write.value["$type"] != collection {
        let found = write.value["$type"].as_str().unwrap_or("no text");
        return Err(invalid(format!("Invalid $type: expected {collection}, got {found}")));
    }
    // Gates have the key of their post; likes, reposts and posts have timestamp identifiers.
    if collection.starts_with("app.bsky.feed.")
        && lexicon::is_known(collection)
        && !lexicon::is_tid(&write.rkey)
    {
        return Err(invalid(format!(
            "Invalid record key for {collection}: Invalid TID string (got \"{}\") at $",
            write.rkey
        )));
    }
    if *validate == false {
        return Ok("unknown");
    }
    if !lexicon::is_known(collection) {
        return match validate {
            Value::Bool(true) => Err(invalid(format!("Unknown lexicon type: {collection}"))),
            _ => Ok("unknown"),
        };
    }
    lexicon::check(collection, &write.value)
        .map_err(|error| refused(error.cause, format!("Invalid {collection} record: {}", error.message)))?;
    Ok("valid")
}

/// Checks that a blob exists and fits its place in the record.
fn present_blob(tx: &Transaction, account: &Account, wanted: &BlobRef) -> Result<(), Response> {
    let found = tx
        .store
        .get::<Blob>(&format!("{}/{}", account.id, wanted.cid))
        .filter(|blob| blob.job.as_deref().is_none_or(|job| video::is_done(tx, job)));
    let Some(found) = found else {
        return Err(refusal(State, 400, "BlobNotFound", &format!("Could not find blob: {}", wanted.cid)));
    };
    if found.mime != wanted.mime {
        let message = format!(
            "Referenced Mimetype does not match stored blob. Expected: {}, Got: {}",
            found.mime, wanted.mime
        );
        return Err(refusal(Protocol, 400, "InvalidMimeType", &message));
    }
    if found.size != wanted.size {
        let message = format!(
            "Referenced Size does not match stored blob. Expected: {}, Got: {}",
            found.size, wanted.size
        );
        return Err(refusal(Protocol, 400, "InvalidSize", &message));
    }
    let fits = |pattern: &String| match pattern.strip_suffix('*') {
        Some(kind) => found.mime.starts_with(kind),
        None => found.mime == *pattern,
    };
    if !wanted.accept.is_empty() && !wanted.accept.iter().any(fits) {
        let message = format!(
            "Wrong type of file. It is {} but it must match {}.",
            found.mime,
            wanted.accept.join(", ")
        );
        return Err(refusal(lexicon::schema("accept", &wanted.place), 400, "InvalidMimeType", &message));
    }
    if let Some(max) = wanted.max_bytes.filter(|max| found.size > *max) {
        let message = format!(
            "This file is too large. It is {} bytes but the maximum size is {max} bytes.",
            found.size
        );
        return Err(refusal(lexicon::schema("maxSize", &wanted.place), 400, "BlobTooLarge", &message));
    }
    Ok(())
}

/// Adds a record to the indexes of the records that it refers to, or removes it.
fn update_links(tx: &mut Transaction, record: &Stored, is_new: bool) {
    let value = &record.value;
    let kinds = [
        ("reply", &value["reply"]["parent"]["uri"]),
        ("quote", &value["embed"]["record"]["uri"]),
        ("quote", &value["embed"]["record"]["record"]["uri"]),
        ("like", &value["subject"]["uri"]),
        ("repost", &value["subject"]["uri"]),
    ];
    for (kind, of) in kinds {
        let of = of.as_str().filter(|_| match kind {
            "like" | "repost" => record.collection == format!("app.bsky.feed.{kind}"),
            _ => record.collection == POSTS,
        });
        if let Some(of) = of {
            let index = format!("bluesky.{kind}");
            if is_new {
                tx.store.link(&index, of, &record.uri());
            } else {
                tx.store.unlink(&index, of, &record.uri());
            }
        }
    }
}

/// Returns the next timestamp identifier of a repository; none is given twice.
fn next_tid(tx: &mut Transaction, did: &str) -> String {
    let head = tx.store.get::<Head>(did).unwrap_or_default();
    let micros = u64::try_from(tx.now.timestamp_micros()).unwrap_or(0).max(head.micros + 1);
    tx.store.put(&Head { did: did.to_owned(), micros, ..head });
    lexicon::tid(micros, 7)
}

/// `getRecord`: sees every write at once.
pub(super) fn get(tx: &mut Transaction, request: &Request) -> Outcome {
    let (repo, collection, rkey) =
        (required(request, "repo")?, required(request, "collection")?, required(request, "rkey")?);
    let account = found(tx, repo)?;
    let uri = format!("at://{}/{collection}/{rkey}", account.id);
    let record: Option<Stored> = tx.store.get(&format!("{}/{collection}/{rkey}", account.id));
    let record = record
        .filter(|record| request.query("cid").is_none_or(|cid| cid == record.cid))
        .ok_or_else(|| refusal(State, 400, "RecordNotFound", &format!("Could not locate record: {uri}")))?;
    Ok(Response::json(200, &json!({ "uri": uri, "cid": record.cid, "value": record.value })))
}

/// `listRecords`: newest first by key, unless reversed.
pub(super) fn list(tx: &mut Transaction, request: &Request) -> Outcome {
    let (repo, collection) = (required(request, "repo")?, required(request, "collection")?);
    let account = found(tx, repo)?;
    let max = limit(request, 50)?;
    let is_reverse = request.query("reverse") == Some("true");
    let cursor = request.query("cursor");
    let all = tx.store.with_prefix::<Stored>(&format!("{}/{collection}/", account.id));
    let is_past = |record: &Stored| {
        cursor.is_none_or(|cursor| {
            if is_reverse { record.rkey.as_str() > cursor } else { record.rkey.as_str() < cursor }
        })
    };
    let records: Vec<Stored> = if is_reverse {
        all.filter(is_past).take(max).collect()
    } else {
        all.rev().filter(is_past).take(max).collect()
    };
    let mut body = json!({ "records": records.iter().map(|record| {
        json!({ "uri": record.uri(), "cid": record.cid, "value": record.value })
    }).collect::<Vec<_>>() });
    if let Some(last) = records.last() {
        body["cursor"] = json!(last.rkey);
    }
    Ok(Response::json(200, &body))
}

/// `describeRepo`.
pub(super) fn describe(tx: &mut Transaction, request: &Request) -> Outcome {
    let account = found(tx, required(request, "repo")?)?;
    let records = tx.store.with_prefix::<Stored>(&format!("{}/", account.id));
    let collections: BTreeSet<String> = records.map(|record| record.collection).collect();
    Ok(Response::json(
        200,
        &json!({
            "handle": account.username,
            "did": account.id,
            "didDoc": document(&account),
            "collections": collections,
            "handleIsCorrect": true,
        }),
    ))
}

fn found(tx: &Transaction, repo: &str) -> Result<Account, Response> {
    actor_account(tx, repo)
        .ok_or_else(|| refusal(State, 400, "InvalidRequest", &format!("Could not find repo: {repo}")))
}

/// Returns the parameter `limit`, from 1 to 100.
pub(super) fn limit(request: &Request, default: usize) -> Result<usize, Response> {
    match request.query("limit").map(str::parse::<usize>) {
        None => Ok(default),
        Some(Ok(max @ 1..=100)) => Ok(max),
        Some(_) => Err(refusal(State, 400, "InvalidRequest", "Error: limit must be between 1 and 100")),
    }
}
