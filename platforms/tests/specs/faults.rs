//! Each validator of this directory finds each kind of fault, in descriptions that are written here.

use super::{Heard, collection, discovery, lexicon, openapi, sdk};
use serde_json::{Value, json};

/// A change of a request or its response, and a word of the fault that it causes.
type Change = (&'static str, fn(&mut Heard));

/// The objects in the request and in the response.
const BOTH: [fn(&mut Heard) -> &mut Value; 2] = [|call| &mut call.body, |call| &mut call.answer];

/// Asserts that a call has no faults, and after each change nothing but faults that contain its word.
fn assert_found(good: &Heard, changes: &[Change], faults: impl Fn(&Heard) -> Vec<String>) {
    assert_eq!(faults(good), Vec::<String>::new());
    for (index, (word, change)) in changes.iter().enumerate() {
        let mut call = good.clone();
        change(&mut call);
        let found = faults(&call);
        let is_found = !found.is_empty() && found.iter().all(|fault| fault.contains(word));
        assert!(is_found, "change {index}, {word}: {found:#?}");
    }
}

/// Asserts that each of these members causes faults in each of these objects of a call, which name it.
fn assert_members(
    good: &Heard,
    objects: &[fn(&mut Heard) -> &mut Value],
    members: &[(&str, Value)],
    faults: impl Fn(&Heard) -> Vec<String>,
) {
    for (object, (name, value)) in
        objects.iter().flat_map(|object| members.iter().map(move |one| (object, one)))
    {
        let mut call = good.clone();
        object(&mut call)[*name] = value.clone();
        let found = faults(&call);
        let is_found = !found.is_empty() && found.iter().all(|fault| fault.contains(name));
        assert!(is_found, "{name}: {value}: {found:#?}");
    }
}

/// A call with the same object in request and response.
fn call(method: &str, path: &str, query: &[(&str, &str)], object: &Value) -> Heard {
    Heard {
        method: method.into(),
        path: path.into(),
        query: query.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        mime: if object.is_null() { String::new() } else { "application/json; charset=utf-8".into() },
        body: object.clone(),
        text: if object.is_null() { String::new() } else { object.to_string() },
        status: 200,
        answer: object.clone(),
    }
}

/// A call with a form in the request.
fn form(path: &str, mime: &str, text: &str, answer: Value) -> Heard {
    Heard { mime: mime.into(), text: text.into(), answer, ..call("POST", path, &[], &Value::Null) }
}

fn openapi_document() -> openapi::Document {
    let pin = json!({
        "type": "object", "required": ["title"], "additionalProperties": false,
        "properties": {
            "title": { "type": "string", "minLength": 1, "maxLength": 5 },
            "color": { "type": "string", "pattern": "^#[0-9A-F]{6}$" },
            "link": { "type": "string", "nullable": true },
            "kind": { "type": "string", "nullable": true, "enum": ["a", "b"] },
            "tags": { "type": "array", "minItems": 1, "maxItems": 2, "items": { "type": "string" } },
            "count": { "type": "integer", "minimum": 0, "maximum": 10 },
            "ratio": { "type": "number" },
            "is_open": { "type": "boolean" },
            "owner": { "$ref": "#/components/schemas/Owner" },
            "heir": { "nullable": true, "allOf": [{ "$ref": "#/components/schemas/Owner" }] },
            "source": { "$ref": "#/components/schemas/Source" },
            "either": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
            "both": { "allOf": [{ "type": "string", "minLength": 2 }, { "pattern": "^a" }] },
            "counts": {
                "type": "object", "required": ["repost_count"],
                "properties": { "repost_count": { "type": "integer" } },
            },
            "ids": { "type": "array", "uniqueItems": true },
            "sums": { "minProperties": 1, "additionalProperties": { "type": "integer" } },
            "at": { "type": "string", "format": "date-time" },
            "day": { "type": "string", "format": "date" },
            "one": { "oneOf": [{ "type": "integer" }, { "type": "number", "maximum": 2 }] },
            "above": { "type": "number", "minimum": 0, "exclusiveMinimum": true },
            "address": { "type": "string", "pattern": "^(?=.*://)[\\s\\S]+$" },
        },
    });
    let kind = |kind: &str, member: &str| {
        json!({
            "type": "object", "required": ["kind", member],
            "properties": { "kind": { "type": "string", "enum": [kind] }, member: { "type": "string" } },
        })
    };
    let chosen = json!({ "propertyName": "kind", "mapping": {
        "url": "#/components/schemas/Url", "file": "#/components/schemas/File",
    } });
    let of = |schema: &str| json!({ "schema": { "$ref": format!("#/components/schemas/{schema}") } });
    let answer = json!({ "200": { "content": { "application/json": of("Pin") } }, "204": {} });
    let parameters = json!([
        { "$ref": "#/components/parameters/Size" },
        { "name": "fields", "in": "query", "schema": { "type": "array", "items": { "enum": ["id", "title"] } } },
        { "name": "open", "in": "query", "schema": { "type": "boolean" } },
    ]);
    let ids = json!([{ "name": "ids", "in": "query", "required": true, "schema": { "type": "string" } }]);
    let token = json!({ "content": { "application/x-www-form-urlencoded": of("Token") } });
    let media = json!({ "type": "object", "required": ["media"], "properties": { "media": {}, "note": {} } });
    openapi::Document::of(
        json!({
            "openapi": "3.0.3",
            "paths": {
                "/pins": { "post": {
                    "parameters": parameters,
                    "requestBody": { "required": true, "content": { "application/json": of("Pin") } },
                    "responses": answer,
                } },
                "/pins/{pin_id}": { "get": { "responses": answer } },
                "/pins/list": { "get": { "parameters": ids, "responses": answer } },
                "/token": { "post": { "requestBody": token, "responses": { "default": {} } } },
                "/media": { "post": {
                    "requestBody": { "content": { "multipart/form-data": { "schema": media } } },
                    "responses": { "default": {} },
                } },
            },
            "components": {
                "parameters": { "Size": {
                    "name": "size", "in": "query", "required": true,
                    "schema": { "type": "integer", "minimum": 1, "maximum": 10 },
                } },
                "schemas": {
                    "Pin": pin,
                    "Owner": {
                        "type": "object", "required": ["name"],
                        "properties": { "name": { "type": "string" } },
                    },
                    "Source": { "oneOf": [of("Url")["schema"], of("File")["schema"]], "discriminator": chosen },
                    "Url": kind("url", "url"),
                    "File": kind("file", "id"),
                    // A discriminator may stand without a list of what it chooses from.
                    "Token": { "type": "object", "required": ["kind"], "discriminator": chosen },
                },
            },
        }),
        "/api.example.com/v5",
    )
}

pub(super) async fn an_openapi_document_finds_each_fault() {
    let document = openapi_document();
    let pin = json!({
        "title": "Abc", "color": "#0099FF", "link": null, "kind": null, "tags": ["one"], "count": 10,
        "ratio": 1, "is_open": true, "owner": { "name": "Ada", "more": 1 }, "heir": null,
        "source": { "kind": "url", "url": "https://a.example" }, "either": 7, "both": "ab", "ids": [1, 2],
        "sums": { "a": 1 }, "at": "2030-01-02T03:04:05Z", "day": "2030-01-02", "one": 7, "above": 0.1,
        "address": "a://b",
    });
    let at = "/api.example.com/v5/pins";
    let good = call("POST", at, &[("size", "5"), ("fields", "id,title"), ("open", "true")], &pin);
    let faults = |call: &Heard| document.faults(call);
    assert_found(
        &good,
        &[
            ("no such operation", |call| call.method = "DELETE".into()),
            ("no such operation", |call| call.path.push_str("/1/more")),
            ("takes no text/plain", |call| call.mime = "text/plain".into()),
            ("lacks its body", |call| call.mime = String::new()),
            ("size", |call| drop(call.query.remove(0))),
            ("size", |call| call.query[0].1 = "x".into()),
            ("size", |call| call.query[0].1 = "11".into()),
            ("size", |call| call.query[0].1 = "1.5".into()),
            ("fields", |call| call.query[1].1 = "id,nothing".into()),
            ("open", |call| call.query[2].1 = "yes".into()),
            ("nothing", |call| call.query.push(("nothing".into(), "1".into()))),
            ("title", |call| drop(call.body.as_object_mut().and_then(|pin| pin.remove("title")))),
            ("title", |call| drop(call.answer.as_object_mut().and_then(|pin| pin.remove("title")))),
            ("POST /pins", |call| call.body = json!([])),
            ("answered 200", |call| call.answer = json!("text")),
            ("answered 200", |call| call.answer = Value::Null),
        ],
        faults,
    );
    let members = [
        ("title", json!(5)),
        ("title", Value::Null),
        ("title", json!("")),
        ("title", json!("Abcdef")),
        ("color", json!("red")),
        ("link", json!(5)),
        ("kind", json!("c")),
        ("tags", json!("one")),
        ("tags", json!([])),
        ("tags", json!(["a", "b", "c"])),
        ("tags", json!([5])),
        ("count", json!(-1)),
        ("count", json!(11)),
        ("count", json!(1.5)),
        ("count", json!(1.0)),
        ("count", json!("1")),
        ("ratio", json!("1")),
        ("is_open", json!("true")),
        ("owner", json!({})),
        ("owner", json!({ "name": 5 })),
        ("owner", Value::Null),
        ("heir", json!({ "name": 5 })),
        ("source", json!({ "kind": "url", "id": "1" })),
        ("source", json!({ "kind": "nothing", "url": "https://a.example" })),
        ("source", json!({ "url": "https://a.example" })),
        ("either", json!(true)),
        ("both", json!("b")),
        ("both", json!("bb")),
        ("both", json!("a")),
        ("counts", json!({})),
        ("counts", json!({ "repost_count": "1" })),
        ("ids", json!([1, 1])),
        ("sums", json!({})),
        ("sums", json!({ "a": "1" })),
        ("at", json!("2030-01-02 03:04")),
        ("day", json!("2030-02-30")),
        ("one", json!(1)),
        ("above", json!(0)),
        ("address", json!("b")),
        ("nothing", json!(1)),
    ];
    assert_members(&good, &BOTH, &members, faults);

    // Neither an answer without content nor one of an error has a body to judge.
    for status in [204, 400] {
        assert_eq!(faults(&Heard { status, answer: json!(["text"]), ..good.clone() }), Vec::<String>::new());
    }
    // The document renames what the service still returns.
    let mut renamed = good.clone();
    renamed.answer["counts"] = json!({ "retweet_count": 1 });
    assert_eq!(faults(&renamed), Vec::<String>::new());
    // A literal path takes precedence.
    assert_eq!(faults(&call("GET", "/api.example.com/v5/pins/1", &[], &Value::Null)).len(), 1, "no answer");
    let listed = Heard { answer: json!({ "title": "a" }), ..call("GET", at, &[], &Value::Null) };
    assert_eq!(faults(&Heard { path: format!("{at}/1"), ..listed.clone() }), Vec::<String>::new());
    assert_found(
        &Heard { path: format!("{at}/list"), query: vec![("ids".into(), "1".into())], ..listed },
        &[("ids", |call| call.query.clear())],
        faults,
    );
}

pub(super) async fn an_openapi_document_finds_each_fault_of_a_form() {
    let document = openapi_document();
    let faults = |call: &Heard| document.faults(call);
    let urlencoded = "application/x-www-form-urlencoded";
    let token = form("/api.example.com/v5/token", urlencoded, "kind=url&url=a", Value::Null);
    assert_found(
        &token,
        &[
            ("kind", |call| call.text = "url=a".into()),
            ("url", |call| call.text = "kind=url&id=1".into()),
            ("takes no application/json", |call| call.mime = "application/json".into()),
        ],
        faults,
    );
    let parts = "--b\r\nContent-Disposition: form-data; name=\"media\"\r\n\r\n1\r\n--b--";
    let media = form("/api.example.com/v5/media", "multipart/form-data; boundary=b", parts, Value::Null);
    assert_found(
        &media,
        &[
            ("no part nothing", |call| call.text.push_str("\r\n name=\"nothing\"\r\n")),
            ("lacks part media", |call| call.text = "--b\r\n name=\"note\"\r\n".into()),
        ],
        faults,
    );
}

fn discovery_document() -> discovery::Document {
    let video = json!({
        "id": "Video", "type": "object",
        "properties": {
            "etag": { "type": "string" },
            "snippet": { "$ref": "Snippet", "description": "A description beside a reference." },
            "localizations": { "type": "object", "additionalProperties": { "$ref": "Snippet" } },
            "tags": { "type": "array", "items": { "type": "string" } },
            "count": { "type": "integer", "format": "int32" },
            "ratio": { "type": "number", "format": "double" },
            "made": { "type": "boolean" },
            "published": { "type": "string", "format": "date-time" },
            "updated": { "type": "string", "format": "google-datetime" },
            "status": { "type": "string", "enum": ["public", "private"], "enumDescriptions": ["", ""] },
            "views": { "type": "string", "format": "uint64" },
            "balance": { "type": "string", "format": "int64" },
            "free": { "type": "any" },
        },
    });
    let methods = json!({
        "insert": {
            "path": "youtube/v3/videos", "httpMethod": "POST",
            "parameters": {
                "part": { "type": "string", "location": "query", "required": true },
                "notify": { "type": "boolean", "location": "query" },
                "limit": { "type": "integer", "location": "query" },
                "order": { "type": "string", "location": "query", "enum": ["date", "title"] },
                "range": { "type": "object", "location": "query" },
            },
            "request": { "$ref": "Video" }, "response": { "$ref": "Video" },
            "mediaUpload": { "protocols": { "simple": { "path": "/upload/youtube/v3/videos" } } },
        },
        "delete": { "path": "youtube/v3/videos/{id}:delete", "httpMethod": "POST" },
    });
    discovery::Document::of(json!({
        "id": "youtube:v3",
        "parameters": { "alt": { "type": "string", "enum": ["json"] } },
        "schemas": {
            "Video": video,
            "Snippet": { "id": "Snippet", "type": "object", "properties": { "title": { "type": "string" } } },
        },
        "resources": { "all": { "resources": { "videos": { "methods": methods } } } },
    }))
}

pub(super) async fn a_discovery_document_finds_each_fault() {
    let document = discovery_document();
    let faults = |call: &Heard| document.faults(call, call.path.trim_start_matches("/www.googleapis.com/"));
    let video = json!({
        "etag": "1", "snippet": { "title": "A" }, "localizations": { "de-DE": { "title": "B" } }, "tags": ["one"],
        "count": 1, "ratio": 0.5, "made": true, "published": "2030-01-02T03:04:05Z",
        "updated": "2030-01-02T03:04:05.678+01:00", "status": "public", "free": { "any": [1] },
        "views": "18446744073709551615", "balance": "-5",
    });
    let query = [
        ("part", "id"),
        ("alt", "json"),
        ("notify", "true"),
        ("limit", "5"),
        ("order", "date"),
        ("range.start", "1"),
    ];
    let good = call("POST", "/www.googleapis.com/youtube/v3/videos", &query, &video);
    let changes: [Change; 15] = [
        ("no such method", |call| call.method = "GET".into()),
        ("no such method", |call| call.path.push_str("/more")),
        ("part", |call| drop(call.query.remove(0))),
        ("alt", |call| call.query[1].1 = "xml".into()),
        ("notify", |call| call.query[2].1 = "yes".into()),
        ("limit", |call| call.query[3].1 = "many".into()),
        ("order", |call| call.query[4].1 = "length".into()),
        ("nothing", |call| call.query.push(("nothing".into(), "1".into()))),
        ("upload_id", |call| call.query.push(("upload_id".into(), "1".into()))),
        ("title", |call| call.body["snippet"]["title"] = json!(5)),
        ("nothing", |call| call.body["snippet"]["nothing"] = json!(5)),
        ("title", |call| call.answer["localizations"]["de-DE"]["title"] = json!(5)),
        ("de-DE", |call| call.answer["localizations"]["de-DE"] = json!("B")),
        ("takes no body", |call| {
            (call.path, call.answer) = ("/youtube/v3/videos/1:delete".into(), Value::Null);
            call.query.clear();
        }),
        ("answers nothing", |call| {
            (call.path, call.body) = ("/youtube/v3/videos/1:delete".into(), Value::Null);
            call.query.clear();
        }),
    ];
    assert_found(&good, &changes, faults);
    let members = [
        ("etag", json!(1)),
        ("snippet", json!([])),
        ("tags", json!("one")),
        ("tags", json!([1])),
        ("count", json!(1.5)),
        ("count", json!("1")),
        ("ratio", json!("1")),
        ("made", json!("true")),
        ("published", json!("yesterday")),
        ("updated", json!("yesterday")),
        ("status", json!("secret")),
        ("views", json!("-5")),
        ("views", json!(5)),
        ("balance", json!("many")),
        ("nothing", json!(1)),
    ];
    assert_members(&good, &BOTH, &members, faults);
    // The parts of an upload, and the description beside the file in one request.
    let upload = call("PUT", "/www.googleapis.com/upload/youtube/v3/videos", &query, &Value::Null);
    let upload = Heard { status: 308, ..upload };
    assert_found(
        &Heard { query: [upload.query.clone(), vec![("upload_id".into(), "1".into())]].concat(), ..upload },
        &[("no such method", |call| call.path.push('s'))],
        faults,
    );
    let whole = format!("--b\r\nContent-Type: application/json\r\n\r\n{video}\r\n--b\r\n\r\nfile\r\n--b--");
    let path = "/www.googleapis.com/upload/youtube/v3/videos";
    let whole = form(path, "multipart/related; boundary=b", &whole, video);
    let whole = Heard { query: good.query.clone(), ..whole };
    assert_found(&whole, &[("title", |call| call.text = call.text.replacen("\"A\"", "5", 1))], faults);
}

fn lexicons() -> lexicon::Lexicons {
    let record = json!({
        "type": "object", "required": ["text"], "nullable": ["note"],
        "properties": {
            "text": { "type": "string", "maxLength": 12, "maxGraphemes": 4 },
            "note": { "type": "string" },
            "tags": { "type": "array", "maxLength": 1, "items": { "type": "string" } },
            "count": { "type": "integer", "minimum": 1 },
            "open": { "type": "boolean" },
            "at": { "type": "string", "format": "datetime" },
            "author": { "type": "string", "format": "did" },
            "post": { "type": "string", "format": "at-uri" },
            "link": { "type": "string", "format": "uri" },
            "hash": { "type": "string", "format": "cid" },
            "kind": { "type": "string", "format": "nsid" },
            "image": { "type": "blob", "accept": ["image/*"], "maxSize": 10 },
            "part": { "type": "ref", "ref": "#part" },
            "embed": { "type": "union", "refs": ["#part", "com.example.other"] },
        },
    });
    let part =
        json!({ "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } });
    let put = json!({
        "type": "procedure",
        "parameters": {
            "type": "params", "required": ["limit"], "properties": { "limit": { "type": "integer" } },
        },
        "input": { "encoding": "application/json", "schema": {
            "type": "object", "required": ["collection", "record"],
            "properties": { "collection": { "type": "string", "format": "nsid" }, "record": { "type": "unknown" } },
        } },
    });
    lexicon::Lexicons::of([
        json!({ "id": "com.atproto.repo.putRecord", "defs": { "main": put } }),
        json!({ "id": "com.example.record", "defs": { "main": { "type": "record", "record": record }, "part": part } }),
        json!({ "id": "com.example.other", "defs": { "main": part } }),
        json!({ "id": "com.example.get", "defs": { "main": { "type": "query" } } }),
        json!({ "id": "com.example.upload", "defs": { "main": {
            "type": "procedure", "input": { "encoding": "text/vtt" },
        } } }),
    ])
}

pub(super) async fn a_lexicon_finds_each_fault() {
    let lexicons = lexicons();
    let faults = |call: &Heard| lexicons.faults(call);
    let record = json!({
        "$type": "com.example.record", "text": "äöüß", "note": null, "tags": ["one"], "count": 1, "open": true,
        "at": "2030-01-02T03:04:05Z", "author": "did:plc:1", "post": "at://did:plc:1/a/b",
        "link": "https://a.example", "hash": "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy",
        "kind": "com.example.record",
        "image": { "$type": "blob", "ref": {}, "mimeType": "image/png", "size": 10 },
        "part": { "name": "a" }, "embed": { "$type": "com.example.record#part", "name": "a" },
    });
    let body = json!({ "collection": "com.example.record", "record": record });
    let good = call("POST", "/pds.example/xrpc/com.atproto.repo.putRecord", &[("limit", "1")], &body);
    assert_found(
        &good,
        &[
            ("no such lexicon", |call| call.path.push('s')),
            ("GET and not POST", |call| call.method = "GET".into()),
            ("limit", |call| call.query.clear()),
            ("limit", |call| call.query[0].1 = "many".into()),
            ("nothing", |call| call.query.push(("nothing".into(), "1".into()))),
            ("collection", |call| call.body["collection"] = json!("record")),
            ("record", |call| drop(call.body.as_object_mut().and_then(|body| body.remove("record")))),
            ("text", |call| drop(call.body["record"].as_object_mut().and_then(|body| body.remove("text")))),
            ("takes no body", |call| {
                *call = Heard {
                    path: "/xrpc/com.example.get".into(),
                    method: "GET".into(),
                    query: vec![],
                    ..call.clone()
                };
            }),
            ("text/vtt", |call| (call.path, call.query) = ("/xrpc/com.example.upload".into(), vec![])),
        ],
        faults,
    );
    let members = [
        ("text", json!(5)),
        ("text", Value::Null),
        ("text", json!("abcde")),
        ("text", json!("👨‍👩‍👧‍👦")),
        ("note", json!(5)),
        ("tags", json!("one")),
        ("tags", json!(["one", "two"])),
        ("tags", json!([1])),
        ("count", json!(0)),
        ("count", json!(1.5)),
        ("open", json!("true")),
        ("at", json!("yesterday")),
        ("author", json!("ada")),
        ("post", json!("https://a.example")),
        ("link", json!("a")),
        ("hash", json!("a")),
        ("kind", json!("record")),
        ("image", json!({ "$type": "blob", "ref": {}, "mimeType": "video/mp4", "size": 10 })),
        ("image", json!({ "$type": "blob", "ref": {}, "mimeType": "image/png", "size": 11 })),
        ("image", json!({ "ref": {}, "mimeType": "image/png", "size": 10 })),
        ("part", json!({})),
        ("part", json!({ "name": 5 })),
        ("part", json!({ "name": "a", "part": 5 })),
        ("embed", json!({ "name": "a" })),
        ("embed", json!({ "$type": "com.example.other#part", "name": "a" })),
        ("embed", json!({ "$type": "com.example.other" })),
        ("nothing", json!(1)),
    ];
    assert_members(&good, &[|call| &mut call.body["record"]], &members, faults);
}

/// A request of a collection.
fn item(name: &str, method: &str, url: &str) -> Value {
    json!({ "name": name, "request": { "method": method, "url": url } })
}

pub(super) async fn a_collection_finds_each_fault() {
    let collection = collection::Collection::of(json!({
        "variable": [{ "key": "fields_post", "value": "id,children{media_url}" }],
        "item": [{ "item": [
            item("Read", "GET", "{{api_host}}/{{thread_id}}?fields={{fields_post}}"),
            item("Create", "POST", "{{api_host}}/me/threads?text={{text}}"),
        ] }],
    }));
    let faults = |call: &Heard| collection.faults(call);
    let read =
        call("GET", "/graph.threads.com/v1.0/17", &[("fields", "id,children{media_url}")], &Value::Null);
    assert_found(
        &read,
        &[
            ("no such request", |call| call.method = "POST".into()),
            ("no such request", |call| call.path.push_str("/threads")),
            ("no such request", |call| call.path = "/graph.threads.com/v1.0/me17".into()),
            ("no field nothing", |call| call.query[0].1 = "id,nothing".into()),
            ("no parameter nothing", |call| call.query.push(("nothing".into(), "1".into()))),
        ],
        faults,
    );
    let path = "/graph.threads.com/v1.0/17/threads";
    assert_found(
        &form(path, "application/x-www-form-urlencoded", "text=a&topic_tag=b", Value::Null),
        &[("no parameter nothing", |call| call.text.push_str("&nothing=1"))],
        faults,
    );
}

pub(super) async fn an_extract_of_an_sdk_finds_each_fault() {
    let extract = json!({ "objects": {
        "Page": { "fields": { "id": "string", "name": "string" }, "edges": [
            { "endpoint": "/feed", "method": "POST", "param_types": { "message": "string", "attached_media": "list" } },
            { "endpoint": "/", "method": "GET", "param_types": {} },
        ] },
        "Post": { "fields": { "secret": "string" }, "edges": [] },
    } });
    let sdk = sdk::Sdk::of(&extract, &["Page"]);
    let faults = |call: &Heard| sdk.faults(call);
    let read =
        call("GET", "/graph.facebook.com/v26.0/1", &[("fields", "id,name{id},feed.limit(1)")], &Value::Null);
    assert_found(
        &read,
        &[
            ("no such edge", |call| call.method = "DELETE".into()),
            ("no such edge", |call| call.path.push_str("/nothing")),
            ("no field nothing", |call| call.query[0].1 = "id,nothing".into()),
            ("no field secret", |call| call.query[0].1 = "id{secret}".into()),
            ("no parameter nothing", |call| call.query.push(("nothing".into(), "1".into()))),
        ],
        faults,
    );
    let feed = "/graph.facebook.com/v26.0/1/feed";
    assert_found(
        &form(feed, "application/x-www-form-urlencoded", "message=a&attached_media[0]=b", Value::Null),
        &[("no parameter nothing", |call| call.text.push_str("&nothing[0]=1"))],
        faults,
    );
}
