//! Repositories: <https://docs.bsky.app/docs/api/com-atproto-repo-create-record> and its neighbours.
//!
//! A write is checked as a whole before anything of it is done. CIDs are real ones, so that a client
//! that computes them agrees; commits are addresses of what they would say, without a tree beneath.

use super::{
    Account, Answer, Bluesky, Call, ID, actor_account, document, input,
    lexicon::{self, BlobRef},
    member, metered, refusal, required,
    session::admit,
    throttled, video,
};
use crate::{Turn, fault, files::Upload, host::Host, shelf::Record, window::Rule};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The largest blob that a server takes.
pub(super) const BLOB_BYTES: u64 = 52_428_800;

/// The collection of posts.
pub(super) const POSTS: &str = "app.bsky.feed.post";

const POINTS_HOUR: Rule = Rule { name: "bluesky.points_hour", limit: 5_000, seconds: 3_600 };
const POINTS_DAY: Rule = Rule { name: "bluesky.points_day", limit: 35_000, seconds: 86_400 };
const BLOBS_DAY: Rule = Rule { name: "bluesky.blobs_day", limit: 1_000, seconds: 86_400 };

/// A record as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Stored {
    /// Whose it is.
    pub(super) did: String,
    /// What kind it is.
    pub(super) collection: String,
    /// Its key.
    pub(super) rkey: String,
    /// Its CID.
    pub(super) cid: String,
    /// What it says.
    pub(super) value: Value,
    /// When it was first seen.
    pub(super) indexed_at: DateTime<Utc>,
}

impl Record for Stored {
    const SHELF: &'static str = "bluesky.record";

    fn key(&self) -> String {
        format!("{}/{}/{}", self.did, self.collection, self.rkey)
    }
}

impl Stored {
    /// Its address.
    pub(super) fn uri(&self) -> String {
        format!("at://{}", self.key())
    }
}

/// Where a repository stands.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Head {
    did: String,
    rev: String,
    cid: String,
    micros: u64,
}

impl Record for Head {
    const SHELF: &'static str = "bluesky.head";

    fn key(&self) -> String {
        self.did.clone()
    }
}

/// Bytes that an account uploaded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Blob {
    /// Whose.
    pub(super) did: String,
    /// Their CID.
    pub(super) cid: String,
    /// What they are.
    pub(super) mime: String,
    /// How many.
    pub(super) size: u64,
    /// Where they are kept, in order.
    pub(super) files: Vec<String>,
    /// The job that has to end before they are there.
    pub(super) job: Option<String>,
}

impl Record for Blob {
    const SHELF: &'static str = "bluesky.blob";

    fn key(&self) -> String {
        format!("{}/{}", self.did, self.cid)
    }
}

impl Blob {
    /// As records refer to it.
    pub(super) fn reference(&self) -> Value {
        json!({ "$type": "blob", "ref": { "$link": self.cid }, "mimeType": self.mime, "size": self.size })
    }
}

/// That a record answers, quotes, likes or reposts another, for counts.
#[derive(Serialize, Deserialize)]
struct Tie {
    kind: String,
    of: String,
    by: String,
}

impl Record for Tie {
    const SHELF: &'static str = "bluesky.tie";

    fn key(&self) -> String {
        format!("{} {} {}", self.kind, self.of, self.by)
    }
}

/// How many records are tied to this one in this way.
pub(super) fn tied(turn: &Turn<'_>, kind: &str, uri: &str) -> u64 {
    turn.shelf.under::<Tie>(&format!("{kind} {uri} ")).count() as u64
}

/// An account's posts, newest first.
pub(super) fn posts<'a>(turn: &'a Turn<'_>, did: &str) -> impl Iterator<Item = Stored> + use<'a> {
    turn.shelf.under::<Stored>(&format!("{did}/{POSTS}/")).rev()
}

/// The record at an address.
pub(super) fn at(turn: &Turn<'_>, uri: &str) -> Option<Stored> {
    let (authority, rest) = uri.strip_prefix("at://")?.split_once('/')?;
    let account = actor_account(turn, authority)?;
    turn.shelf.get(&format!("{}/{rest}", account.id))
}

/// The files that a blob is made of.
pub(super) fn files(turn: &Turn<'_>, did: &str, cid: &str) -> Vec<String> {
    turn.shelf.get::<Blob>(&format!("{did}/{cid}")).map(|blob| blob.files).unwrap_or_default()
}

