//! stub
/// stub
#[derive(Debug, thiserror::Error)]
#[error("stub")]
pub struct DecodeError;
/// stub
pub fn display(bytes: &[u8]) -> impl std::fmt::Display {
    format!("{bytes:?}")
}
