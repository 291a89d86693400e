//! Every operation of the OpenAPI document, with parameters and members that are foreign, malformed or huge.

use super::{
    client::{Client, Request, difference},
    document::{self, Body, Operation},
    seed,
    tenants::Tenant,
    world,
};
use domain::{Mode, Owner};
use rand::{SeedableRng, rngs::StdRng, seq::IndexedRandom};
use reqwest::{Method, header::HeaderValue};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::LazyLock};
use tests::{
    Receiver, World, pointers,
    proof::{Section, is_full},
};
use uuid::Uuid;

/// Requests of each kind in the short form.
const SAMPLE: usize = 700;

/// Number of items of a list that are changed: all are of one type.
const ITEMS: usize = 1;

/// Length of the longest URI that the HTTP client sends, in bytes.
const MAX_URI_BYTES: usize = 65_000;

/// Segments of a path that are no id.
static SEGMENTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut all: Vec<String> = [
        "",
        "7",
        "-1",
        "0",
        "null",
        "undefined",
        "NaN",
        "99999999999999999999999999",
        "%00",
        "%01%02%1f%7f",
        "%0d%0aX-Injected:%201",
        "%ff",
        "%c3%28",
        "%e2%80%ae",
        "%F0%9F%92%A3",
        "%",
        "%zz",
        "%252e%252e",
        "..%2f..%2fhealthz",
        "%2e%2e",
        "..%5c..",
        "%2f",
        "a%20b",
        "'%20or%201=1--",
        "$%7b7*7%7d",
        "<script>",
        "*",
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
        "01a1fd4e-7b12-75aa-9e63-6f975d351fb",
        "01a1fd4e-7b12-75aa-9e63-6f975d351fb00",
        "01a1fd4e_7b12_75aa_9e63_6f975d351fb0",
    ]
    .map(str::to_owned)
    .into();
    all.extend(["a".repeat(16 << 10), "%c3%a9".repeat(4 << 10), "a".repeat(63 << 10)]);
    all
});

/// Values of a query parameter, encoded.
static QUERY: LazyLock<Vec<String>> = LazyLock::new(|| {
    let dates = [
        "9999-12-31T23:59:59Z",
        "-262143-01-01T00:00:00Z",
        "%2b275760-09-13T00:00:00Z",
        "2026-02-30",
        "2026-11-23T25:61:61Z",
        "0000-00-00",
        "0",
        "1e999",
        "-9223372036854775808",
        "true",
        "[]",
        "%7b%22a%22:1%7d",
        "%26a=b",
        "Mars/Olympus",
    ];
    SEGMENTS.iter().cloned().chain(dates.map(str::to_owned)).collect()
});

/// Values of a member.
static VALUES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
    let objects = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!({ "a": inner }));
    vec![
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(1e308),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(""),
        json!(" "),
        json!("x"),
        json!("\0"),
        json!("a\u{1}\u{7f}\r\nX-Injected: 1"),
        json!("\u{202e}\u{1f4a3}\u{feff}\u{ffff}"),
        json!("' or 1=1--"),
        json!("../../../etc/passwd"),
        json!("javascript:alert(1)"),
        json!("http://169.254.169.254/latest/meta-data"),
        json!("9999-12-31T23:59:59Z"),
        json!("2026-02-30T00:00:00Z"),
        json!("99999999999999999999999999"),
        json!("é".repeat(32 << 10)),
        json!([]),
        json!([null]),
        json!([[]]),
        json!(vec!["a"; 2_000]),
        nested(60),
        json!({}),
        json!({ "a": { "b": "\0" } }),
        objects(60),
    ]
});

/// Values of a header.
static HEADERS: LazyLock<Vec<HeaderValue>> = LazyLock::new(|| {
    let long = [255, 256, 16 << 10].map(|length| "k".repeat(length).into_bytes());
    let all: [&[u8]; 8] =
        [b"", b" ", b"\t", b"\xff\xfe", b"a,b", b"'", b"\xe2\x80\xae", b"99999999999999999999"];
    let all = all.map(<[u8]>::to_vec).into_iter().chain(long);
    all.map(|value| HeaderValue::from_bytes(&value).expect("a value")).collect()
});