/// One thing to write.
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

/// What came of it.
struct Written {
    verb: Verb,
    uri: String,
    cid: String,
    status: &'static str,
}

/// What came of a whole call.
struct Outcome {
    commit: Option<Value>,
    written: Vec<Written>,
    published: Vec<String>,
    fault: Option<fault::Fault>,
}

impl Outcome {
    fn answer(self, body: &Value) -> Answer {
        let mut answer = Answer::json(200, body).because(self.fault);
        answer.published = self.published;
        answer
    }
}

/// `createRecord`.
pub(super) fn create(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let account = admit(turn, call)?;
    let body = input(call)?;
    let rkey = match &body["rkey"] {
        Value::Null => next_tid(turn, &account.id),
        _ => member(&body, "rkey")?.to_owned(),
    };
    let write = Write {
        verb: Verb::Create,
        collection: member(&body, "collection")?.to_owned(),
        rkey,
        value: body["record"].clone(),
    };
    one(turn, call, &account, &body, write)
}

/// `putRecord`. The same record once more changes nothing and says so by leaving `commit` out.
pub(super) fn put(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let account = admit(turn, call)?;
    let body = input(call)?;
    let (collection, rkey) = (member(&body, "collection")?.to_owned(), member(&body, "rkey")?.to_owned());
    let present: Option<Stored> = turn.shelf.get(&format!("{}/{collection}/{rkey}", account.id));
    let verb = if present.is_some() { Verb::Update } else { Verb::Create };
    // Null is not the same as absent here: it says that there must be no record yet.
    if let Some(expected) = body.get("swapRecord") {
        let found = present.as_ref().map(|record| record.cid.as_str());
        if expected.as_str() != found {
            let message = format!("Record was at {}", found.unwrap_or("null"));
            return Err(refusal(400, "InvalidSwap", &message));
        }
    }
    one(turn, call, &account, &body, Write { verb, collection, rkey, value: body["record"].clone() })
}

fn one(
    turn: &mut Turn<'_>,
    call: &Call,
    account: &Account,
    body: &Value,
    write: Write,
) -> Result<Answer, Answer> {
    if !body["record"].is_object() {
        return Err(refusal(400, "InvalidRequest", "Input must have the property \"record\""));
    }
    let outcome = commit(turn, call, account, body, vec![write])?;
    let written = outcome.written.first().expect("one write, one result");
    let mut reply = json!({ "uri": written.uri, "cid": written.cid, "validationStatus": written.status });
    if let Some(commit) = &outcome.commit {
        reply["commit"] = commit.clone();
    }
    Ok(outcome.answer(&reply))
}

/// `deleteRecord`. What is gone already is gone.
pub(super) fn delete(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let account = admit(turn, call)?;
    let body = input(call)?;
    let (collection, rkey) = (member(&body, "collection")?.to_owned(), member(&body, "rkey")?.to_owned());
    let present: Option<Stored> = turn.shelf.get(&format!("{}/{collection}/{rkey}", account.id));
    if let Some(expected) = body["swapRecord"].as_str() {
        let found = present.as_ref().map_or("null", |record| record.cid.as_str());
        if expected != found {
            return Err(refusal(400, "InvalidSwap", &format!("Record was at {found}")));
        }
    }
    let writes = match present {
        Some(_) => vec![Write { verb: Verb::Delete, collection, rkey, value: Value::Null }],
        None => Vec::new(),
    };
    let outcome = commit(turn, call, &account, &body, writes)?;
    let reply = outcome.commit.as_ref().map_or_else(|| json!({}), |commit| json!({ "commit": commit }));
    Ok(outcome.answer(&reply))
}

