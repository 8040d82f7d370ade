//! The check of an action's payload: the published type of its kind has to read it (H-078).
//!
//! Promises: accepts what the published union of all actions accepts, and reads no other type than the one of the kind.
//! Must not know: who sent the action, what it does.

use ahp_types::actions::StateAction;
use serde::Deserialize;
use serde_json::Value;

use super::kind::ActionKind;
use super::table::with_action_table;

macro_rules! define_payload_check {
    (
        $(channel $channel:ident: $actions:ident, $reduce:ident($state:ident) {
            $($kind:ident $name:literal $sender:ident $(($action:ident))? $since:ident $record:ident
                $reducer:path $(, message $field:literal)?;)*
        } extensions {
            $($x_kind:ident $x_name:literal $x_sender:ident($x_action:ident) $x_since:ident $x_record:ident
                $x_reducer:path;)*
        })*
        others {
            $($o_channel:ident {
                $($o_kind:ident $o_name:literal $o_sender:ident $o_since:ident $o_record:ident;)*
            })*
        }
    ) => {
        /// Reports if the published type of a kind reads an action. Kinds without one accept every payload.
        pub(super) fn is_readable(kind: ActionKind, action: &Value) -> bool {
            match kind {
                $($(ActionKind::$kind => reads(StateAction::$kind, action),)*)*
                $($(ActionKind::$o_kind => reads(StateAction::$o_kind, action),)*)*
                $($(ActionKind::$x_kind |)*)* ActionKind::Unknown => true,
            }
        }
    };
}

with_action_table!(define_payload_check);

/// Reads an action as the published type that a variant of the published union holds. Reading through the union itself
/// would copy the action first and generate every type a second time.
fn reads<'de, T: Deserialize<'de>>(_: impl FnOnce(T) -> StateAction, action: &'de Value) -> bool {
    T::deserialize(action).is_ok()
}

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
