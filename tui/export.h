/* export.h - a canvas as a picture. */
#ifndef FL_TUI_EXPORT_H
#define FL_TUI_EXPORT_H

#include "base/buf.h"
#include "tui/canvas.h"

/* Appends a whole SVG document: a dark page, one text element a run of one style. */
void fl_export_svg(fl_buf *out, const fl_canvas *c);

#endif
