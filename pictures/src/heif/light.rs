//! Colors of pictures without a profile, which are converted to sRGB: wide gamuts, and the light of HDR.
//!
//! Light as bright as white paper stays so; brighter light is compressed, so that a lamp or a cloud keeps its shape.
//! <https://www.itu.int/rec/R-REC-BT.2100>, <https://www.itu.int/pub/R-REP-BT.2408>

use super::coded_colors;
use crate::halt::Halt;
use heifer::{
    Image,
    heifer_isobmff::{HeifFile, ItemId, boxes::ColorInfo},
};
use image::{
    ConvertColorOptions, DynamicImage, RgbImage, RgbaImage,
    metadata::{
        Cicp, CicpColorPrimaries, CicpMatrixCoefficients, CicpTransferCharacteristics, CicpVideoFullRangeFlag,
    },
};

/// Light of white paper in cd/m², of which everything is a multiple here.
const WHITE: f32 = 203.0;
/// Light up to which nothing is compressed.
const KNEE: f32 = 0.6;
/// Light of the brightest HLG sample on the display that BT.2100 describes, in cd/m².
const HLG_PEAK: f32 = 1000.0;

/// Code points of ITU-T H.273.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Colors {
    primaries: u16,
    transfer: u16,
}

const BT2020: u16 = 9;
const DISPLAY_P3: u16 = 12;
const PQ: u16 = 16;
const HLG: u16 = 18;

impl Colors {
    pub(super) fn of(file: &HeifFile<'_>, id: ItemId) -> Result<Option<Self>, heifer::Error> {
        Ok(match coded_colors(file, id)? {
            Some(ColorInfo::Nclx { primaries, transfer, .. }) => Some(Self { primaries, transfer }),
            _ => None,
        })
    }

    pub(super) fn is_high_range(self) -> bool {
        matches!(self.transfer, PQ | HLG)
    }

    /// Converts colors of a wide gamut.
    pub(super) fn to_srgb(self, mut image: DynamicImage) -> Result<DynamicImage, Halt> {
        let primaries = match self.primaries {
            BT2020 => CicpColorPrimaries::Rgb2020,
            DISPLAY_P3 => CicpColorPrimaries::SmpteRp432,
            _ => return Ok(image),
        };
        // The curves of BT.709, BT.2020 and sRGB are meant to be shown alike.
        let wide = Cicp {
            primaries,
            transfer: CicpTransferCharacteristics::SRgb,
            matrix: CicpMatrixCoefficients::Identity,
            full_range: CicpVideoFullRangeFlag::FullRange,
        };
        image.set_color_space(wide).map_err(Halt::unreadable)?;
        image.apply_color_space(Cicp::SRGB, ConvertColorOptions::default()).map_err(Halt::unreadable)?;
        Ok(image)
    }

    /// Converts the light of PQ or HLG.
    pub(super) fn tone_mapped(self, image: &Image<u16>) -> Result<DynamicImage, Halt> {
        let max = image.max_value();
        let curve: Vec<f32> =
            (0..=max).map(|sample| self.linear(f32::from(sample) / f32::from(max))).collect();
        let light = |sample: u16| curve[usize::from(sample.min(max))];
        let mut bytes = Vec::with_capacity(image.data.len());
        for pixel in image.data.chunks_exact(4) {
            let mut rgb = [light(pixel[0]), light(pixel[1]), light(pixel[2])];
            if self.transfer == HLG {
                // The display's own curve, of the light of the whole pixel.
                let scene = 0.2627 * rgb[0] + 0.6780 * rgb[1] + 0.0593 * rgb[2];
                rgb = rgb.map(|color| color * scene.powf(0.2) * HLG_PEAK / WHITE);
            }
            let alpha = u32::from(pixel[3]) * 255 / u32::from(max);
            bytes.extend(compressed(to_709(self.primaries, rgb)).map(encoded));
            if image.has_alpha {
                bytes.push(alpha as u8);
            }
        }
        let lost = || Halt::unreadable("its pixels are incomplete");
        Ok(match image.has_alpha {
            true => RgbaImage::from_raw(image.width, image.height, bytes).ok_or_else(lost)?.into(),
            false => RgbImage::from_raw(image.width, image.height, bytes).ok_or_else(lost)?.into(),
        })
    }