/// `applyWrites`: all of it, or nothing.
pub(super) fn apply(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let account = admit(turn, call)?;
    let body = input(call)?;
    let Some(list) = body["writes"].as_array() else {
        return Err(refusal(400, "InvalidRequest", "Input must have the property \"writes\""));
    };
    if list.len() > 200 {
        return Err(refusal(400, "InvalidRequest", "Too many writes. Max: 200"));
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
                        400,
                        "InvalidRequest",
                        "Invalid app.bsky write: unknown $type of a write",
                    ));
                }
            };
        let rkey = match &write["rkey"] {
            Value::Null if verb == Verb::Create => next_tid(turn, &account.id),
            _ => member(write, "rkey")?.to_owned(),
        };
        if verb != Verb::Delete && !write["value"].is_object() {
            return Err(refusal(400, "InvalidRequest", "Input/writes must have the property \"value\""));
        }
        writes.push(Write { verb, collection, rkey, value: write["value"].clone() });
    }
    let outcome = commit(turn, call, &account, &body, writes)?;
    let results = outcome.written.iter().map(|written| match written.verb {
        Verb::Delete => json!({ "$type": "com.atproto.repo.applyWrites#deleteResult" }),
        verb => json!({
            "$type": format!("com.atproto.repo.applyWrites#{}Result", if verb == Verb::Create { "create" } else { "update" }),
            "uri": written.uri,
            "cid": written.cid,
            "validationStatus": written.status,
        }),
    });
    let mut reply = json!({ "results": results.collect::<Vec<_>>() });
    if let Some(commit) = &outcome.commit {
        reply["commit"] = commit.clone();
    }
    Ok(outcome.answer(&reply))
}

/// Checks everything, then does everything.
fn commit(
    turn: &mut Turn<'_>,
    call: &Call,
    account: &Account,
    body: &Value,
    writes: Vec<Write>,
) -> Result<Outcome, Answer> {
    let repo = member(body, "repo")?;
    if actor_account(turn, repo).is_none_or(|named| named.id != account.id) {
        return Err(refusal(401, "AuthRequired", "Authentication Required"));
    }
    let head = turn.shelf.get::<Head>(&account.id).unwrap_or_default();
    if let Some(expected) = body["swapCommit"].as_str().filter(|expected| *expected != head.cid) {
        tracing::debug!(expected, found = head.cid, "The repository has moved");
        return Err(refusal(400, "InvalidSwap", &format!("Commit was at {}", head.cid)));
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
    let fault = match fault::draw(turn, ID, &account.username, &texts.join("\n")) {
        Ok(fault) => fault,
        Err(fault) => return Err(Bluesky.fail(turn, call, fault)),
    };
    let cost = checked.iter().map(|(write, _)| match write.verb {
        Verb::Create => 3,
        Verb::Update => 2,
        Verb::Delete => 1,
    });
    let cost = cost.sum();
    for rule in [POINTS_HOUR, POINTS_DAY] {
        turn.spend(rule, &account.id, cost).map_err(|allowance| throttled(turn, allowance))?;
    }

    let mut outcome = Outcome { commit: None, written: Vec::new(), published: Vec::new(), fault };
    let mut changes = Vec::new();
    let mut touched = BTreeSet::new();
    for (write, status) in checked {
        let key = format!("{}/{}/{}", account.id, write.collection, write.rkey);
        let uri = format!("at://{key}");
        let present: Option<Stored> = turn.shelf.get(&key);
        let is_again = !touched.insert(key);
        if write.verb == Verb::Delete {
            let Some(present) = present else {
                return Err(refusal(400, "InvalidRequest", &format!("Could not find record: {uri}")));
            };
            outcome.written.push(Written { verb: Verb::Delete, uri, cid: String::new(), status });
            changes.push((present, true));
            continue;
        }
        // The real server trips over its own tree here; so a 500 never means "not created".
        if write.verb == Verb::Create && (present.is_some() || is_again) {
            return Err(refusal(500, "InternalServerError", "Internal Server Error"));
        }
        if write.verb == Verb::Update && present.is_none() {
            return Err(refusal(500, "InternalServerError", "Internal Server Error"));
        }
        let cid = lexicon::cid(&write.value).map_err(|error| {
            refusal(400, "InvalidRequest", &format!("Invalid {} record: {error}", write.collection))
        })?;
        let blobs = if status == "valid" {
            lexicon::check(&write.collection, &write.value).unwrap_or_default()
        } else {
            lexicon::blobs(&write.value)
        };
        for blob in blobs {
            present_blob(turn, account, &blob)?;
        }
        let is_same = present.as_ref().is_some_and(|present| present.cid == cid);
        if !is_same {
            if present.is_none() && write.collection == POSTS {
                outcome.published.push(uri.clone());
            }
            let indexed_at = present.as_ref().map_or(turn.now, |present| present.indexed_at);
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
        outcome.written.push(Written { verb: write.verb, uri, cid, status });
    }
    if changes.is_empty() {
        return Ok(outcome);
    }

    let mut digest = Vec::new();
    for (record, is_gone) in changes {
        if let Some(before) = turn.shelf.get::<Stored>(&record.key()) {
            tie(turn, &before, false);
        }
        digest.push(json!([record.uri(), if is_gone { Value::Null } else { json!(record.cid) }]));
        if is_gone {
            turn.shelf.remove::<Stored>(&record.key());
        } else {
            tie(turn, &record, true);
            turn.shelf.put(&record);
        }
    }
    let rev = next_tid(turn, &account.id);
    let says = json!({ "did": account.id, "version": 3, "rev": rev, "prev": head.cid, "data": digest });
    let cid = lexicon::cid(&says).expect("a commit is plain data");
    let head = turn.shelf.get::<Head>(&account.id).unwrap_or_default();
    turn.shelf.put(&Head { did: account.id.clone(), rev: rev.clone(), cid: cid.clone(), ..head });
    outcome.commit = Some(json!({ "cid": cid, "rev": rev }));
    Ok(outcome)
}

/// Whether a record may stand where it is to stand.
fn check(write: &mut Write, validate: &Value) -> Result<&'static str, Answer> {
    let invalid = |message: String| refusal(400, "InvalidRequest", &message);
    let collection = write.collection.as_str();
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
    // Gates have the key of their post; likes, reposts and posts one of their own.
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
        .map_err(|error| invalid(format!("Invalid {collection} record: {error}")))?;
    Ok("valid")
}

/// Whether a blob is there and fits its place.
fn present_blob(turn: &Turn<'_>, account: &Account, wanted: &BlobRef) -> Result<(), Answer> {
    let found = turn
        .shelf
        .get::<Blob>(&format!("{}/{}", account.id, wanted.cid))
        .filter(|blob| blob.job.as_deref().is_none_or(|job| video::is_done(turn, job)));
    let Some(found) = found else {
        return Err(refusal(400, "BlobNotFound", &format!("Could not find blob: {}", wanted.cid)));
    };
    if found.mime != wanted.mime {
        let message = format!(
            "Referenced Mimetype does not match stored blob. Expected: {}, Got: {}",
            found.mime, wanted.mime
        );
        return Err(refusal(400, "InvalidMimeType", &message));
    }
    if found.size != wanted.size {
        let message = format!(
            "Referenced Size does not match stored blob. Expected: {}, Got: {}",
            found.size, wanted.size
        );
        return Err(refusal(400, "InvalidSize", &message));
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
        return Err(refusal(400, "InvalidMimeType", &message));
    }
    if let Some(most) = wanted.max_bytes.filter(|most| found.size > *most) {
        let message = format!(
            "This file is too large. It is {} bytes but the maximum size is {most} bytes.",
            found.size
        );
        return Err(refusal(400, "BlobTooLarge", &message));
    }
    Ok(())
}

fn tie(turn: &mut Turn<'_>, record: &Stored, is_new: bool) {
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
            let tie = Tie { kind: kind.into(), of: of.to_owned(), by: record.uri() };
            if is_new {
                turn.shelf.put(&tie);
            } else {
                turn.shelf.remove::<Tie>(&tie.key());
            }
        }
    }
}

