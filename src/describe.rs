//! What a plan will do, as text for people.

#![forbid(unsafe_code)]

use crate::parts::Transfer;
use crate::text::Text;

/// The most lengths that are listed.
const MOST_LENGTHS: usize = 8;

/// Writes what the call is: dtype, shape, strides if there are any, axis, and pieces.
pub(crate) fn plan(transfer: &Transfer<'_>, text: &mut Text<'_>) {
    let geometry = &transfer.geometry;
    text.text(geometry.dtype.name()).text(" ").list(geometry.shape.iter().copied());
    if let Some(strides) = transfer.strides {
        text.text(" by strides ").list(strides.iter().copied());
    }
    text.text(", axis ").count(geometry.axis).text(" into ");
    let (mut parts, mut bounds) = (transfer.parts.iter(), None);
    let count = parts.by_ref().map(|part| bounds = bound(bounds, part.len)).count();
    match bounds {
        None => text.text("no pieces with elements"),
        Some((least, most)) if least == most => text
            .count(count)
            .text(if count == 1 { " piece of " } else { " pieces of " })
            .number(most),
        Some(_) => {
            let lengths = transfer.parts.iter().take(MOST_LENGTHS).map(|part| part.len);
            text.count(count).text(" pieces of ").list(lengths);
            text.text(if count > MOST_LENGTHS { " and so on" } else { "" })
        }
    };
    if !geometry.keeps_axis {
        text.text(" without the axis");
    }
    if !transfer.output_strides.are_packed() {
        text.text(", to outputs with strides of their own");
    }
}

/// The least and the greatest so far.
fn bound(bounds: Option<(i64, i64)>, len: i64) -> Option<(i64, i64)> {
    Some(bounds.map_or((len, len), |(least, most)| (len.min(least), len.max(most))))
}
