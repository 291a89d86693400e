//! `fanfare health`: asks a process of this machine whether it is well, for probes in containers without curl.

use anyhow::Context;
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use url::Url;

/// Maximum size of a status line, in bytes.
const STATUS_BYTES: u64 = 512;

/// Requests a URL, and succeeds if the answer's status is 2xx.
///
/// # Errors
///
/// If it is another one, or there is none within `limit`.
pub(crate) async fn check(url: &Url, limit: Duration) -> anyhow::Result<()> {
    let status = timeout(limit, status(url))
        .await
        .with_context(|| format!("{url} does not answer within {limit:?}"))?
        .with_context(|| format!("{url} does not answer"))?;
    anyhow::ensure!((200..300).contains(&status), "{url} answers with {status}");
    Ok(())
}

async fn status(url: &Url) -> anyhow::Result<u16> {
    anyhow::ensure!(url.scheme() == "http", "only http is supported");
    let host = url.host_str().context("the URL has no host")?;
    // An IPv6 address has brackets in a URL and in the header only.
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let mut stream = TcpStream::connect((name, url.port_or_known_default().unwrap_or(80))).await?;
    // Version 1.0: the server closes the connection after its answer.
    let request = format!("GET {} HTTP/1.0\r\nHost: {host}\r\n\r\n", &url[url::Position::BeforePath..]);
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(STATUS_BYTES).read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).context("the answer is not HTTP")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn only_a_successful_answer_is_healthy() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url: Url = format!("http://{}/readyz?all", listener.local_addr().unwrap()).parse().unwrap();
        let answers = [
            ("HTTP/1.1 200 OK\r\n\r\nok", ""),
            ("HTTP/1.0 204 No Content\r\n\r\n", ""),
            ("HTTP/1.1 503 Service Unavailable\r\n\r\n", "answers with 503"),
            ("HTTP/1.1 302 Found\r\n\r\n", "answers with 302"),
            ("SSH-2.0-OpenSSH\r\n", "does not answer: the answer is not HTTP"),
            ("", "does not answer: the answer is not HTTP"),
        ];
        let served = tokio::spawn(async move {
            for (answer, _) in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = [0; 1024];
                let read = stream.read(&mut head).await.unwrap();
                assert!(head[..read].starts_with(b"GET /readyz?all HTTP/1.0\r\nHost: 127.0.0.1\r\n"));
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        for (answer, expected) in answers {
            let outcome = check(&url, Duration::from_secs(60)).await;
            match outcome {
                Ok(()) => assert_eq!(expected, "", "{answer:?}"),
                Err(error) => {
                    assert!(!expected.is_empty() && format!("{error:#}").ends_with(expected), "{error:#}")
                }
            }
        }
        served.await.unwrap();
        // Nobody listens there any longer.
        check(&url, Duration::from_secs(60)).await.unwrap_err();
    }

    #[tokio::test]
    async fn a_process_is_asked_by_its_ipv6_address() {
        let listener = TcpListener::bind("[::1]:0").await.unwrap();
        let url: Url = format!("http://{}/healthz", listener.local_addr().unwrap()).parse().unwrap();
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 1024];
            let read = stream.read(&mut head).await.unwrap();
            assert!(head[..read].starts_with(b"GET /healthz HTTP/1.0\r\nHost: [::1]\r\n"));
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nok").await.unwrap();
        });
        check(&url, Duration::from_secs(60)).await.unwrap();
        served.await.unwrap();
    }

    #[tokio::test]
    async fn a_process_that_does_not_answer_is_not_healthy() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url: Url = format!("http://{}/healthz", listener.local_addr().unwrap()).parse().unwrap();
        // Nobody accepts the connection, however long the limit is.
        let error = check(&url, Duration::from_millis(20)).await.unwrap_err().to_string();
        assert!(error.ends_with("does not answer within 20ms"), "{error}");
    }
}