/// The next timestamp identifier of a repository; none comes twice.
fn next_tid(turn: &mut Turn<'_>, did: &str) -> String {
    let head = turn.shelf.get::<Head>(did).unwrap_or_default();
    let micros = u64::try_from(turn.now.timestamp_micros()).unwrap_or(0).max(head.micros + 1);
    turn.shelf.put(&Head { did: did.to_owned(), micros, ..head });
    lexicon::tid(micros, 7)
}

/// `getRecord`: sees every write at once.
pub(super) fn get(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let (repo, collection, rkey) =
        (required(call, "repo")?, required(call, "collection")?, required(call, "rkey")?);
    let account = found(turn, repo)?;
    let uri = format!("at://{}/{collection}/{rkey}", account.id);
    let record: Option<Stored> = turn.shelf.get(&format!("{}/{collection}/{rkey}", account.id));
    let record = record
        .filter(|record| call.query("cid").is_none_or(|cid| cid == record.cid))
        .ok_or_else(|| refusal(400, "RecordNotFound", &format!("Could not locate record: {uri}")))?;
    Ok(Answer::json(200, &json!({ "uri": uri, "cid": record.cid, "value": record.value })))
}

/// `listRecords`: newest first by key, unless reversed.
pub(super) fn list(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let (repo, collection) = (required(call, "repo")?, required(call, "collection")?);
    let account = found(turn, repo)?;
    let most = limit(call, 50)?;
    let is_reverse = call.query("reverse") == Some("true");
    let cursor = call.query("cursor");
    let all = turn.shelf.under::<Stored>(&format!("{}/{collection}/", account.id));
    let is_past = |record: &Stored| {
        cursor.is_none_or(|cursor| {
            if is_reverse { record.rkey.as_str() > cursor } else { record.rkey.as_str() < cursor }
        })
    };
    let records: Vec<Stored> = if is_reverse {
        all.filter(is_past).take(most).collect()
    } else {
        all.rev().filter(is_past).take(most).collect()
    };
    let mut body = json!({ "records": records.iter().map(|record| {
        json!({ "uri": record.uri(), "cid": record.cid, "value": record.value })
    }).collect::<Vec<_>>() });
    if let Some(last) = records.last() {
        body["cursor"] = json!(last.rkey);
    }
    Ok(Answer::json(200, &body))
}

