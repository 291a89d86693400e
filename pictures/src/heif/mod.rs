//! Pictures in HEIF containers: HEIC as phones store it (HEVC), and AVIF (AV1).
//!
//! The primary item is what is displayed: a coded picture, or one that is put together of tiles, with its alpha channel,
//! its crop, rotation and mirror applied. EXIF orientations do not count in such files.
//! <https://www.iso.org/standard/83650.html>
//!
//! `heifer` reads the container and decodes HEVC; what it does not do is decode AV1 ([`av1`]).

mod av1;
mod light;

use crate::halt::Halt;
use domain::Fit;
use heifer::{
    Image, Options, Sample,
    heifer_isobmff::{
        HeifFile, ItemId,
        boxes::{ColorInfo, Property},
    },
};
use image::{DynamicImage, RgbImage, RgbaImage};
use light::Colors;

/// Levels of pictures that are made of other ones.
const MAX_DEPTH: u32 = 4;
/// Auxiliary types of an alpha channel.
const ALPHA: [&str; 2] = ["urn:mpeg:mpegB:cicp:systems:auxiliary:alpha", "urn:mpeg:hevc:2015:auxid:1"];

/// Returns the size in which a picture is displayed, from the boxes `ftyp` and `meta` of its file.
///
/// # Errors
///
/// If the file has no still picture.
pub fn displayed(boxes: &[u8]) -> Result<(u32, u32), String> {
    let file = HeifFile::parse(boxes).map_err(|error| error.to_string())?;
    sides(&file).map_err(|error| error.to_string())
}

/// Decodes the primary picture, to sRGB unless it has a color profile, which is returned.
pub(crate) fn decode(bytes: &[u8]) -> Result<(DynamicImage, Option<Vec<u8>>), Halt> {
    let file = HeifFile::parse(bytes).map_err(Halt::unreadable)?;
    let id = file.primary_id;
    let (width, height) = sides(&file).map_err(Halt::unreadable)?;
    if u64::from(width) * u64::from(height) > Fit::MAX_PIXELS {
        return Err(Halt::too_many("pixels", Fit::MAX_PIXELS));
    }
    let profile = file.icc_profile(id).map_err(Halt::unreadable)?.map(<[u8]>::to_vec);
    let colors = Colors::of(&file, id).map_err(Halt::unreadable)?;
    let image = match colors.filter(|_| profile.is_none()) {
        Some(colors) if colors.is_high_range() => colors.tone_mapped(&picture::<u16>(bytes, &file)?)?,
        Some(colors) => colors.to_srgb(pixels(picture::<u8>(bytes, &file)?)?)?,
        None => pixels(picture::<u8>(bytes, &file)?)?,
    };
    Ok((image, profile))
}

/// Returns the size of the primary picture, with its crop and rotation.
fn sides(file: &HeifFile<'_>) -> Result<(u32, u32), heifer::Error> {
    let id = file.primary_id;
    let (mut width, mut height) =
        file.image_size(id)?.ok_or(heifer::Error::Invalid("it does not tell its size"))?;
    for property in file.item_properties(id)? {
        match property {
            Property::CleanAperture { width: (w, of_w), height: (h, of_h), .. } => {
                let side = |part: u32, of: u32, whole: u32| {
                    let side = (f64::from(part) / f64::from(of.max(1))).round();
                    (side as u32).min(whole)
                };
                (width, height) = (side(*w, *of_w, width), side(*h, *of_h, height));
            }
            Property::Rotation(1 | 3) => (width, height) = (height, width),
            _ => {}
        }
    }
    Ok((width, height))
}

fn options() -> Options {
    Options { max_threads: 1, max_pixels: Fit::MAX_PIXELS }
}

/// Samples that a picture is decoded to: of 8 bits, or of as many as it has.
trait Depth: Sample {
    fn of_hevc(bytes: &[u8]) -> Result<Image<Self>, heifer::Error>;
}

impl Depth for u8 {
    fn of_hevc(bytes: &[u8]) -> Result<Image<Self>, heifer::Error> {
        heifer::decode_rgba8(bytes, &options())
    }
}

impl Depth for u16 {
    fn of_hevc(bytes: &[u8]) -> Result<Image<Self>, heifer::Error> {
        heifer::decode_with_options(bytes, &options())
    }
}

/// Decodes the primary picture, of either codec.
fn picture<S: Depth>(bytes: &[u8], file: &HeifFile<'_>) -> Result<Image<S>, Halt> {
    let id = file.primary_id;
    let is_av1 = is_av1(file, id, 0).map_err(Halt::unreadable)?;
    let decoded = if is_av1 { item(file, id, 0) } else { S::of_hevc(bytes) };
    decoded.map_err(Halt::unreadable)
}

/// Returns true if the first coded picture that this one is made of is one of AV1.
fn is_av1(file: &HeifFile<'_>, id: ItemId, depth: u32) -> Result<bool, heifer::Error> {
    Ok(match &file.item(id)?.item_type.0 {
        b"av01" => true,
        b"grid" | b"iden" if depth < MAX_DEPTH => match file.referenced_items(id, b"dimg").first() {
            Some(first) => is_av1(file, *first, depth + 1)?,
            None => false,
        },
        _ => false,
    })
}

