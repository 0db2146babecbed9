/* text.c - the sanitiser: columns, glyphs, wrapping. */
#include "tui/text.h"

#include "base/utf8.h"
#include "tui/width_table.h"

#define REPLACEMENT 0xFFFDu

static bool in_table(const tui_range *table, size_t n, uint32_t cp) {
  size_t lo = 0, hi = n;
  while (lo < hi) {
    size_t mid = lo + (hi - lo) / 2;
    if (cp > table[mid].last) lo = mid + 1;
    else if (cp < table[mid].first) hi = mid;
    else return true;
  }
  return false;
}

#define IN(table, cp) in_table(table, sizeof table / sizeof table[0], cp)

int tui_text_width(uint32_t cp) {
  if (cp < 0x20 || (cp >= 0x7F && cp < 0xA0)) return -1;
  if (cp < 0x300 && cp != 0xAD) return 1;
  if (cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF) || IN(no_glyph, cp)) return -1;
  if (IN(zero_width, cp)) return 0;
  return IN(wide, cp) ? 2 : 1;
}

static bool is_space(uint32_t cp) {
  return cp == ' ' || (cp >= 9 && cp <= 13) || cp == 0x85 || cp == 0xA0 || cp == 0x2028 ||
         cp == 0x2029 || (cp >= 0x2000 && cp <= 0x200A) || cp == 0x202F || cp == 0x205F;
}

bool tui_text_next(tui_glyph *out, const char *s, size_t len, size_t *at) {
  uint32_t cp = 0;
  int width = 0;
  while (width == 0) { /* marks without a base are dropped */
    bool valid = true;
    size_t n = fl_utf8_decode(&cp, &valid, s + *at, len - *at);
    if (n == 0) return false;
    *at += n;
    if (is_space(cp)) cp = ' ';
    width = tui_text_width(cp);
  }
  if (width < 0) {
    cp = REPLACEMENT;
    width = 1;
  }
  *out = (tui_glyph){ .cp = cp, .width = width };
  for (size_t kept = 0; *at < len && (unsigned char)s[*at] >= 0xC0;) {
    uint32_t mark = 0;
    size_t n = fl_utf8_decode(&mark, NULL, s + *at, len - *at);
    if (n < 2 || tui_text_width(mark) != 0) break;
    *at += n;
    if (kept < TUI_COMBINING_MAX && cp != ' ') out->comb[kept++] = mark;
  }
  return true;
}

size_t tui_text_columns(const char *s, size_t len) {
  size_t cols = 0, at = 0;
  tui_glyph g;
  while (tui_text_next(&g, s, len, &at)) cols += (size_t)g.width;
  return cols;
}

size_t tui_text_fit(const char *s, size_t len, size_t cols) {
  size_t used = 0, at = 0, end = 0;
  tui_glyph g;
  while (tui_text_next(&g, s, len, &at)) {
    used += (size_t)g.width;
    if (used > cols) return end;
    end = at;
  }
  return len;
}

bool tui_text_wrap(const char *s, size_t len, size_t cols, size_t *at, const char **line,
                   size_t *line_len) {
  if (*at >= len) return false;
  size_t start = *at, pos = start, used = 0, space = start;
  bool has_space = false;
  tui_glyph g;
  *line = s + start;
  while (pos < len) {
    if (s[pos] == '\n') {
      *line_len = pos - start;
      *at = pos + 1;
      return true;
    }
    size_t before = pos;
    if (!tui_text_next(&g, s, len, &pos)) break;
    if (g.cp == ' ' && before > start) {
      space = before;
      has_space = true;
    }
    if (used + (size_t)g.width > cols) {
      /* A word longer than the line is cut; one glyph at least, so that the caller gets on. */
      size_t cut = has_space ? space : before;
      if (cut == start) cut = pos;
      *line_len = cut - start;
      *at = cut;
      while (*at < len && s[*at] == ' ') (*at)++;
      return true;
    }
    used += (size_t)g.width;
  }
  *line_len = len - start;
  *at = len;
  return true;
}

