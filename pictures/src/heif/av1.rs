//! Decodes a coded picture of AV1. <https://aomediacodec.github.io/av1-avif/>

use super::coded_colors;
use domain::Fit;
use heifer::{
    Image, Sample,
    color::{ColorParams, frame_to_rgba_sized},
    heifer_hevc_dec::recon::Frame,
    heifer_isobmff::{HeifFile, ItemId, boxes::ColorInfo},
};
use re_rav1d::dav1d::{
    Decoder, Error, Picture, PixelLayout, PlanarImageComponent, Settings,
    pixel::{MatrixCoefficients, YUVRange},
};

/// Decodes an item of the type `av01`, without its alpha channel.
pub(super) fn decode<S: Sample>(file: &HeifFile<'_>, id: ItemId) -> Result<Image<S>, heifer::Error> {
    let picture = coded(file.item_data(id)?.into_owned()).map_err(|error| match error {
        Error::NotEnoughMemory | Error::InvalidArgument => {
            heifer::Error::Invalid("its AV1 data are malformed")
        }
        error => heifer::Error::Unsupported(format!("AV1: {error}")),
    })?;
    let frame = frame(&picture)?;
    let colors = match coded_colors(file, id)? {
        Some(ColorInfo::Nclx { matrix, full_range, .. }) => ColorParams { matrix, full_range },
        _ => ColorParams::from_frame(&frame),
    };
    let (width, height) = file.image_size(id)?.unwrap_or((picture.width(), picture.height()));
    Ok(frame_to_rgba_sized(&frame, colors, width, height))
}

/// Decodes the first frame.
fn coded(data: Vec<u8>) -> Result<Picture, Error> {
    let mut settings = Settings::new();
    settings.set_n_threads(1);
    settings.set_max_frame_delay(1);
    settings.set_all_layers(false);
    settings.set_frame_size_limit(u32::try_from(Fit::MAX_PIXELS).unwrap_or(u32::MAX));
    let mut decoder = Decoder::with_settings(&settings)?;
    let mut sent = decoder.send_data(data, None, None, None);
    loop {
        match decoder.get_picture() {
            Err(error) if error.is_again() => {}
            found => return found,
        }
        match sent {
            Err(error) if error.is_again() => sent = decoder.send_pending_data(),
            // All was sent, and there is no picture.
            Ok(()) => return Err(Error::InvalidArgument),
            Err(error) => return Err(error),
        }
    }
}

/// Copies the samples, so that they are converted as those of HEVC are.
fn frame(picture: &Picture) -> Result<Frame, heifer::Error> {
    let (width, height) = (picture.width(), picture.height());
    let (format, sides) = match picture.pixel_layout() {
        PixelLayout::I400 => (0, (0, 0)),
        PixelLayout::I420 => (1, (width.div_ceil(2), height.div_ceil(2))),
        PixelLayout::I422 => (2, (width.div_ceil(2), height)),
        PixelLayout::I444 => (3, (width, height)),
    };
    let depth = u8::try_from(picture.bit_depth()).unwrap_or(8);
    let plane = |component, sides| plane(picture, component, sides, depth > 8);
    let matrix = picture.matrix_coefficients();
    Ok(Frame {
        widths: [width, sides.0, sides.0],
        heights: [height, sides.1, sides.1],
        planes: [
            plane(PlanarImageComponent::Y, (width, height))?,
            plane(PlanarImageComponent::U, sides)?,
            plane(PlanarImageComponent::V, sides)?,
        ],
        bit_depth: [depth; 2],
        chroma_format: format,
        full_range: picture.color_range() == YUVRange::Full,
        matrix_coeffs: match matrix {
            MatrixCoefficients::Identity => 0,
            MatrixCoefficients::BT709 => 1,
            MatrixCoefficients::BT2020NonConstantLuminance => 9,
            _ => 2,
        },
    })
}

fn plane(
    picture: &Picture,
    component: PlanarImageComponent,
    (width, height): (u32, u32),
    is_wide: bool,
) -> Result<Vec<u16>, heifer::Error> {
    let (width, height) = (width as usize, height as usize);
    let mut samples = Vec::with_capacity(width * height);
    if width == 0 {
        return Ok(samples);
    }
    // In bytes.
    let stride = picture.stride(component) as usize;
    let plane = picture.plane(component);
    for row in plane.as_ref().chunks(stride).take(height) {
        if is_wide {
            samples
                .extend(row.chunks_exact(2).take(width).map(|pair| u16::from_ne_bytes([pair[0], pair[1]])));
        } else {
            samples.extend(row.iter().take(width).copied().map(u16::from));
        }
    }
    match samples.len() == width * height {
        true => Ok(samples),
        false => Err(heifer::Error::Invalid("its AV1 data are incomplete")),
    }
}
