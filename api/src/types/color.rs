//! Colors.

use crate::types::scalar::scalar;
use poem_openapi::registry::{MetaSchema, MetaSchemaRef};
use std::fmt;

/// The format of [`Color`] in a schema.
pub(crate) const FORMAT: &str = "hex-color";

/// A color of the sRGB space, `#rrggbb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color([u8; 3]);

/// Contrast ratio of readable text: <https://www.w3.org/TR/WCAG22/#contrast-minimum>.
const READABLE: f64 = 4.5;
/// Number of steps from a color to black or white.
const STEPS: u16 = 20;

impl Color {
    /// The color with these parts.
    pub const fn of(red: u8, green: u8, blue: u8) -> Self {
        Self([red, green, blue])
    }

    /// Parses a color; digits may be in either case.
    pub fn read(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6)?;
        // Parsing a number would accept a sign.
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let [_, red, green, blue] = u32::from_str_radix(digits, 16).ok()?.to_be_bytes();
        Some(Self([red, green, blue]))
    }

    /// Black or white: the one with the higher contrast to this color, which is at least 4.58.
    #[must_use]
    pub fn of_text(self) -> Self {
        let (black, white) = (Self([0; 3]), Self([255; 3]));
        if self.contrast(black) >= self.contrast(white) { black } else { white }
    }

    /// This color for text on `paper`: mixed with the black or white of text there, as little as makes it readable.
    #[must_use]
    pub fn readable_on(self, paper: Self) -> Self {
        let ink = paper.of_text();
        let mut mixed = (0..STEPS).map(|step| self.mixed(ink, step));
        mixed.find(|color| color.contrast(paper) >= READABLE).unwrap_or(ink)
    }

    /// The color this many steps from this one to `other`.
    fn mixed(self, other: Self, step: u16) -> Self {
        let part = |index: usize| {
            let (from, to) = (u16::from(self.0[index]), u16::from(other.0[index]));
            ((from * (STEPS - step) + to * step) / STEPS) as u8
        };
        Self([part(0), part(1), part(2)])
    }

    /// Contrast ratio, 1 to 21: <https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio>.
    fn contrast(self, other: Self) -> f64 {
        let (one, other) = (self.luminance(), other.luminance());
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// Relative luminance, 0 to 1: <https://www.w3.org/TR/WCAG22/#dfn-relative-luminance>.
    fn luminance(self) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        let [red, green, blue] = self.0.map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }
}

impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

scalar! {
    [] Color {
        name: format!("string_{FORMAT}"),
        schema: MetaSchemaRef::Inline(Box::new(MetaSchema {
            pattern: Some("^#[0-9a-fA-F]{6}$".to_owned()),
            ..MetaSchema::new_with_format("string", FORMAT)
        })),
        parse: |value| value.as_str().and_then(Self::read).ok_or(value),
        write: |color| color.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_six_hexadecimal_digits_are_a_color() {
        for text in
            ["", "#", "#fff", "fff000", "red", "#ff00001", "#+f0000", "#ff000g", "#ff000é", " #ff0000"]
        {
            assert_eq!(Color::read(text), None, "{text}");
        }
        assert_eq!(Color::read("#1A2b3C").unwrap().to_string(), "#1a2b3c");
    }

    #[test]
    fn contrast_is_that_of_the_guidelines() {
        // From <https://webaim.org/resources/contrastchecker/>, rounded down.
        for (one, other, ratio) in [
            ("#000000", "#ffffff", 21.0),
            ("#777777", "#ffffff", 4.47),
            ("#767676", "#ffffff", 4.54),
            ("#0000ff", "#ffffff", 8.59),
            ("#ff0000", "#ffffff", 3.99),
            ("#123456", "#123456", 1.0),
        ] {
            let [one, other] = [one, other].map(|text| Color::read(text).unwrap());
            let found = one.contrast(other);
            assert!((ratio..ratio + 0.011).contains(&found), "{one} {other}: {found}");
            assert!((found - other.contrast(one)).abs() < 1e-9, "{one} {other}");
        }
    }

    #[test]
    fn a_color_is_changed_until_it_is_readable_and_no_further() {
        let papers = [Color::of(255, 255, 255), Color::of(0x15, 0x17, 0x1b)];
        for (color, on_light, on_dark) in [
            ("#1a56c4", "#1a56c4", "#5380d2"),
            ("#9cc0ff", "#5d7399", "#9cc0ff"),
            ("#ffffff", "#727272", "#ffffff"),
            ("#000000", "#000000", "#8c8c8c"),
            ("#ffcc00", "#8c7000", "#ffcc00"),
        ] {
            let readable = papers.map(|paper| Color::read(color).unwrap().readable_on(paper).to_string());
            assert_eq!(readable, [on_light, on_dark], "{color}");
        }
        for color in grid() {
            for paper in papers {
                let readable = color.readable_on(paper);
                assert!(readable.contrast(paper) >= 4.5, "{color} on {paper}: {readable}");
                assert_eq!(readable == color, color.contrast(paper) >= 4.5, "{color} on {paper}: {readable}");
            }
        }
    }

    /// Colors of the whole space.
    fn grid() -> impl Iterator<Item = Color> {
        let parts = || (0..=255).step_by(5);
        parts().flat_map(move |red| {
            parts().flat_map(move |green| parts().map(move |blue| Color::of(red, green, blue)))
        })
    }

    #[test]
    fn text_is_black_or_white_and_readable_on_every_color() {
        for (color, text) in [
            ("#ffffff", "#000000"),
            ("#000000", "#ffffff"),
            ("#ffcc00", "#000000"),
            ("#1a56c4", "#ffffff"),
            ("#00ff00", "#000000"),
            ("#0000ff", "#ffffff"),
        ] {
            assert_eq!(Color::read(color).unwrap().of_text().to_string(), text, "{color}");
        }
        for color in grid() {
            assert!(color.contrast(color.of_text()) >= 4.5, "{color}");
        }
    }
}