    /// Returns the light of a sample: of PQ in multiples of white, of HLG that of the scene.
    fn linear(self, sample: f32) -> f32 {
        if self.transfer == HLG {
            const A: f32 = 0.178_832_77;
            const B: f32 = 1.0 - 4.0 * A;
            const C: f32 = 0.559_910_7;
            return match sample <= 0.5 {
                true => sample * sample / 3.0,
                false => (((sample - C) / A).exp() + B) / 12.0,
            };
        }
        const M1: f32 = 2610.0 / 16384.0;
        const M2: f32 = 2523.0 / 4096.0 * 128.0;
        const C1: f32 = 3424.0 / 4096.0;
        const C2: f32 = 2413.0 / 4096.0 * 32.0;
        const C3: f32 = 2392.0 / 4096.0 * 32.0;
        let power = sample.powf(1.0 / M2);
        10_000.0 / WHITE * ((power - C1).max(0.0) / (C2 - C3 * power)).powf(1.0 / M1)
    }
}

/// Converts linear light to the primaries of sRGB.
fn to_709(primaries: u16, [r, g, b]: [f32; 3]) -> [f32; 3] {
    let matrix = match primaries {
        BT2020 => [[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]],
        DISPLAY_P3 => [[1.2249, -0.2249, 0.0], [-0.0420, 1.0420, 0.0], [-0.0196, -0.0786, 1.0982]],
        _ => return [r, g, b],
    };
    matrix.map(|[of_r, of_g, of_b]: [f32; 3]| (of_r * r + of_g * g + of_b * b).max(0.0))
}

/// Compresses what is brighter than the knee, without changing the color.
fn compressed(rgb: [f32; 3]) -> [f32; 3] {
    let brightest = rgb.into_iter().fold(0.0, f32::max);
    if brightest <= KNEE {
        return rgb;
    }
    let beyond = brightest - KNEE;
    let mapped = KNEE + (1.0 - KNEE) * beyond / (beyond + 1.0 - KNEE);
    rgb.map(|color| color * mapped / brightest)
}

/// Returns the sRGB sample of linear light.
fn encoded(light: f32) -> u8 {
    let value = match light <= 0.003_130_8 {
        true => light * 12.92,
        false => 1.055 * light.powf(1.0 / 2.4) - 0.055,
    };
    (value * 255.0).round().clamp(0.0, 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paper_stays_bright_and_lamps_are_compressed() {
        let pq = Colors { primaries: BT2020, transfer: PQ };
        // 58 % of PQ is white paper, 75 % 1000 cd/m².
        for (sample, light) in [(0.0, 0.0), (0.580_7, 1.0), (0.751_8, 4.926), (1.0, 49.26)] {
            assert!(
                (pq.linear(sample) - light).abs() < 0.02 * light.max(0.1),
                "{sample}: {}",
                pq.linear(sample)
            );
        }
        let hlg = Colors { primaries: BT2020, transfer: HLG };
        for (sample, light) in [(0.0, 0.0), (0.5, 1.0 / 12.0), (1.0, 1.0)] {
            assert!((hlg.linear(sample) - light).abs() < 0.001, "{sample}: {}", hlg.linear(sample));
        }
        let gray = |light: f32| encoded(compressed([light; 3])[0]);
        let steps = [0.0, 0.2, 0.6, 1.0, 4.9, 49.0].map(gray);
        assert!(steps.is_sorted_by(|a, b| a < b), "{steps:?}");
        assert!(gray(0.18) == encoded(0.18) && gray(1.0) > 220, "{steps:?}");
    }

    #[test]
    fn gray_is_gray_in_all_primaries() {
        for primaries in [1, BT2020, DISPLAY_P3] {
            let [r, g, b] = to_709(primaries, [0.5; 3]).map(encoded);
            assert!(r.abs_diff(g) <= 1 && g.abs_diff(b) <= 1, "{primaries}: {r} {g} {b}");
        }
    }
}
