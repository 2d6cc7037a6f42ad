//! The listener's certificate. It is loaded again when its files change, so that a renewed one needs
//! no restart.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use domain::config::TlsFiles;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::fingerprint::{Fingerprint, fingerprint};

/// The interval between checks of the files.
const INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct Tls {
    files: TlsFiles,
    config: ArcSwap<ServerConfig>,
}

impl Tls {
    pub(crate) fn load(files: TlsFiles) -> Result<Tls, String> {
        let config = ArcSwap::new(config(&files)?);
        Ok(Tls { files, config })
    }

    /// Returns an acceptor with the latest certificate.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.config.load_full())
    }

    /// Loads changed files. If they cannot be used, the old certificate stays.
    pub(crate) async fn watch(self: Arc<Self>, stop: CancellationToken) {
        let mut seen = self.version();
        loop {
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = stop.cancelled() => return,
            }
            let now = self.version();
            if now == seen {
                continue;
            }
            seen = now;
            match config(&self.files) {
                Ok(config) => {
                    self.config.store(config);
                    tracing::info!("certificate reloaded");
                }
                Err(error) => tracing::error!("{error}; the old certificate stays"),
            }
        }
    }

    fn version(&self) -> [Option<Fingerprint>; 2] {
        [&self.files.cert, &self.files.key].map(|file| fingerprint(Path::new(file)))
    }
}

fn config(files: &TlsFiles) -> Result<Arc<ServerConfig>, String> {
    let TlsFiles { cert, key } = files;
    let wrong = |file: &str, error: &dyn std::fmt::Display| format!("tls: '{file}': {error}");
    let chain = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect);
    let chain: Vec<_> = chain.map_err(|error| wrong(cert, &error))?;
    if chain.is_empty() {
        return Err(wrong(cert, &"there is no certificate in it"));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret));
    let mut config = config.map_err(|error| wrong(cert, &error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
