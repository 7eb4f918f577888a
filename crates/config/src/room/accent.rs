//! Accent colour of the waiting page, and the contrast that it needs.
//!
//! The formulas are those of WCAG 2.2: relative luminance and contrast ratio. White on black is
//! 21:1; text needs 4.5:1.

/// Least contrast of text and of the progress bar.
const CONTRAST_MIN: f64 = 4.5;
/// Ground of the page, light and dark; `waiting.css` has the same.
const CARD: Rgb = Rgb([255, 255, 255]);
const CARD_DARK: Rgb = Rgb([0x18, 0x1b, 0x20]);

/// Colour of three bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Rgb([u8; 3]);

/// Colour of buttons, links and the progress bar, with the colours that follow from it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Accent {
    fill: Rgb,
    on: Rgb,
    dark: Rgb,
}

/// Error of a colour.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum AccentError {
    /// Another form than `#rrggbb`.
    Form,
    /// A color that is too pale on the white page.
    Pale {
        /// Contrast as found, such as `2.9`.
        contrast: String,
        /// Colour of the same hue that passes.
        nearest: String,
    },
}

impl Rgb {
    fn read(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('#')?;
        if digits.len() != 6 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let part = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
        Some(Self([part(0)?, part(2)?, part(4)?]))
    }

    fn luminance(self) -> f64 {
        let [red, green, blue] = self.0.map(|byte| {
            let part = f64::from(byte) / 255.0;
            if part <= 0.04045 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    fn contrast(self, other: Self) -> f64 {
        let (one, two) = (self.luminance(), other.luminance());
        (one.max(two) + 0.05) / (one.min(two) + 0.05)
    }

    /// Mixes in `percent` of another colour.
    fn mixed(self, other: Self, percent: u32) -> Self {
        let mix = |at: usize| {
            let (own, its) = (u32::from(self.0[at]), u32::from(other.0[at]));
            let sum = own * (100 - percent) + its * percent;
            u8::try_from(sum / 100).unwrap_or(u8::MAX)
        };
        Self([mix(0), mix(1), mix(2)])
    }

    /// Returns the first mixture with `other` that is legible on `ground`.
    fn legible(self, ground: Self, other: Self) -> Self {
        let mut steps = (0..=100).map(|percent| self.mixed(other, percent));
        let found = steps.find(|colour| colour.contrast(ground) >= CONTRAST_MIN);
        found.unwrap_or(other)
    }

    fn css(self) -> String {
        let [red, green, blue] = self.0;
        format!("#{red:02x}{green:02x}{blue:02x}")
    }
}

impl Accent {
    /// Reads `#rrggbb`.
    pub(super) fn read(text: &str) -> Result<Self, AccentError> {
        const BLACK: Rgb = Rgb([0; 3]);
        let fill = Rgb::read(text).ok_or(AccentError::Form)?;
        let contrast = fill.contrast(CARD);
        if contrast < CONTRAST_MIN {
            return Err(AccentError::Pale {
                contrast: format!("{contrast:.1}"),
                nearest: fill.legible(CARD, BLACK).css(),
            });
        }
        // One of the two always has 4.58:1 or more.
        let is_dark = fill.contrast(CARD) >= fill.contrast(BLACK);
        Ok(Self {
            fill,
            on: if is_dark { CARD } else { BLACK },
            dark: fill.legible(CARD_DARK, CARD),
        })
    }

    /// Returns the colour as it was typed: ground of buttons, and accent of the light page.
    #[must_use]
    pub fn fill(&self) -> String {
        self.fill.css()
    }

    /// Returns the colour of text on it: black or white.
    #[must_use]
    pub fn on(&self) -> String {
        self.on.css()
    }

    /// Returns the accent of the dark page: the same hue, lighter.
    #[must_use]
    pub fn dark(&self) -> String {
        self.dark.css()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contrast_is_that_of_the_guidelines() {
        let check = |one: &str, two: &str, expected: &str| {
            let contrast = Rgb::read(one).unwrap().contrast(Rgb::read(two).unwrap());
            assert_eq!(format!("{contrast:.2}"), expected, "{one} {two}");
        };
        check("#000000", "#ffffff", "21.00");
        check("#777777", "#ffffff", "4.48");
        check("#767676", "#ffffff", "4.54");
    }

    #[test]
    fn a_dark_accent_is_lightened_until_it_is_legible_on_the_dark_page() {
        let accent = Accent::read("#5a3fd6").unwrap();
        assert_eq!((&*accent.fill(), &*accent.on()), ("#5a3fd6", "#ffffff"));
        assert!(accent.dark.contrast(CARD_DARK) >= CONTRAST_MIN);
        assert_ne!(accent.dark, accent.fill);
        for colour in ["#000000", "#0b5c7a", "#c00000"] {
            let accent = Accent::read(colour).unwrap();
            assert!(accent.on.contrast(accent.fill) >= CONTRAST_MIN, "{colour}");
            assert!(accent.dark.contrast(CARD_DARK) >= CONTRAST_MIN, "{colour}");
        }
    }

    #[test]
    fn a_pale_colour_is_rejected_with_the_nearest_that_passes() {
        let Err(AccentError::Pale { contrast, nearest }) = Accent::read("#ffb000") else {
            panic!("it is too pale");
        };
        assert_eq!(contrast, "1.8");
        assert!(Accent::read(&nearest).is_ok(), "{nearest}");
        for wrong in [
            "", "red", "#fff", "#12345g", "123456", "#1234567", "#+12345",
        ] {
            assert_eq!(Accent::read(wrong), Err(AccentError::Form), "{wrong}");
        }
    }
}
