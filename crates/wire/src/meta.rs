//! Keys of the host's own in the `_meta` of a part. Clients may ignore them.

/// On a notification: the steering `Message` that was inserted there. Nothing else in a turn holds it.
pub const STEERING: &str = "greenroom.steering";
