//! Properties of the address parser that hold for any bytes. Fuzz targets call them, and so do
//! tests that damage valid addresses.

use crate::address::valkey::ValkeyAddress;

/// Reads `data` as the address of a store.
///
/// # Panics
///
/// If an address shows its credentials, or if its shown form, with the credentials put back, parses
/// to another address. Any other panic is a bug too.
pub fn store_address(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(address) = ValkeyAddress::parse(&text) else {
        return;
    };
    let mut bare = address.clone();
    bare.username = None;
    bare.password = None;
    let shown = address.to_string();
    assert_eq!(shown, bare.to_string(), "shows credentials");
    assert_eq!(
        format!("{address:?}"),
        format!("{bare:?}"),
        "shows credentials"
    );
    assert_eq!(ValkeyAddress::parse(&shown), Ok(bare), "{shown} is another");

    let (scheme, rest) = shown.split_once("://").expect("an address has a scheme");
    let username = escape(address.username.as_deref().unwrap_or_default());
    let password = address.password.as_deref().map(escape);
    let password = password.map_or_else(String::new, |password| format!(":{password}"));
    let again = ValkeyAddress::parse(&format!("{scheme}://{username}{password}@{rest}"));
    assert!(again == Ok(address), "{shown} has other credentials");
}

/// Encodes every byte as a percent escape.
fn escape(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}
