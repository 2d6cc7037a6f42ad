//! The certificates that authenticate a collector: those that the system trusts, and those of
//! `OTEL_EXPORTER_OTLP_CERTIFICATE`.

use std::sync::Arc;

use opentelemetry_otlp::tonic_types::transport::{Certificate, ClientTlsConfig};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::destination::{CertificateFile, Destination};

/// Returns the TLS config for OTLP over HTTP.
pub(super) fn config(destination: &Destination) -> Result<Arc<ClientConfig>, String> {
    let extra = match &destination.certificate {
        Some(file) => parse(file, &read(file)?)?,
        None => Vec::new(),
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let make = || -> Result<ClientConfig, rustls::Error> {
        let verifier =
            rustls_platform_verifier::Verifier::new_with_extra_roots(extra, provider.clone())?;
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    };
    make().map(Arc::new).map_err(|error| format!("TLS: {error}"))
}

/// Returns the TLS configs for gRPC in the order to try them: gRPC rejects a system without trusted
/// certificates, even if the user's own certificate suffices.
pub(super) fn grpc_configs(destination: &Destination) -> Result<Vec<ClientTlsConfig>, String> {
    // Without a timeout, a collector that never completes its handshake would block us even after
    // it recovered.
    let plain = ClientTlsConfig::new().timeout(destination.timeout);
    let system = plain.clone().with_native_roots();
    let Some(file) = &destination.certificate else {
        return Ok(vec![system]);
    };
    let pem = read(file)?;
    parse(file, &pem)?;
    let certificate = Certificate::from_pem(pem);
    Ok(vec![system.ca_certificate(certificate.clone()), plain.ca_certificate(certificate)])
}

fn read(file: &CertificateFile) -> Result<Vec<u8>, String> {
    std::fs::read(&file.path)
        .map_err(|error| format!("{}: cannot read '{}': {error}", file.variable, file.path))
}

fn parse(file: &CertificateFile, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(format!("{}: no certificate in '{}'", file.variable, file.path)),
        Err(error) => Err(format!("{}: '{}': {error}", file.variable, file.path)),
    }
}