/// `describeRepo`.
pub(super) fn describe(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let account = found(turn, required(call, "repo")?)?;
    let records = turn.shelf.under::<Stored>(&format!("{}/", account.id));
    let collections: BTreeSet<String> = records.map(|record| record.collection).collect();
    Ok(Answer::json(
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

/// `uploadBlob`. What the bytes are counts for more than what the client says.
pub(super) fn upload(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let account = admit(turn, call)?;
    let upload = call.upload.as_ref().expect("the intake of this method is bytes");
    if upload.size_bytes > BLOB_BYTES {
        turn.files.discard(&upload.id);
        return Err(refusal(413, "PayloadTooLarge", "request entity too large"));
    }
    let allowance = turn.spend(BLOBS_DAY, &account.id, 1).map_err(|allowance| throttled(turn, allowance))?;
    let blob = keep(turn, &account.id, upload);
    Ok(metered(Answer::json(200, &json!({ "blob": blob.reference() })), allowance))
}

fn keep(turn: &mut Turn<'_>, did: &str, upload: &Upload) -> Blob {
    let declared = upload.declared.clone().unwrap_or_else(|| "application/octet-stream".into());
    let blob = Blob {
        did: did.to_owned(),
        cid: lexicon::raw_cid(&hex::decode(&upload.sha256).expect("a digest is hex")),
        mime: upload.mime.clone().unwrap_or(declared),
        size: upload.size_bytes,
        files: vec![upload.id.clone()],
        job: None,
    };
    turn.shelf.put(&blob);
    blob
}

/// `com.atproto.sync.getBlob`.
pub(super) fn blob(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let (did, cid) = (required(call, "did")?, required(call, "cid")?);
    let answer = picture(turn, did, cid);
    if answer.status.is_success() {
        return Ok(Answer { is_page: false, ..answer });
    }
    Err(refusal(400, "BlobNotFound", "Blob not found"))
}

/// The bytes of a blob.
pub(super) fn picture(turn: &Turn<'_>, did: &str, cid: &str) -> Answer {
    let mut bytes = Vec::new();
    for file in files(turn, did, cid) {
        match turn.files.read(&file) {
            Some(piece) => bytes.extend_from_slice(&piece),
            None => bytes.clear(),
        }
    }
    if bytes.is_empty() {
        return Answer { is_page: true, ..Answer::empty(404) };
    }
    let mime = infer::get(&bytes).map_or("application/octet-stream", |kind| kind.mime_type());
    let answer = Answer::bytes(200, mime, bytes.into())
        .with("x-content-type-options", "nosniff")
        .with("content-security-policy", "default-src 'none'; sandbox");
    Answer { is_page: true, ..answer }
}

fn found(turn: &Turn<'_>, repo: &str) -> Result<Account, Answer> {
    actor_account(turn, repo)
        .ok_or_else(|| refusal(400, "InvalidRequest", &format!("Could not find repo: {repo}")))
}

/// The parameter `limit`, from 1 to 100.
pub(super) fn limit(call: &Call, default: usize) -> Result<usize, Answer> {
    match call.query("limit").map(str::parse::<usize>) {
        None => Ok(default),
        Some(Ok(most @ 1..=100)) => Ok(most),
        Some(_) => Err(refusal(400, "InvalidRequest", "Error: limit must be between 1 and 100")),
    }
}

/// Parts of an upload, in order, as one blob would have them.
pub(super) fn joined(parts: &BTreeMap<u32, Upload>) -> Vec<String> {
    parts.values().map(|part| part.id.clone()).collect()
}
