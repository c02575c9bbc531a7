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
    let (mut count, mut least, mut most) = (0, i64::MAX, 0);
    for part in transfer.parts.iter() {
        (count, least, most) = (count + 1, least.min(part.len), most.max(part.len));
    }
    text.count(count).text(if count == 1 { " piece" } else { " pieces" });
    if least == most {
        text.text(" of ").number(most);
    } else if count > 0 {
        let lengths = transfer.parts.iter().take(MOST_LENGTHS).map(|part| part.len);
        text.text(" of ").list(lengths).text(if count > MOST_LENGTHS { " and so on" } else { "" });
    }
    if !geometry.keeps_axis {
        text.text(" without the axis");
    }
    if !transfer.output_strides.are_packed() {
        text.text(", to outputs with strides of their own");
    }
}
