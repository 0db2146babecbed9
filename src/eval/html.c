/* html.c - the page of an evaluation: tables and plots, nothing from outside.
 *
 * It is made from the same JSON object as the table, so it can show nothing else. The page is HTML
 * and well-formed XML at once; every text goes through put_text. */
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "eval/eval.h"

enum { ROW_PX = 34, LEFT_PX = 110, PLOT_PX = 520, TOP_PX = 30 };

/* Characters that XML does not allow, control ones above all, become U+FFFD. */
static void put_text(fl_buf *out, const char *s) {
  for (size_t n = strlen(s), len = 1; n > 0; s += len, n -= len) {
    uint32_t cp;
    bool valid;
    len = fl_utf8_decode(&cp, &valid, s, n);
    if (!valid || (cp < 0x20 && cp != '\n' && cp != '\t') || cp == 0x7f || (cp & 0xfffe) == 0xfffe)
      fl_buf_puts(out, "&#xFFFD;");
    else if (cp == '&') fl_buf_puts(out, "&amp;");
    else if (cp == '<') fl_buf_puts(out, "&lt;");
    else if (cp == '>') fl_buf_puts(out, "&gt;");
    else if (cp == '"') fl_buf_puts(out, "&quot;");
    else fl_buf_append(out, s, len);
  }
}

static void put_cell(fl_buf *out, const fl_json *v) {
  const char *s = v ? fl_json_as_str(v) : NULL;
  double num;
  if (s) {
    fl_buf_puts(out, "<td>");
    put_text(out, s);
  } else if (v && fl_json_as_num(v, &num)) {
    fl_buf_printf(out, "<td class=\"n\">%.6g", num);
  } else {
    fl_buf_puts(out, "<td>-");
  }
  fl_buf_puts(out, "</td>");
}

/* Columns are the members of the first row. */
static void put_table(fl_buf *out, const char *title, const fl_json *rows) {
  const fl_json *first = rows && fl_json_is_arr(rows) ? fl_json_first(rows) : NULL;
  if (!first || !fl_json_is_obj(first)) return;
  fl_buf_puts(out, "<h2>");
  put_text(out, title);
  fl_buf_puts(out, "</h2>\n<table><thead><tr>");
  for (const fl_json *m = fl_json_first(first); m; m = fl_json_next(m)) {
    fl_buf_puts(out, "<th>");
    put_text(out, fl_json_key(m));
    fl_buf_puts(out, "</th>");
  }
  fl_buf_puts(out, "</tr></thead><tbody>\n");
  for (const fl_json *row = first; row; row = fl_json_next(row)) {
    fl_buf_puts(out, "<tr>");
    for (const fl_json *m = fl_json_first(first); m; m = fl_json_next(m))
      put_cell(out, fl_json_get(row, fl_json_key(m)));
    fl_buf_puts(out, "</tr>\n");
  }
  fl_buf_puts(out, "</tbody></table>\n");
}

static double number(const fl_json *row, const char *key) {
  double v = NAN;
  return row && fl_json_get_num(row, key, &v) ? v : NAN;
}

static double most(const fl_json *rows, const char *key) {
  double m = 0;
  for (const fl_json *r = fl_json_first(rows); r; r = fl_json_next(r))
    if (number(r, key) > m) m = number(r, key);
  return m;
}

static double x_of(double v, double low, double high) {
  double t = (v - low) / (high - low);
  return LEFT_PX + PLOT_PX * (t < 0 ? 0 : t > 1 ? 1 : t);
}

static void put_axis(fl_buf *out, double low, double high, double height) {
  for (int i = 0; i <= 4; i++) {
    double v = low + (high - low) * i / 4, x = x_of(v, low, high);
    fl_buf_printf(out,
                  "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\" class=\"g\"/>"
                  "<text x=\"%.1f\" y=\"20\" class=\"m\">%.3g</text>\n",
                  x, TOP_PX, x, height, x, v);
  }
}

/* A dot and a line from low to high for every arm. */
static void put_dots(fl_buf *out, const char *title, const fl_json *rows, const char *value,
                     double from, double to) {
  if (!rows || fl_json_len(rows) == 0 || !(to > from)) return;
  double height = TOP_PX + ROW_PX * (double)fl_json_len(rows), y = TOP_PX + ROW_PX / 2.0;
  fl_buf_puts(out, "<h2>");
  put_text(out, title);
  fl_buf_printf(out,
                "</h2>\n<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
                "viewBox=\"0 0 %d %.0f\" width=\"%d\" height=\"%.0f\">\n",
                LEFT_PX + PLOT_PX + 90, height + 10, LEFT_PX + PLOT_PX + 90, height + 10);
  put_axis(out, from, to, height);
  for (const fl_json *r = fl_json_first(rows); r; r = fl_json_next(r), y += ROW_PX) {
    const char *arm = "";
    double v = number(r, value), low = number(r, "low"), high = number(r, "high");
    fl_json_get_str(r, "arm", &arm);
    fl_buf_printf(out, "<text x=\"%d\" y=\"%.1f\" class=\"e\">", LEFT_PX - 10, y + 4);
    put_text(out, arm);
    fl_buf_puts(out, "</text>");
    if (!isfinite(v)) continue;
    if (isfinite(low) && isfinite(high))
      fl_buf_printf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"i\"/>",
                    x_of(low, from, to), y, x_of(high, from, to), y);
    fl_buf_printf(out,
                  "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>"
                  "<text x=\"%d\" y=\"%.1f\">%.4g</text>\n",
                  x_of(v, from, to), y, LEFT_PX + PLOT_PX + 12, y + 4, v);
  }
  fl_buf_puts(out, "</svg>\n");
}