/// The two tenants and the receiver that an attacker's requests name.
struct Attacker<'a> {
    tenant: &'a Tenant,
    victim: &'a Tenant,
    receiver: &'a Receiver,
}

/// Leaves out when the limits in a response were counted, which is when they were read.
fn without_times(mut view: Value) -> Value {
    for limit in view.pointer_mut("/1/limits").and_then(Value::as_array_mut).into_iter().flatten() {
        limit.as_object_mut().map(|limit| limit.remove("as_of"));
    }
    view
}

/// A place of an id in an operation: a path or query parameter, or a member of the body.
#[derive(Clone, Debug)]
enum Place {
    Path(String),
    Query(String),
    /// A JSON pointer.
    Member(String),
}

#[tokio::test]
async fn hostile_requests_are_refused_and_reach_nothing_of_others() {
    let mut section = Section::new("7-hostile", "Hostile input");
    let mut random = StdRng::seed_from_u64(seed());
    // In real time, because renewals of grants would change the victim's rows.
    let mut world = world().pace(1.0).start().await;
    let receiver = Receiver::start().await;
    let mut client = Client::of(&world);
    let document: Value =
        world.http.get(format!("{}/openapi.json", world.base)).send().await.unwrap().json().await.unwrap();
    let operations = document::operations(&document);

    let mut victim = Tenant::of(&world, world.owner).await;
    let mut stranger = Tenant::new(&world).await;
    let mut live = Tenant::of(&world, Owner { mode: Mode::Live, ..world.owner }).await;
    for tenant in [&mut victim, &mut stranger, &mut live] {
        tenant.populate(&mut world, &receiver).await;
        tenant.view(&mut client, &operations).await;
    }
    for collection in ["posts", "targets", "social-accounts", "media", "webhooks", "deliveries", "imports"] {
        assert!(
            victim.ids.contains_key(collection),
            "the victim has no {collection}: {:?}",
            victim.ids.keys()
        );
    }
    let before = (victim.view(&mut client, &operations).await, rows(&world).await);

    let (mut compared, mut accepted) = (0, 0);
    for tenant in [&stranger, &live] {
        let attacker = Attacker { tenant, victim: &victim, receiver: &receiver };
        accepted += attacker.own(&mut client, &operations).await;
        compared += attacker.compare(&mut client, &operations, &mut random).await;
    }
    // Otherwise the changed requests would fail for another reason.
    assert!(accepted >= 80, "only {accepted} unchanged requests were accepted");
    let attacker = Attacker { tenant: &stranger, victim: &victim, receiver: &receiver };
    let malformed = attacker.malformed(&operations);
    let kinds = malformed.len();
    let mut statuses = BTreeMap::<u16, usize>::new();
    let mut changed = 0;
    for (_, requests) in malformed {
        let chosen: Vec<_> = match is_full() {
            true => requests,
            false => requests.sample(&mut random, SAMPLE).cloned().collect(),
        };
        for request in chosen {
            let answer = client.send(&stranger.key, &request).await;
            *statuses.entry(answer.status).or_default() += 1;
            changed += 1;
        }
    }
    println!("{statuses:?}");

    let after = (victim.view(&mut client, &operations).await, rows(&world).await);
    // Reading is logged as well.
    for (path, then) in before.0.iter().filter(|(path, _)| !path.starts_with("/account/requests")) {
        let [then, now] = [Some(then), after.0.get(path)].map(|view| view.cloned().map(without_times));
        assert_eq!(now, then, "{path} of the victim has changed");
    }
    assert_eq!(before.1, after.1, "rows of the victim have changed");
    section.text(
        "Every operation of the OpenAPI document was called by another organization, and by the same organization \
         in the other mode, with the victim's ids in each path and query parameter and each text of the body; and \
         with each parameter, header and member malformed or huge. No answer was a 5xx, every error was a problem \
         document, each answer to a foreign id was equal to that for an id that does not exist, and the victim's \
         rows did not change.",
    );
    section.figure("Operations", operations.len());
    section.figure("Kinds of malformed input", kinds);
    section.figure("Foreign ids, each compared with an id that does not exist", compared);
    section.figure("Malformed requests", changed);
    section.figure("Requests sent", client.sent);
    section.figure("Resources of the victim that were compared", before.0.len());
    section.figure("Rows of the victim that were compared", before.1.len());
    section.figure("Slowest answer", format!("{} ms", client.slowest.as_millis()));
    section.write();
}

