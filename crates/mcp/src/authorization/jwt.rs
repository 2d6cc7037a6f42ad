//! The signed assertion of a client (RFC 7523): a JWT with ES256 or RS256.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use jiff::Timestamp;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;

use super::error::AuthorizationError;

/// The lifetime of an assertion; it is used at once.
const LIFETIME_S: i64 = 300;

pub(super) fn assertion(
    client: &str,
    audience: &str,
    key: &str,
) -> Result<String, AuthorizationError> {
    let unfit = AuthorizationError::Key("the private key is not PKCS#8 in PEM");
    let key = PrivatePkcs8KeyDer::from_pem_slice(key.as_bytes()).map_err(|_| unfit.clone())?;
    let der = key.secret_pkcs8_der();
    let issued = Timestamp::now().as_second();
    let claims = json!({
        "iss": client, "sub": client, "aud": audience, "iat": issued,
        "exp": issued + LIFETIME_S, "jti": super::login::random()?,
    });
    let part = |value: &serde_json::Value| BASE64.encode(value.to_string());
    let random = SystemRandom::new();
    if let Ok(pair) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der) {
        let signed = format!("{}.{}", part(&json!({"alg": "ES256", "typ": "JWT"})), part(&claims));
        let signature = pair.sign(&random, signed.as_bytes()).map_err(|_| unfit)?;
        return Ok(format!("{signed}.{}", BASE64.encode(signature)));
    }
    let kind = AuthorizationError::Key("the private key is neither P-256 nor RSA");
    let pair = RsaKeyPair::from_pkcs8(der).map_err(|_| kind.clone())?;
    let signed = format!("{}.{}", part(&json!({"alg": "RS256", "typ": "JWT"})), part(&claims));
    let mut signature = vec![0; pair.public_modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature).map_err(|_| kind)?;
    Ok(format!("{signed}.{}", BASE64.encode(signature)))
}
