//! `bench bare-page`: the floor of a file of the page. hyper alone, answering every request with the same bytes, until it is asked to
//! end, as the host is.

use std::convert::Infallible;

use anyhow::Result;
use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct BarePageOptions {
    /// The body, by its length: its bytes do not matter.
    #[arg(long)]
    pub bytes: usize,
}

pub(crate) fn run(options: &BarePageOptions) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    std::thread::spawn(|| {
        for _ in std::io::stdin().lines() {}
        std::process::exit(0);
    });
    let body = Bytes::from(vec![b'x'; options.bytes]);
    runtime.block_on(async {
        // Listened for before the address is told: whoever knows it may ask for the end.
        let mut end = signal(SignalKind::terminate())?;
        tokio::select! {
            served = serve(body) => served,
            _ = end.recv() => Ok(()),
        }
    })
}

async fn serve(body: Bytes) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", json!({"url": format!("ws://{}/", listener.local_addr()?)}));
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let body = body.clone();
        tokio::spawn(async move {
            let answer = service_fn(move |_| {
                let response = Response::new(Full::new(body.clone()));
                async { Ok::<_, Infallible>(response) }
            });
            // It ends when the driver leaves.
            let _ = Builder::new().serve_connection(TokioIo::new(socket), answer).await;
        });
    }
}
