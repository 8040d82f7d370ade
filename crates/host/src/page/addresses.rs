//! Addresses of content that a browser can load by itself: signed for one device, for a while.
//!
//! Promises: only the host can make one; it names the content, the type that was asked for, the device and its end. All addresses of
//! one day for the same thing are the same, so that a browser's cache finds them again.
//! Must not know: HTTP, where content lies, which devices there are.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use wire::{Digest, Timestamp, percent};

const DAY_S: i64 = 86_400;
/// What the key is for, so that it is of no use for anything else.
const PURPOSE: &[u8] = b"addresses of content, 1";

/// Makes and checks them.
pub(crate) struct ContentAddresses {
    key: [u8; 32],
}

/// What an address says, once it is known to be ours.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SignedAddress {
    pub device: String,
    pub content_type: String,
}

/// Why an address does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressFault {
    Wrong,
    Expired,
}

/// What stands in the query of an address, as it came.
#[derive(Debug, Default)]
pub(crate) struct AddressParts {
    pub content_type: Option<String>,
    pub end: Option<String>,
    pub signature: Option<String>,
}

impl ContentAddresses {
    /// With a key that follows from the host's token, so that addresses outlive a restart; one of its own if there is none.
    pub(super) fn new(token: Option<&str>) -> Result<Self, getrandom::Error> {
        let Some(token) = token else {
            let mut secret = [0; 32];
            getrandom::fill(&mut secret)?;
            return Ok(Self::over(secret));
        };
        Ok(Self::of_secret(token))
    }

    /// With a key that follows from a secret that others know too.
    pub(crate) fn of_secret(secret: &str) -> Self {
        Self::over(Sha256::digest(secret).into())
    }

    fn over(secret: [u8; 32]) -> Self {
        let key = mac(&secret, &[PURPOSE]).finalize().into_bytes().into();
        Self { key }
    }

    /// The path and query of some content, good until the end of the next day.
    pub(crate) fn sign(
        &self,
        device: &str,
        digest: &Digest,
        content_type: &str,
        now: Timestamp,
    ) -> String {
        let end = end_of_next_day(now).to_string();
        let mac = self.mac(device, digest, content_type, &end).finalize();
        let signature = URL_SAFE_NO_PAD.encode(mac.into_bytes());
        let content_type = percent::encode_word(content_type);
        format!("/content/{digest}?type={content_type}&exp={end}&sig={device}.{signature}")
    }

    /// Whether an address is ours and still counts.
    pub(crate) fn check(
        &self,
        digest: &Digest,
        parts: AddressParts,
        now: Timestamp,
    ) -> Result<SignedAddress, AddressFault> {
        let AddressParts {
            content_type: Some(content_type),
            end: Some(end),
            signature: Some(signature),
        } = parts
        else {
            return Err(AddressFault::Wrong);
        };
        let (device, signature) = signature.split_once('.').ok_or(AddressFault::Wrong)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| AddressFault::Wrong)?;
        let mac = self.mac(device, digest, &content_type, &end);
        mac.verify_slice(&signature).map_err(|_| AddressFault::Wrong)?;
        // It is ours, so it is a number.
        let end: i64 = end.parse().map_err(|_| AddressFault::Wrong)?;
        if now.0 / 1_000 >= end {
            return Err(AddressFault::Expired);
        }
        Ok(SignedAddress { device: device.to_owned(), content_type })
    }

    fn mac(&self, device: &str, digest: &Digest, content_type: &str, end: &str) -> Hmac<Sha256> {
        let parts = [device, content_type, end].map(str::as_bytes);
        let [device, content_type, end] = parts;
        mac(&self.key, &[device, digest.as_bytes(), content_type, end])
    }
}

/// Each part with its length, so that no two lists are the same bytes.
fn mac(key: &[u8; 32], parts: &[&[u8]]) -> Hmac<Sha256> {
    // A key is filled up with zeros to the block that is hashed.
    let mut block = [0; 64];
    block[..32].copy_from_slice(key);
    let mut mac = Hmac::<Sha256>::new(&block.into());
    for part in parts {
        mac.update(&(part.len() as u64).to_le_bytes());
        mac.update(part);
    }
    mac
}

/// In seconds since 1970.
pub(crate) fn end_of_next_day(now: Timestamp) -> i64 {
    let day = (now.0 / 1_000).div_euclid(DAY_S);
    (day + 2) * DAY_S
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn parts(address: &str) -> AddressParts {
        let query = address.split_once('?').unwrap().1;
        let value = |name: &str| {
            let mut pairs = query.split('&').map(|pair| pair.split_once('=').unwrap());
            pairs
                .find(|(key, _)| *key == name)
                .map(|(_, value)| String::from_utf8(percent::decode(value).unwrap()).unwrap())
        };
        AddressParts { content_type: value("type"), end: value("exp"), signature: value("sig") }
    }

    #[test]
    fn an_address_counts_for_what_it_says_until_the_end_of_the_next_day() {
        let addresses = ContentAddresses::new(Some("token")).unwrap();
        let digest = Digest::new([1; 32]);
        let address = addresses.sign("d1", &digest, "image/svg+xml", NOW);
        assert!(address.starts_with(&format!("/content/{digest}?type=image%2Fsvg%2Bxml&exp=")));
        let signed = addresses.check(&digest, parts(&address), NOW).unwrap();
        assert_eq!((signed.device.as_str(), signed.content_type.as_str()), ("d1", "image/svg+xml"));
        let later = Timestamp(NOW.0 + 3_600_000);
        assert_eq!(addresses.sign("d1", &digest, "image/svg+xml", later), address);
        let end = Timestamp(end_of_next_day(NOW) * 1_000);
        assert!(end.0 - NOW.0 > 86_400_000 && end.0 - NOW.0 <= 2 * 86_400_000);
        let before = Timestamp(end.0 - 1);
        assert!(addresses.check(&digest, parts(&address), before).is_ok());
        assert_eq!(addresses.check(&digest, parts(&address), end), Err(AddressFault::Expired));
        let again = ContentAddresses::new(Some("token")).unwrap();
        assert!(again.check(&digest, parts(&address), NOW).is_ok(), "after a restart");
    }

    #[test]
    fn whatever_is_changed_does_not_count() {
        let addresses = ContentAddresses::new(Some("token")).unwrap();
        let digest = Digest::new([1; 32]);
        let address = addresses.sign("d1", &digest, "image/png", NOW);
        let wrong = |parts: AddressParts, digest: Digest| {
            assert_eq!(addresses.check(&digest, parts, NOW), Err(AddressFault::Wrong));
        };
        wrong(parts(&address), Digest::new([2; 32]));
        wrong(AddressParts::default(), digest);
        wrong(
            AddressParts { content_type: Some("text/html".to_owned()), ..parts(&address) },
            digest,
        );
        wrong(AddressParts { end: Some("9999999999".to_owned()), ..parts(&address) }, digest);
        let signature = parts(&address).signature.unwrap();
        for other in [
            signature.replace("d1.", "d2."),
            signature.replace("d1.", ""),
            format!("{signature}A"),
            "d1.".to_owned(),
            String::new(),
        ] {
            wrong(AddressParts { signature: Some(other), ..parts(&address) }, digest);
        }
        for key in [Some("other"), None] {
            let others = ContentAddresses::new(key).unwrap();
            assert_eq!(others.check(&digest, parts(&address), NOW), Err(AddressFault::Wrong));
        }
    }
}
