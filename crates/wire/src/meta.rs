//! Names under which the host keeps something of its own in a part's `_meta`. Clients may read them and need not.

/// On a notification: the steering `Message` that was taken there. Nothing else in a turn holds it.
pub const STEERING: &str = "greenroom.steering";
