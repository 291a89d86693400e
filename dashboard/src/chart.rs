//! A bar chart, drawn by the server as SVG, so that it needs no script and its colors are those of the style sheet.

use askama::Template;
use std::fmt;

/// Width and height of the drawing, in units of its own: it fills the width of its place.
const SIZE: (f64, f64) = (720.0, 150.0);
/// Height of the bars' area; the labels are below.
const AREA: f64 = 126.0;
/// Number of labels below the bars, at most.
const LABELS: usize = 10;

/// A bar chart with its table of values.
#[derive(Template)]
#[template(path = "bars.html")]
pub(crate) struct Chart {
    title: &'static str,
    /// Heading of the first column of the table.
    unit: &'static str,
    summary: String,
    bars: Vec<Bar>,
    max: u64,
}

struct Bar {
    name: String,
    value: u64,
    x: Number,
    y: Number,
    width: Number,
    height: Number,
    /// Place of the label, if it has one.
    label_x: Option<Number>,
}

/// A coordinate.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1}", self.0)
    }
}

impl askama::filters::HtmlSafe for Number {}

impl Chart {
    /// A chart of named values, in order.
    pub(crate) fn of(title: &'static str, unit: &'static str, values: Vec<(String, u64)>) -> Self {
        let max = values.iter().map(|(_, value)| *value).max().unwrap_or(0);
        let total: u64 = values.iter().map(|(_, value)| *value).sum();
        let slot = SIZE.0 / values.len().max(1) as f64;
        let step = values.len().div_ceil(LABELS).max(1);
        let last = values.len().saturating_sub(1);
        let bars = values.into_iter().enumerate().map(|(index, (name, value))| {
            let share = if max == 0 { 0.0 } else { value as f64 / max as f64 };
            // A small value is seen, too.
            let height = if value == 0 { 0.0 } else { (share * AREA).max(2.0) };
            let x = slot * index as f64;
            Bar {
                name,
                value,
                x: Number(x + slot * 0.12),
                y: Number(AREA - height),
                width: Number(slot * 0.76),
                height: Number(height),
                // Counted from the end: the latest bar is the one that matters.
                label_x: (last - index).is_multiple_of(step).then(|| Number(x + slot / 2.0)),
            }
        });
        Self { title, unit, summary: format!("{total} in all, at most {max}"), bars: bars.collect(), max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_their_values() {
        let values = vec![("Mon".to_owned(), 0), ("Tue".to_owned(), 50), ("Wed <b>".to_owned(), 100)];
        let chart = Chart::of("Posts", "Day", values);
        let heights: Vec<_> = chart.bars.iter().map(|bar| bar.height.to_string()).collect();
        assert_eq!(heights, ["0.0", "63.0", "126.0"]);
        let drawn = chart.render().unwrap();
        assert!(drawn.contains("aria-label=\"Posts: 150 in all, at most 100\""), "{drawn}");
        assert!(drawn.contains("Wed &#60;b&#62;") && !drawn.contains("style="), "{drawn}");
        let many = Chart::of("Posts", "Day", (0..31).map(|day| (day.to_string(), 1)).collect());
        assert_eq!(many.bars.iter().filter(|bar| bar.label_x.is_some()).count(), 8);
        assert!(many.bars[30].label_x.is_some(), "the latest has a label");
        assert!(Chart::of("Posts", "Day", Vec::new()).render().unwrap().contains("at most 0"));
    }
}
