//! The HTTP server's limits on connections and unfinished requests.

use crate::world;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;
use std::time::Duration;
use tests::{PATIENCE, World, meter::cpu_time};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{interval, timeout},
};

/// A raw connection to the API.
async fn connection(world: &World) -> TcpStream {
    let url: url::Url = world.base.parse().unwrap();
    TcpStream::connect(url.socket_addrs(|| None).unwrap()[0]).await.unwrap()
}

/// Reads everything that the server sends until it closes the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    // A reset counts as closed.
    let _ = read.expect("the server closes the connection");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads the head and the body of one response on a connection that stays open.
async fn answer(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_ascii_lowercase();
            let length = length.split("content-length: ").nth(1).unwrap().lines().next().unwrap();
            if body.len() >= length.trim().parse::<usize>().unwrap() {
                return text;
            }
        }
        let read = timeout(PATIENCE, stream.read_buf(&mut bytes)).await.expect("an answer").unwrap();
        assert!(read > 0, "the connection was closed within a response: {text}");
    }
}

/// Begins a request, and sends all but the last byte of its body once the server asks for it.
async fn begun(world: &World) -> TcpStream {
    let mut stream = connection(world).await;
    let key = &world.key;
    let head = format!(
        "POST /api/v1/posts HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut asked = [0; 25];
    timeout(PATIENCE, stream.read_exact(&mut asked)).await.expect("a 100 response").unwrap();
    assert_eq!(asked, *b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"{").await.unwrap();
    stream
}

/// Checks the default time-outs, used if the operator sets none.
#[tokio::test]
async fn default_time_outs_match_the_contract() {
    let world = world().start().await;
    let help = world.command(&["api", "--help"]).await;
    let help = String::from_utf8(help.stdout).unwrap();
    for (variable, seconds) in
        [("FANFARE_HEAD_TIMEOUT", 15), ("FANFARE_BODY_TIMEOUT", 30), ("FANFARE_IDLE_TIMEOUT", 75)]
    {
        let default = format!("[env: {variable}=] [default: {seconds}]");
        assert!(help.contains(&default), "{default}: {help}");
    }
}

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[tokio::test]
async fn an_unfinished_head_closes_the_connection() {
    let world = world().set("FANFARE_HEAD_TIMEOUT", "1").start().await;
    let mut silent = connection(&world).await;
    let mut half = connection(&world).await;
    half.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc").await.unwrap();
    let mut later = connection(&world).await;
    later.write_all(HEALTH).await.unwrap();
    assert!(answer(&mut later).await.starts_with("HTTP/1.1 200"));
    later.write_all(b"GET /healthz").await.unwrap();
    let slow = connection(&world).await;
    let (mut reading, mut writing) = slow.into_split();
    let dripping = tokio::spawn(async move {
        writing.write_all(b"GET /healthz HTTP/1.1\r\nX-Slow: ").await.unwrap();
        let mut pace = interval(Duration::from_millis(50));
        while writing.write_all(b"a").await.is_ok() {
            pace.tick().await;
        }
    });
    for stream in [&mut silent, &mut half, &mut later] {
        assert!(!rest(stream).await.contains("HTTP/1.1 200"));
    }
    let mut bytes = Vec::new();
    let _ = timeout(PATIENCE, reading.read_to_end(&mut bytes)).await.expect("a slow head ends");
    dripping.abort();
}

#[tokio::test]
async fn a_response_before_the_body_keeps_the_connection_open() {
    let world = world().start().await;
    for (method, path, status) in [
        ("POST", "/api/v1/social-accounts/pending/none/finalize", 404),
        ("POST", "/api/v1/posts", 401),
        ("GET", "/api/v1/posts", 401),
        ("PUT", "/api/v1/posts", 405),
    ] {
        let mut stream = connection(&world).await;
        let body = vec![b'['; 1 << 20];
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let reported = answer(&mut stream).await;
        assert!(reported.starts_with(&format!("HTTP/1.1 {status}")), "{method} {path}: {reported}");
        stream.write_all(&body).await.unwrap();
        stream.write_all(HEALTH).await.unwrap();
        let reported = answer(&mut stream).await;
        assert!(reported.contains("HTTP/1.1 200"), "{method} {path}: {reported}");
    }
}

#[tokio::test]
async fn a_missing_body_is_answered_with_408() {
    let world = world().set("FANFARE_BODY_TIMEOUT", "1").start().await;
    let upload = world.declare(json!({ "filename": "a.png" })).await;
    let upload = upload["upload_url"].as_str().unwrap();
    let (_, upload) = upload.split_at(upload.find("/api/").unwrap());
    for (method, path) in [("POST", "/api/v1/posts"), ("POST", "/api/mcp"), ("PUT", upload)] {
        let mut stream = connection(&world).await;
        let key = &world.key;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Content-Length: 1000\r\n\r\n{{\"content\": "
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let said = rest(&mut stream).await;
        assert!(said.starts_with("HTTP/1.1 408"), "{path}: {said}");
        assert!(said.contains("\"request_timeout\""), "{path}: {said}");
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let world = world().set("FANFARE_IDLE_TIMEOUT", "1").start().await;
    let mut stream = connection(&world).await;
    stream.write_all(HEALTH).await.unwrap();
    assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200"));
    assert_eq!(rest(&mut stream).await, "");
}

#[tokio::test]
async fn connections_over_the_limit_wait_and_idle_ones_are_closed() {
    let world = world().set("FANFARE_CONNECTIONS", "2").start().await;
    let [mut first, mut second] = [connection(&world).await, connection(&world).await];
    for stream in [&mut first, &mut second] {
        stream.write_all(HEALTH).await.unwrap();
        assert!(answer(stream).await.starts_with("HTTP/1.1 200"));
    }
    let mut third = connection(&world).await;
    third.write_all(HEALTH).await.unwrap();
    assert!(answer(&mut third).await.starts_with("HTTP/1.1 200"));
    assert_eq!(rest(&mut first).await, "", "the one that was idle for longest is closed");

    // From here on, neither of the two open connections is idle.
    let mut busy = [begun(&world).await, begun(&world).await];
    let mut fourth = connection(&world).await;
    fourth.write_all(HEALTH).await.unwrap();
    let early = timeout(Duration::from_millis(500), fourth.read(&mut [0; 1])).await;
    assert!(early.is_err(), "it is served although two are open: {early:?}");
    busy[0].write_all(b"}").await.unwrap();
    assert!(answer(&mut busy[0]).await.starts_with("HTTP/1.1 400"));
    assert!(answer(&mut fourth).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn concurrent_http_2_streams_are_limited() {
    let world = world().start().await;
    let mut stream = connection(&world).await;
    // The preface and empty settings: RFC 9113, 3.4 and 6.5.
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let mut head = [0; 9];
    timeout(PATIENCE, stream.read_exact(&mut head)).await.expect("settings").unwrap();
    assert_eq!(head[3], 4, "the first frame holds settings");
    let mut settings = vec![0; usize::from(head[2])];
    timeout(PATIENCE, stream.read_exact(&mut settings)).await.expect("settings").unwrap();
    let streams = settings.chunks(6).find(|setting| setting[..2] == [0, 3]);
    let streams = u32::from_be_bytes(streams.expect("a stream limit")[2..].try_into().unwrap());
    assert!((100..=200).contains(&streams), "{streams}");
}

/// Measures CPU time, the only way to distinguish a server that waits from one that spins.
#[tokio::test]
async fn without_file_descriptors_the_server_waits_and_does_not_spin() {
    let mut world = world().running(&[]).start().await;
    world.run_with_files("api", 80).await;
    let pid = world.pids()[0];
    let mut streams = Vec::new();
    for _ in 0..120 {
        let mut stream = connection(&world).await;
        stream.write_all(b"GET /healthz HTTP/1.1\r\n").await.unwrap();
        streams.push(stream);
    }
    let before = cpu_time(pid).unwrap();
    // The last connection is not accepted until another one closes.
    let waiting = timeout(Duration::from_secs(3), streams.last_mut().unwrap().read_u8()).await;
    assert!(waiting.is_err(), "{waiting:?}");
    let used = cpu_time(pid).unwrap() - before;
    assert!(used < Duration::from_millis(750), "it used {used:?} in 3 s of waiting");
    drop(streams);
    let mut stream = connection(&world).await;
    stream.write_all(HEALTH).await.unwrap();
    assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn requests_in_flight_are_answered_during_shutdown() {
    let mut world = world().own().start().await;
    let mut idle = connection(&world).await;
    idle.write_all(HEALTH).await.unwrap();
    assert!(answer(&mut idle).await.starts_with("HTTP/1.1 200"));
    let mut stream = begun(&world).await;
    kill(Pid::from_raw(world.pids()[0].try_into().unwrap()), Signal::SIGTERM).unwrap();
    // The idle connection closes immediately, which shows that the shutdown has begun.
    assert_eq!(rest(&mut idle).await, "");
    stream.write_all(b"}").await.unwrap();
    assert!(answer(&mut stream).await.starts_with("HTTP/1.1 400"));
    assert!(world.stop("all").await);
}