/* Share of right answers over rows held, a point for every arm. */
static void put_cloud(fl_buf *out, const fl_json *rows) {
  enum { HEIGHT = 300, BOTTOM = 260 };
  double wide = rows ? most(rows, "rows") : 0;
  if (!(wide > 0)) return;
  fl_buf_printf(out,
                "<h2>Right answers over rows held</h2>\n"
                "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 %d %d\" "
                "width=\"%d\" height=\"%d\">\n",
                LEFT_PX + PLOT_PX + 90, HEIGHT, LEFT_PX + PLOT_PX + 90, HEIGHT);
  put_axis(out, 0, wide, BOTTOM);
  for (int i = 0; i <= 4; i++) {
    double y = BOTTOM - (BOTTOM - TOP_PX) * i / 4.0;
    fl_buf_printf(out,
                  "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" class=\"g\"/>"
                  "<text x=\"%d\" y=\"%.1f\" class=\"e\">%.2f</text>\n",
                  LEFT_PX, y, LEFT_PX + PLOT_PX, y, LEFT_PX - 10, y + 4, i / 4.0);
  }
  for (const fl_json *r = fl_json_first(rows); r; r = fl_json_next(r)) {
    const char *arm = "";
    double v = number(r, "share"), x = x_of(number(r, "rows"), 0, wide);
    if (!isfinite(v) || !isfinite(x)) continue;
    fl_json_get_str(r, "arm", &arm);
    double y = BOTTOM - (BOTTOM - TOP_PX) * v;
    fl_buf_printf(out,
                  "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>"
                  "<text x=\"%.1f\" y=\"%.1f\">",
                  x, y, x + 9, y + 4);
    put_text(out, arm);
    fl_buf_puts(out, "</text>\n");
  }
  fl_buf_puts(out, "</svg>\n");
}

static const char style[] =
    "body{font:15px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#1b1f24;"
    "background:#fff}h1,h2{line-height:1.2}table{border-collapse:collapse;margin:1em 0;"
    "display:block;overflow-x:auto}th,td{padding:.25em .7em;border-bottom:1px solid #d5dae0;"
    "text-align:left;vertical-align:top}td.n{text-align:right;font-variant-numeric:tabular-nums}"
    "svg{max-width:100%;height:auto}svg text{font:13px sans-serif;fill:#1b1f24}"
    "svg .m{text-anchor:middle}svg .e{text-anchor:end}svg circle{fill:#0b62a4}"
    "svg .i{stroke:#0b62a4;stroke-width:2}svg .g{stroke:#e3e6ea}";

void eval_html(fl_buf *out, const fl_json *summary, const char *title) {
  const fl_json *arms = fl_json_get(summary, "arms"), *ppl = fl_json_get(summary, "perplexity");
  const char *score = "";
  fl_json_get_str(summary, "score", &score);
  fl_buf_puts(out, "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">"
                   "<head><meta charset=\"utf-8\"/>"
                   "<meta name=\"viewport\" content=\"width=device-width\"/><title>");
  put_text(out, title);
  fl_buf_printf(out, "</title>\n<style>%s</style></head>\n<body><h1>", style);
  put_text(out, title);
  fl_buf_printf(out, "</h1>\n<p>%.0f questions; right by ", number(summary, "questions"));
  put_text(out, score);
  fl_buf_printf(out,
                "; intervals hold the middle 95 %% of %.0f resamples of the "
                "questions, the same for every arm.</p>\n",
                number(summary, "resamples"));
  put_dots(out, "Share of right answers", arms, "share", 0, 1);
  if (ppl)
    put_dots(out, "Perplexity of the reference answers", ppl, "perplexity", 0,
             fmax(most(ppl, "high"), most(ppl, "perplexity")));
  put_cloud(out, arms);
  put_table(out, "Arms", arms);
  put_table(out, "Perplexity", ppl);
  put_table(out, "Differences, paired", fl_json_get(summary, "differences"));
  put_table(out, "Documents", fl_json_get(summary, "documents"));
  put_table(out, "Answers", fl_json_get(summary, "answers"));
  fl_buf_puts(out, "</body></html>\n");
}
