//! TLS, with certificates and host names always verified.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use keyloom::{Error, Result};

/// TLS that trusts the authorities of `ca_certificate` (PEM), or the authorities of the system.
pub(super) fn connect(ca_certificate: Option<&[u8]>) -> Result<MakeRustlsConnect> {
    let mut roots = RootCertStore::empty();
    match ca_certificate {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let added = certificate.map(|certificate| roots.add(certificate));
                if !matches!(added, Ok(Ok(()))) {
                    return Err(unusable());
                }
            }
            if roots.is_empty() {
                return Err(unusable());
            }
        }
        None => {
            let native = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(native.certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Backend(error.into()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn unusable() -> Error {
    Error::InvalidArgument {
        what: "the CA certificate",
        value: "(PEM)".into(),
        why: "it is one or more certificates as PEM text",
    }
}
