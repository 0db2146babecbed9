/* export.h - a canvas as a picture. */
#ifndef TUI_EXPORT_H
#define TUI_EXPORT_H

#include "base/buf.h"
#include "tui/canvas.h"

/* Appends a whole SVG document: a dark page, one text element a run of one style. */
void tui_export_svg(fl_buf *out, const tui_canvas *c);

#endif