impl Attacker<'_> {
    /// Sends every operation with the attacker's own ids, and returns how many were accepted. Deletions and the
    /// like are left out, because later requests need the ids.
    async fn own(&self, client: &mut Client, operations: &[Operation]) -> usize {
        let mut accepted = 0;
        for operation in operations.iter().filter(|operation| operation.method != Method::DELETE) {
            if self.is_outgoing(operation) || self.is_shared(operation) {
                continue;
            }
            let request = self.request(operation, &[]);
            let answer = client.send(&self.tenant.key, &request).await;
            match answer.status {
                ..300 => accepted += 1,
                _ => println!("{}: {} {}", request.name(), answer.status, answer.text),
            }
        }
        accepted
    }

    /// Returns true for an operation that would call a real platform, or another address, in live mode.
    fn is_outgoing(&self, operation: &Operation) -> bool {
        let ends =
            ["/health", "/test", "/imports", "/connect", "/media/import", "/options/{kind}", "/analytics"];
        self.tenant.owner.mode == Mode::Live
            && operation.method != Method::DELETE
            && ends.iter().any(|end| operation.path.ends_with(end))
    }

    /// Returns true for an operation on the team, the branding or the settings of media, which belong to both modes of
    /// an organization.
    fn is_shared(&self, operation: &Operation) -> bool {
        let paths = ["/team", "/connect/branding", "/media/settings"];
        self.is_own_organization() && paths.iter().any(|path| operation.path.starts_with(path))
    }

    /// Returns true if the attacker is the victim's organization in its other mode.
    fn is_own_organization(&self) -> bool {
        self.tenant.owner.org == self.victim.owner.org
    }

    /// Returns the request of an operation with the attacker's own ids, and `places` replaced.
    fn request(&self, operation: &Operation, places: &[(&Place, &str)]) -> Request {
        let mut path = operation.filled(|parameter| {
            let replaced = places.iter().find_map(|(place, id)| match place {
                Place::Path(name) if name == parameter => Some((*id).to_owned()),
                _ => None,
            });
            replaced.unwrap_or_else(|| self.tenant.parameter(operation, parameter))
        });
        let mut query: Vec<String> = Vec::new();
        if operation.query.iter().any(|name| name == "account") {
            query.push(format!("account={}", self.tenant.id("social-accounts")));
        }
        for (place, id) in places {
            if let Place::Query(name) = place {
                query.retain(|pair| !pair.starts_with(&format!("{name}=")));
                query.push(format!("{name}={id}"));
            }
        }
        if !query.is_empty() {
            path = format!("{path}?{}", query.join("&"));
        }
        let request = Request::new(&operation.method, path);
        let Some(Body { example, .. }) = &operation.body else { return request };
        let mut body = self.tenant.body(example, self.receiver);
        for (place, id) in places {
            if let Place::Member(pointer) = place {
                *body.pointer_mut(pointer).expect("a place of this body") = json!(id);
            }
        }
        request.json(&body)
    }

    /// Sends each of the victim's ids in each place, and compares the answer with that for an id that does not
    /// exist.
    async fn compare(&self, client: &mut Client, operations: &[Operation], random: &mut StdRng) -> usize {
        let mut cases = Vec::new();
        for operation in operations {
            for place in self.places(operation) {
                let is_path = matches!(place, Place::Path(_));
                if !is_path && self.is_outgoing(operation) || self.is_shared(operation) {
                    continue;
                }
                for (collection, ids) in &self.victim.ids {
                    // Both modes of an organization have one team, and its entries in the audit trail.
                    if self.is_own_organization()
                        && collection == "team"
                        && operation.path == "/account/audit"
                    {
                        continue;
                    }
                    cases.push((operation, place.clone(), collection.clone(), ids[0].clone()));
                }
            }
        }
        if !is_full() {
            cases = cases.sample(random, SAMPLE).cloned().collect();
        }
        for (operation, place, collection, id) in &cases {
            let missing = Uuid::now_v7().to_string();
            let mut answers = Vec::new();
            for id in [id, &missing] {
                answers.push(client.send(&self.tenant.key, &self.request(operation, &[(place, id)])).await);
            }
            let differs = difference((id, &answers[0]), (&missing, &answers[1]));
            assert_eq!(
                differs, None,
                "{} {} tells the id of {collection} in {place:?} from one that does not exist",
                operation.method, operation.path
            );
            assert!(
                !matches!(place, Place::Path(_)) || answers[0].status >= 400,
                "{} {} accepts the id of {collection}: {}",
                operation.method,
                operation.path,
                answers[0].text
            );
        }
        for operation in operations.iter().filter(|operation| operation.parameters().len() > 1) {
            // Ids that belong together.
            let theirs = self.victim.path(operation);
            let none = operation.filled(|_| Uuid::now_v7().to_string());
            let mut answers = Vec::new();
            for path in [&theirs, &none] {
                let own = self.request(operation, &[]);
                answers.push(client.send(&self.tenant.key, &Request { path: path.clone(), ..own }).await);
            }
            assert_eq!(difference((&theirs, &answers[0]), (&none, &answers[1])), None, "{theirs}");
            assert!(answers[0].status >= 400, "{theirs}: {}", answers[0].text);
        }
        cases.len()
    }

    /// Returns the places of an operation that may hold an id.
    fn places(&self, operation: &Operation) -> Vec<Place> {
        let parameters = operation.parameters();
        let mut places: Vec<_> = parameters.iter().map(|name| Place::Path((*name).to_owned())).collect();
        // Texts of the caller's own: an earlier case may have written the id there.
        let own_texts = ["q", "tenant_id", "metadata"];
        let names = operation.query.iter().filter(|name| !own_texts.contains(&name.as_str()));
        places.extend(names.map(|name| Place::Query(name.clone())));
        if let Some(body) = &operation.body {
            let own = self.tenant.body(&body.example, self.receiver);
            let texts =
                pointers(&own, ITEMS).into_iter().filter(|at| own.pointer(at).is_some_and(Value::is_string));
            places.extend(texts.map(Place::Member));
        }
        places
    }

    /// Returns malformed requests, by kind.
    fn malformed(&self, operations: &[Operation]) -> Vec<(&'static str, Vec<Request>)> {
        let (mut paths, mut queries, mut headers, mut members, mut bodies) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for operation in operations {
            for parameter in operation.parameters() {
                for value in SEGMENTS.iter() {
                    let place = Place::Path(parameter.to_owned());
                    paths.push(self.request(operation, &[(&place, value)]));
                }
            }
            // Whatever its parameters say, a deletion with an own id would succeed.
            if operation.method == Method::DELETE {
                continue;
            }
            for name in &operation.query {
                for value in QUERY.iter() {
                    let place = Place::Query(name.clone());
                    let request = self.request(operation, &[(&place, value)]);
                    let twice =
                        Request { path: format!("{}&{name}={value}", request.path), ..request.clone() };
                    let list = Request {
                        path: request.path.replacen(&format!("{name}="), &format!("{name}[]="), 1),
                        ..request.clone()
                    };
                    let all = [request, twice, list].into_iter();
                    queries.extend(all.filter(|request| request.path.len() < MAX_URI_BYTES));
                }
            }
            let own = self.request(operation, &[]);
            for name in
                operation.headers.iter().map(String::as_str).chain(["content-type", "accept", "range"])
            {
                for value in HEADERS.iter() {
                    let with = |count: usize| Request {
                        headers: vec![(name.to_lowercase(), value.clone()); count],
                        ..own.clone()
                    };
                    headers.extend([with(1), with(2)]);
                }
            }
            let Some(body) = &operation.body else { continue };
            let example = self.tenant.body(&body.example, self.receiver);
            members.extend(self.members(&own, &example, body));
            bodies.extend(self.bodies(&own, &example));
        }
        vec![
            ("path parameters", paths),
            ("query parameters", queries),
            ("headers", headers),
            ("members", members),
            ("bodies", bodies),
        ]
    }

    /// Returns requests with one member of the body changed, added or removed.
    fn members(&self, own: &Request, example: &Value, body: &Body) -> Vec<Request> {
        let mut requests = Vec::new();
        let mut places: Vec<String> = pointers(example, ITEMS);
        // Members that the example lacks.
        places.extend(body.members.iter().map(|name| format!("/{name}")));
        places.sort_unstable();
        places.dedup();
        for place in places {
            let (parent, name) = place.rsplit_once('/').expect("a pointer");
            for value in VALUES.iter() {
                let mut changed = example.clone();
                put(&mut changed, parent, name, Some(value.clone()));
                requests.push(own.clone().json(&changed));
            }
            let mut without = example.clone();
            put(&mut without, parent, name, None);
            requests.push(own.clone().json(&without));
            let mut beside = example.clone();
            put(&mut beside, parent, "something_unknown", Some(json!({ "a": [1] })));
            requests.push(own.clone().json(&beside));
        }
        requests
    }

    /// Returns requests whose body is not what it says to be.
    fn bodies(&self, own: &Request, example: &Value) -> Vec<Request> {
        let text = example.to_string();
        let twice = format!("{},{}", text.trim_end_matches('}'), text.trim_start_matches('{'));
        let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let mut all: Vec<Vec<u8>> = vec![
            Vec::new(),
            text.as_bytes()[..text.len() / 2].to_vec(),
            twice.into_bytes(),
            utf16,
            format!("\u{feff}{text}").into_bytes(),
            format!("{text}{text}").into_bytes(),
            format!("[{text}]").into_bytes(),
            text.replace('"', "'").into_bytes(),
            [text.as_bytes(), b"\0"].concat(),
            vec![b'['; 10_000],
            b"{\"\":".repeat(10_000),
            b"{\"a\":1e999999}".to_vec(),
            b"{\"a\":-0}".to_vec(),
            b"\xff".to_vec(),
        ];
        all.extend((0..8).map(|part| text.as_bytes()[..text.len() * part / 8].to_vec()));
        let mut requests: Vec<Request> = all.into_iter().map(|body| own.clone().bytes(body)).collect();
        for (name, value) in [
            ("content-type", "application/x-www-form-urlencoded"),
            ("content-type", "application/json; charset=utf-16"),
            ("content-type", "multipart/form-data"),
            ("content-encoding", "gzip"),
            ("content-encoding", "br, br, br"),
        ] {
            let header = (name.to_owned(), HeaderValue::from_static(value));
            requests.push(Request { headers: vec![header], ..own.clone() });
        }
        requests
    }
}