void tui_text_clean(fl_buf *out, const char *s, size_t len, bool ascii) {
  size_t at = 0;
  tui_glyph g;
  while (tui_text_next(&g, s, len, &at)) {
    if (ascii) {
      fl_buf_putc(out, g.cp < 0x80 ? (char)g.cp : tui_text_ascii(g.cp));
      continue;
    }
    char utf8[4];
    fl_buf_append(out, utf8, fl_utf8_encode(utf8, g.cp));
    for (size_t i = 0; i < TUI_COMBINING_MAX && g.comb[i]; i++)
      fl_buf_append(out, utf8, fl_utf8_encode(utf8, g.comb[i]));
  }
}

const char *tui_text_base(const char *path, size_t *len) {
  size_t at = *len;
  while (at > 0 && path[at - 1] != '/') at--;
  if (at == *len) return path;
  *len -= at;
  return path + at;
}

/* A braille cell by the rows that have a dot: bits 0,3 / 1,4 / 2,5 / 6,7 from top to bottom. */
static char braille_ascii(uint32_t dots) {
  bool row[4] = { dots & 0x09, dots & 0x12, dots & 0x24, dots & 0xC0 };
  int n = row[0] + row[1] + row[2] + row[3];
  if (n == 0) return ' ';
  if (n >= 3) return '|';
  if (n == 2 && !(row[1] && row[2])) return ':';
  if (row[0]) return '\'';
  if (row[3]) return '_';
  return '-';
}

char tui_text_ascii(uint32_t cp) {
  static const struct {
    uint32_t cp;
    char c;
  } map[] = { { 0x2500, '-' },  { 0x2502, '|' },  { 0x250C, '+' }, { 0x2510, '+' }, { 0x2514, '+' },
              { 0x2518, '+' },  { 0x251C, '+' },  { 0x2524, '+' }, { 0x252C, '+' }, { 0x2534, '+' },
              { 0x253C, '+' },  { 0x2550, '=' },  { 0x2588, '#' }, { 0x2589, '#' }, { 0x258A, '#' },
              { 0x258B, '#' },  { 0x258C, '=' },  { 0x258D, '=' }, { 0x258E, '-' }, { 0x258F, '-' },
              { 0x2591, '.' },  { 0x2592, ':' },  { 0x2593, '%' }, { 0x2581, '_' }, { 0x2582, '_' },
              { 0x2583, '.' },  { 0x2584, '-' },  { 0x2585, '=' }, { 0x2586, '+' }, { 0x2587, '*' },
              { 0x25A0, '#' },  { 0x25B6, '>' },  { 0x25C0, '<' }, { 0x25CF, '*' }, { 0x25CB, 'o' },
              { 0x25C6, 'x' },  { 0x25B2, '^' },  { 0x25BC, 'v' }, { 0x2190, '<' }, { 0x2191, '^' },
              { 0x2192, '>' },  { 0x2193, 'v' },  { 0x00B7, '.' }, { 0x2026, '~' }, { 0x2013, '-' },
              { 0x2014, '-' },  { 0x2713, '+' },  { 0x2717, 'x' }, { 0x00D7, 'x' }, { 0x2016, '|' },
              { 0x2018, '\'' }, { 0x2019, '\'' }, { 0x201C, '"' }, { 0x201D, '"' }, { 0x2605, '*' },
              { 0x0394, 'd' },  { 0x2212, '-' },  { 0x2248, '~' } };
  if (cp < 0x80) return (char)cp;
  if (cp >= 0x2800 && cp <= 0x28FF) return braille_ascii(cp - 0x2800);
  for (size_t i = 0; i < sizeof map / sizeof map[0]; i++)
    if (map[i].cp == cp) return map[i].c;
  return '?';
}