/// Decodes a picture of AV1 as it is displayed.
fn item<S: Sample>(file: &HeifFile<'_>, id: ItemId, depth: u32) -> Result<Image<S>, heifer::Error> {
    if depth > MAX_DEPTH {
        return Err(heifer::Error::Invalid("pictures of pictures of pictures"));
    }
    let mut image = match (&file.item(id)?.item_type.0, file.referenced_items(id, b"dimg")) {
        (b"av01", _) => av1::decode(file, id)?,
        (b"grid", tiles) => grid(file, id, tiles, depth)?,
        (b"iden", [source]) => item(file, *source, depth + 1)?,
        (kind, _) => {
            let kind = String::from_utf8_lossy(kind);
            return Err(heifer::Error::Unsupported(format!("a picture of the kind {kind:?}")));
        }
    };
    for aux in file.referencing_items(id, b"auxl") {
        let is_alpha = |property: &Property| matches!(property, Property::AuxiliaryType(kind) if ALPHA.contains(&kind.as_str()));
        if file.item_properties(aux)?.any(is_alpha) {
            attach(&mut image, &item(file, aux, depth + 1)?)?;
            break;
        }
    }
    turned(file, id, image)
}

/// Applies the crop, the rotation and the mirror of an item, in their order.
fn turned<S: Sample>(
    file: &HeifFile<'_>,
    id: ItemId,
    mut image: Image<S>,
) -> Result<Image<S>, heifer::Error> {
    for property in file.item_properties(id)? {
        image = match property {
            Property::CleanAperture { width, height, horiz_offset, vert_offset } => {
                let part = |(part, of): (u32, u32)| f64::from(part) / f64::from(of.max(1));
                let center = |(part, of): (i32, u32), whole: u32| {
                    f64::from(part) / f64::from(of.max(1)) + (f64::from(whole) - 1.0) / 2.0
                };
                let first = |center: f64, side: f64| (center - (side - 1.0) / 2.0).round().max(0.0) as u32;
                let (w, h) = (part(*width), part(*height));
                let x = first(center(*horiz_offset, image.width), w);
                let y = first(center(*vert_offset, image.height), h);
                image.crop(x, y, w.round() as u32, h.round() as u32)
            }
            Property::Rotation(quarters @ 1..=3) => image.rotate_ccw(*quarters),
            Property::Mirror(is_vertical) => image.mirror(*is_vertical),
            _ => image,
        };
    }
    Ok(image)
}

/// Puts a picture together of tiles of one size, row by row; the last of a row or column may reach beyond it.
fn grid<S: Sample>(
    file: &HeifFile<'_>,
    id: ItemId,
    tiles: &[ItemId],
    depth: u32,
) -> Result<Image<S>, heifer::Error> {
    let grid = file.grid(id)?;
    let (width, height, columns) = (grid.output_width, grid.output_height, usize::from(grid.columns));
    let pixels = u64::from(width) * u64::from(height);
    if columns == 0 || tiles.len() != columns * usize::from(grid.rows) || pixels > Fit::MAX_PIXELS {
        return Err(heifer::Error::Invalid("its tiles do not make a picture"));
    }
    let mut whole: Option<(Image<S>, u32, u32)> = None;
    for (index, tile) in tiles.iter().enumerate() {
        let tile = item::<S>(file, *tile, depth + 1)?;
        let (whole, tile_width, tile_height) = whole.get_or_insert_with(|| {
            let mut whole = Image::filled_samples(width, height, tile.bit_depth, [S::default(); 4]);
            whole.bit_depth = tile.bit_depth;
            (whole, tile.width, tile.height)
        });
        if (tile.width, tile.height, tile.bit_depth) != (*tile_width, *tile_height, whole.bit_depth) {
            return Err(heifer::Error::Invalid("its tiles have different sizes"));
        }
        let at = |index: usize, side: u32| index as i64 * i64::from(side);
        whole.draw(&tile, at(index % columns, *tile_width), at(index / columns, *tile_height));
    }
    whole.map(|(whole, ..)| whole).ok_or(heifer::Error::Invalid("it has no tiles"))
}

/// Uses a picture as the alpha channel of another one.
fn attach<S: Sample>(image: &mut Image<S>, alpha: &Image<S>) -> Result<(), heifer::Error> {
    if (alpha.width, alpha.height) != (image.width, image.height) {
        return Err(heifer::Error::Invalid("its alpha channel has another size"));
    }
    let (from, to) = (u32::from(alpha.max_value()), u32::from(image.max_value()));
    for (pixel, alpha) in image.data.chunks_exact_mut(4).zip(alpha.data.chunks_exact(4)) {
        let scaled = (u32::from(alpha[0].to_u16()) * to + from / 2) / from;
        pixel[3] = S::from_u16(scaled as u16);
    }
    image.has_alpha = true;
    Ok(())
}

/// Returns the coded colors of an item or of the first one that it is made of: primaries, transfer, matrix and range.
fn coded_colors(file: &HeifFile<'_>, id: ItemId) -> Result<Option<ColorInfo>, heifer::Error> {
    let mut next = Some(id);
    for _ in 0..MAX_DEPTH {
        let Some(id) = next else { break };
        let is_coded = |property: &Property| match property {
            Property::Color(colors @ ColorInfo::Nclx { .. }) => Some(colors.clone()),
            _ => None,
        };
        if let Some(colors) = file.item_properties(id)?.find_map(is_coded) {
            return Ok(Some(colors));
        }
        next = file.referenced_items(id, b"dimg").first().copied();
    }
    Ok(None)
}

/// Returns the pixels of a picture of 8 bits.
fn pixels(image: Image<u8>) -> Result<DynamicImage, Halt> {
    let lost = || Halt::unreadable("its pixels are incomplete");
    if image.has_alpha {
        let image = RgbaImage::from_raw(image.width, image.height, image.data).ok_or_else(lost)?;
        return Ok(image.into());
    }
    let (width, height) = (image.width, image.height);
    Ok(RgbImage::from_raw(width, height, image.into_rgb8()).ok_or_else(lost)?.into())
}