/// Sets or removes a member of the object, or an item of the list, at a place.
fn put(body: &mut Value, parent: &str, name: &str, value: Option<Value>) {
    let name = name.replace("~1", "/").replace("~0", "~");
    match (body.pointer_mut(parent), value) {
        (Some(Value::Object(members)), Some(value)) => drop(members.insert(name, value)),
        (Some(Value::Object(members)), None) => drop(members.remove(&name)),
        (Some(Value::Array(items)), value) => {
            if let Some(item) = name.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
                *item = value.unwrap_or_default();
            }
        }
        _ => {}
    }
}

/// Returns all rows of the world's organization, by table.
async fn rows(world: &World) -> Vec<(String, Value)> {
    let tables: Vec<String> = sqlx::query_scalar(
        "select c.table_name::text from information_schema.columns c
         join information_schema.tables t using (table_schema, table_name)
         where c.table_schema = 'public' and c.column_name = 'org_id' and t.table_type = 'BASE TABLE'
         order by 1",
    )
    .fetch_all(&world.db)
    .await
    .unwrap();
    let mut rows = Vec::new();
    // Calls are counted and logged, the use of a key is noted, and so is whether a worker drains an endpoint.
    let is_of_calls =
        |table: &String| ["usage", "rate", "request_log"].iter().any(|part| table.contains(part));
    for table in tables.into_iter().filter(|table| !is_of_calls(table)) {
        let query = format!(
            "select to_jsonb(t) - array['last_used_at', 'awake_until', 'open_from'] from {table} t
             where org_id = $1 and coalesce(to_jsonb(t) ->> 'mode', 'test') = 'test' order by 1"
        );
        let found: Vec<Value> = sqlx::query_scalar(sqlx::AssertSqlSafe(query))
            .bind(world.owner.org.0)
            .fetch_all(&world.db)
            .await
            .unwrap();
        rows.extend(found.into_iter().map(|row| (table.clone(), row)));
    }
    assert!(rows.len() > 10, "only {} rows", rows.len());
    rows
}
