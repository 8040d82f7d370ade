//! Bodies that go as they are: whether the target takes them, made to fit if they are pictures.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::decide::{Lowering, NO_ROOM, TOO_LARGE};
use super::{Media, Target};
use crate::picture;
use crate::resolve::{Animation, PictureLimits, WhyOmitted};
use crate::sniff::{Class, Kind};

/// Why a body is described instead of sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) why: String,
    pub(super) omitted: Option<WhyOmitted>,
    /// Whether the user is told.
    pub(super) is_told: bool,
}

impl Refused {
    pub(super) fn because(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            omitted: None,
            is_told: true,
        }
    }

    pub(super) fn untaken(target: Target, class: Class) -> Self {
        Self::because(format!("{} takes no {}", target.name(), named(class)))
    }

    /// Nothing else could have been expected.
    pub(super) fn quietly(why: &str) -> Self {
        Self {
            is_told: false,
            ..Self::because(why)
        }
    }

    pub(super) fn too_large(why: String) -> Self {
        Self {
            omitted: TOO_LARGE,
            ..Self::because(why)
        }
    }
}

/// A block that holds a body.
pub(super) struct Native {
    pub(super) block: Value,
    class: Class,
    bytes: u64,
    /// What was done so that it fits.
    pub(super) changed: Option<String>,
}

impl Lowering<'_> {
    /// The block of a body, if it is taken and there is room for it. `data` is its base64, if that is there.
    pub(super) fn native(
        &mut self,
        at: usize,
        kind: &Kind,
        bytes: &[u8],
        data: Option<&str>,
        name: &str,
    ) -> Result<Native, Refused> {
        let target = self.target.name();
        if self.room.described.contains(&at) {
            return Err(Refused::too_large(format!("{target} has refused it")));
        }
        let capabilities = self.capabilities;
        let Some(taken) = capabilities.of_class(kind.class) else {
            return Err(Refused::untaken(self.target, kind.class));
        };
        let mut fitted = None;
        let mut changed = None;
        if kind.class == Class::Image {
            let limits = taken.picture(&kind.mime, self.room.images_expected);
            if let Some(unfit) = Unfit::of(&kind.mime, bytes, &limits, taken.takes(&kind.mime)) {
                let fit = self.sources.fit_picture(&kind.mime, bytes, &limits);
                let fit = fit.filter(|(mime, bytes)| {
                    taken.takes(mime) && Unfit::of(mime, bytes, &limits, true).is_none()
                });
                fitted = Some(fit.ok_or_else(|| unfit.refused(target, &kind.mime))?);
                changed = Some(unfit.remedy(target));
            }
        }
        let (mime, bytes, data) = match &fitted {
            Some((mime, bytes)) => (mime.as_str(), bytes.as_slice(), None),
            None => (kind.mime.as_str(), bytes, data),
        };
        if !taken.takes(mime) {
            return Err(Refused::because(format!("{target} takes no {mime}")));
        }
        let base64_bytes = bytes.len().div_ceil(3) as u64 * 4;
        if taken
            .base64_bytes_each
            .is_some_and(|most| base64_bytes > most)
        {
            return Err(Refused::too_large(format!("it is too large for {target}")));
        }
        if kind.class == Class::Image && self.room.images_left == Some(0) {
            return Err(Refused::because(format!("{target} takes no more pictures")));
        }
        if !self.has_room(base64_bytes) {
            return Err(Refused::too_large(NO_ROOM.to_owned()));
        }
        let base64 = data.map_or_else(|| Cow::Owned(STANDARD.encode(bytes)), Cow::Borrowed);
        let media = Media {
            class: kind.class,
            mime,
            base64: &base64,
            name,
            uri: &|| wire::Digest::new(Sha256::digest(bytes).into()).uri(),
        };
        let block = self.target.media(&media);
        Ok(Native {
            block: block
                .ok_or_else(|| Refused::because(format!("{target} has no block for {mime}")))?,
            class: kind.class,
            bytes: base64_bytes,
            changed,
        })
    }

    pub(super) fn put_media(&mut self, at: usize, native: Native) {
        if native.class == Class::Image
            && let Some(left) = &mut self.room.images_left
        {
            *left = left.saturating_sub(1);
        }
        self.take_bytes(native.bytes);
        self.out.blocks.push(native.block);
        let why = native.changed.as_deref();
        self.decided(at, named(native.class), why, native.bytes);
    }
}

fn named(class: Class) -> &'static str {
    match class {
        Class::Text => "text",
        Class::Image => "image",
        Class::Pdf => "document",
        Class::Audio => "audio",
        Class::Video => "video",
        Class::Unknown => "binary",
    }
}

/// Why a picture cannot go as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unfit {
    Type,
    Moves,
    Bytes,
    Pixels,
}

impl Unfit {
    fn of(mime: &str, bytes: &[u8], limits: &PictureLimits, is_taken: bool) -> Option<Self> {
        let too_wide = |most: u32| {
            let sides = picture::sides(bytes);
            // What has no size that we can read is left to the target.
            sides.is_some_and(|(width, height)| width.max(height) > most)
        };
        if !is_taken {
            Some(Self::Type)
        } else if limits
            .bytes_max
            .is_some_and(|most| bytes.len() as u64 > most)
        {
            Some(Self::Bytes)
        } else if limits.side_px_max.is_some_and(too_wide) {
            Some(Self::Pixels)
        } else if mime == "image/gif"
            && limits.animation == Animation::Refused
            && picture::is_animated_gif(bytes)
        {
            Some(Self::Moves)
        } else {
            None
        }
    }

    fn refused(self, target: &str, mime: &str) -> Refused {
        match self {
            Self::Type => Refused::because(format!("{target} takes no {mime}")),
            Self::Moves => Refused::because(format!("{target} takes no moving pictures")),
            Self::Bytes => Refused::too_large(format!("the picture is too large for {target}")),
            Self::Pixels => {
                Refused::too_large(format!("the picture has too many pixels for {target}"))
            }
        }
    }

    fn remedy(self, target: &str) -> String {
        match self {
            Self::Type => format!("the picture was converted for {target}"),
            Self::Moves => format!("only the first picture of it goes to {target}"),
            Self::Bytes | Self::Pixels => format!("the picture was scaled down for {target}"),
        }
    }
}
