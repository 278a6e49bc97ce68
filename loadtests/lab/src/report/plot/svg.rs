//! The few SVG shapes that the plots need; text is escaped here.

use std::fmt::Write;

/// A picture being drawn.
pub(super) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#1c2430}.title{font-size:14px;font-weight:600}\
.tick{fill:#5a6675;text-anchor:middle}.label{text-anchor:end}.end{text-anchor:start}.y{text-anchor:end;fill:#5a6675}\
.grid{stroke:#e4e8ee}.axis{stroke:#8a94a3}.whisker{stroke:#1c2430;stroke-width:1.5}";

impl Svg {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self {
            width,
            height,
            body: String::new(),
        }
    }

    /// Text at its baseline; `class` is one of the style's.
    pub(super) fn text(&mut self, x: f64, y: f64, text: &str, class: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let _ = write!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" class="{class}">{text}</text>"#
        );
    }

    pub(super) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
        let _ = write!(
            self.body,
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" class="{class}"/>"#
        );
    }

    /// A filled rectangle by its upper left corner.
    pub(super) fn bar(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), colour: &str, opacity: f64) {
        let width = width.max(0.0);
        let _ = write!(
            self.body,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{colour}" fill-opacity="{opacity}"/>"#
        );
    }

    pub(super) fn dot(&mut self, (x, y): (f64, f64), radius: f64, colour: &str) {
        let _ = write!(
            self.body,
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="{colour}" stroke="white"/>"#
        );
    }

    pub(super) fn path(&mut self, points: &[(f64, f64)], colour: &str) {
        let line = outline(points);
        let _ = write!(
            self.body,
            r#"<path d="{line}" fill="none" stroke="{colour}" stroke-width="1.8"/>"#
        );
    }

    /// A line of a law or a prediction: not measured, so not drawn through.
    pub(super) fn dashed(&mut self, points: &[(f64, f64)], colour: &str, dash: &str) {
        let line = outline(points);
        let _ = write!(
            self.body,
            r#"<path d="{line}" fill="none" stroke="{colour}" stroke-width="1.6" stroke-dasharray="{dash}"/>"#
        );
    }

    pub(super) fn finish(self) -> String {
        let Self { width, height, body } = self;
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img"><style>{STYLE}</style>{body}</svg>"#
        )
    }
}

/// Points as the data of a path.
fn outline(points: &[(f64, f64)]) -> String {
    let mut line = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let _ = write!(line, "{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' });
    }
    line
}
