//! Bodies that are sent as blocks: whether the target accepts them, scaled or converted if they are images.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::capabilities::Media;
use super::part::{MessageLowering, OVER_BUDGET, TOO_LARGE};
use super::{MediaBody, Target};
use crate::image_header;
use crate::media_type::{Class, MediaType};
use crate::resolve::{Animation, ImageLimits, WhyOmitted};

/// Why a body is described instead of sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotSent {
    pub(super) why: String,
    pub(super) omitted: Option<WhyOmitted>,
    /// Whether the user gets a diagnostic.
    pub(super) is_reported: bool,
}

impl NotSent {
    pub(super) fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), omitted: None, is_reported: true }
    }

    pub(super) fn unsupported(target: Target, class: Class) -> Self {
        Self::because(format!("{} does not accept {}", target.name(), name_of(class)))
    }

    /// Nothing else could have been expected.
    pub(super) fn unreported(why: &str) -> Self {
        Self { is_reported: false, ..Self::because(why) }
    }

    pub(super) fn too_large(why: String) -> Self {
        Self { omitted: TOO_LARGE, ..Self::because(why) }
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

impl MessageLowering<'_> {
    /// The block of a body, if it is accepted and fits. `data` is its base64, if that is there.
    pub(super) fn media_block(
        &mut self,
        at: usize,
        kind: &MediaType,
        bytes: &[u8],
        data: Option<&str>,
        name: &str,
    ) -> Result<Native, NotSent> {
        let target = self.target.name();
        if self.budget.described.contains(&at) {
            return Err(NotSent::too_large(format!("{target} has refused it")));
        }
        let capabilities = self.capabilities;
        let Some(taken) = capabilities.of_class(kind.class) else {
            return Err(NotSent::unsupported(self.target, kind.class));
        };
        if kind.class == Class::Pdf {
            self.check_document(bytes, taken)?;
        }
        let mut fitted = None;
        let mut changed = None;
        if kind.class == Class::Image {
            let limits = taken.picture(&kind.mime, self.budget.images_expected);
            if let Some(mismatch) =
                Mismatch::of(&kind.mime, bytes, &limits, taken.takes(&kind.mime))
            {
                let fit =
                    self.sources.fit_image(&kind.mime, bytes, &limits).filter(|(mime, bytes)| {
                        taken.takes(mime) && Mismatch::of(mime, bytes, &limits, true).is_none()
                    });
                fitted = Some(fit.ok_or_else(|| mismatch.refused(target, &kind.mime))?);
                changed = Some(mismatch.remedy(target));
            }
        }
        let (mime, bytes, data) = match &fitted {
            Some((mime, bytes)) => (mime.as_str(), bytes.as_slice(), None),
            None => (kind.mime.as_str(), bytes, data),
        };
        if !taken.takes(mime) {
            return Err(NotSent::because(format!("{target} does not accept {mime}")));
        }
        let base64_bytes = bytes.len().div_ceil(3) as u64 * 4;
        if taken.base64_bytes_each.is_some_and(|most| base64_bytes > most) {
            return Err(NotSent::too_large(format!("it is too large for {target}")));
        }
        if kind.class == Class::Image && self.budget.images_left == Some(0) {
            return Err(NotSent::because(format!("{target} accepts no more images")));
        }
        if !self.fits(base64_bytes) {
            return Err(NotSent::too_large(OVER_BUDGET.to_owned()));
        }
        let base64 = data.map_or_else(|| Cow::Owned(STANDARD.encode(bytes)), Cow::Borrowed);
        let media = MediaBody {
            class: kind.class,
            mime,
            base64: &base64,
            name,
            uri: &|| wire::Digest::of(bytes).uri(),
        };
        let block = self.target.media(&media);
        Ok(Native {
            block: block
                .ok_or_else(|| NotSent::because(format!("{target} has no block for {mime}")))?,
            class: kind.class,
            bytes: base64_bytes,
            changed,
        })
    }

    /// Whether a PDF may be sent as it is. What nobody can find out is left to the target.
    fn check_document(&mut self, bytes: &[u8], taken: &Media) -> Result<(), NotSent> {
        let target = self.target.name();
        let may_be_encrypted = memchr::memmem::find(bytes, b"/Encrypt").is_some();
        let is_refused = may_be_encrypted && !taken.encrypted;
        if taken.pages.is_none() && !is_refused {
            return Ok(());
        }
        let read = self.sources.read_document(bytes);
        let known = read.as_ref().filter(|read| read.pages.is_some());
        let is_encrypted = known.map_or(may_be_encrypted, |read| read.encrypted);
        if is_refused && is_encrypted {
            return Err(NotSent::because(format!("it is encrypted, and {target} cannot open it")));
        }
        let pages = read.and_then(|read| read.pages);
        match (pages, taken.pages) {
            (Some(pages), Some(most)) if pages > most => {
                Err(NotSent::too_large(format!("it has {pages} pages, and {target} takes {most}")))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn push_media(&mut self, at: usize, native: Native) {
        if native.class == Class::Image
            && let Some(left) = &mut self.budget.images_left
        {
            *left = left.saturating_sub(1);
        }
        self.use_bytes(native.bytes);
        self.out.blocks.push(native.block);
        let why = native.changed.as_deref();
        self.record_decision(at, name_of(native.class), why, native.bytes);
    }
}

fn name_of(class: Class) -> &'static str {
    match class {
        Class::Text => "text",
        Class::Image => "image",
        Class::Pdf => "document",
        Class::Audio => "audio",
        Class::Video => "video",
        Class::Unknown => "binary",
    }
}

/// Why an image cannot be sent unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mismatch {
    Type,
    Animated,
    Bytes,
    Pixels,
}

impl Mismatch {
    fn of(mime: &str, bytes: &[u8], limits: &ImageLimits, is_taken: bool) -> Option<Self> {
        let too_wide = |most: u32| {
            let dimensions = image_header::dimensions(bytes);
            // What has no size that we can read is left to the target.
            dimensions.is_some_and(|(width, height)| width.max(height) > most)
        };
        if !is_taken {
            Some(Self::Type)
        } else if limits.bytes_max.is_some_and(|most| bytes.len() as u64 > most) {
            Some(Self::Bytes)
        } else if limits.side_px_max.is_some_and(too_wide) {
            Some(Self::Pixels)
        } else if mime == "image/gif"
            && limits.animation == Animation::Refused
            && image_header::is_animated_gif(bytes)
        {
            Some(Self::Animated)
        } else {
            None
        }
    }

    fn refused(self, target: &str, mime: &str) -> NotSent {
        match self {
            Self::Type => NotSent::because(format!("{target} does not accept {mime}")),
            Self::Animated => NotSent::because(format!("{target} does not accept animated images")),
            Self::Bytes => NotSent::too_large(format!("the image is too large for {target}")),
            Self::Pixels => {
                NotSent::too_large(format!("the image has too many pixels for {target}"))
            }
        }
    }

    fn remedy(self, target: &str) -> String {
        match self {
            Self::Type => format!("the image was converted for {target}"),
            Self::Animated => format!("only its first frame is sent to {target}"),
            Self::Bytes | Self::Pixels => format!("the image was scaled down for {target}"),
        }
    }
}
