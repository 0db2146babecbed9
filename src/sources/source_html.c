/* source_html.c - the readable text of HTML pages: headings and items in Markdown's marks, cells of
 * tables with bars between them, no scripts, styles or templates. */
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "sources/kind.h"
#include "sources/source.h"

#ifdef HAVE_LIBXML2
#include <libxml/HTMLparser.h>

/* Blanks and line breaks are owed until the next visible character. */
typedef struct writer {
  fl_buf *out;
  int newlines;
  bool blank, any;
  int pre;
} writer;

static void owe(writer *w, int newlines) {
  w->blank = false;
  if (w->newlines < newlines) w->newlines = newlines;
}

static void pay(writer *w) {
  if (w->any)
    for (int i = 0; i < w->newlines; i++) fl_buf_putc(w->out, '\n');
  if (w->blank && w->newlines == 0 && w->any) fl_buf_putc(w->out, ' ');
  w->newlines = 0;
  w->blank = false;
  w->any = true;
}

static void put_mark(writer *w, const char *mark) {
  pay(w);
  fl_buf_puts(w->out, mark);
}

static void put_text(writer *w, const char *s) {
  size_t len = strlen(s);
  if (w->pre) {
    if (len == 0) return;
    pay(w);
    fl_source_put_clean(w->out, s, len);
    return;
  }
  for (size_t i = 0; i < len;) {
    bool nbsp = (unsigned char)s[i] == 0xC2 && (unsigned char)s[i + 1] == 0xA0;
    if (nbsp || strchr(" \t\r\n\f", s[i])) {
      w->blank = true;
      i += nbsp ? 2 : 1;
      continue;
    }
    size_t from = i;
    while (i < len && !strchr(" \t\r\n\f", s[i]) &&
           !((unsigned char)s[i] == 0xC2 && (unsigned char)s[i + 1] == 0xA0))
      i++;
    pay(w);
    fl_source_put_clean(w->out, s + from, i - from);
  }
}

typedef enum element {
  E_INLINE,
  E_SKIP,
  E_LINE,
  E_BLOCK,
  E_HEADING,
  E_ITEM,
  E_CELL,
  E_PRE,
  E_BREAK,
  E_IMAGE
} element;

static element element_of(const char *name) {
  static const struct {
    const char *name;
    element e;
  } table[] = {
    { "script", E_SKIP }, { "style", E_SKIP },       { "noscript", E_SKIP }, { "template", E_SKIP },
    { "svg", E_SKIP },    { "iframe", E_SKIP },      { "object", E_SKIP },   { "meta", E_SKIP },
    { "link", E_SKIP },   { "div", E_LINE },         { "section", E_BLOCK }, { "article", E_BLOCK },
    { "header", E_LINE }, { "footer", E_LINE },      { "main", E_LINE },     { "nav", E_LINE },
    { "aside", E_BLOCK }, { "tr", E_LINE },          { "dt", E_LINE },       { "dd", E_LINE },
    { "form", E_LINE },   { "figcaption", E_LINE },  { "option", E_LINE },   { "address", E_LINE },
    { "p", E_BLOCK },     { "ul", E_BLOCK },         { "ol", E_BLOCK },      { "dl", E_BLOCK },
    { "table", E_BLOCK }, { "blockquote", E_BLOCK }, { "figure", E_BLOCK },  { "caption", E_LINE },
    { "title", E_BLOCK }, { "h1", E_HEADING },       { "h2", E_HEADING },    { "h3", E_HEADING },
    { "h4", E_HEADING },  { "h5", E_HEADING },       { "h6", E_HEADING },    { "li", E_ITEM },
    { "td", E_CELL },     { "th", E_CELL },          { "pre", E_PRE },       { "textarea", E_PRE },
    { "br", E_BREAK },    { "hr", E_BLOCK },         { "img", E_IMAGE }
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (strcmp(table[i].name, name) == 0) return table[i].e;
  return E_INLINE;
}

static bool has_cell_before(const xmlNode *n) {
  for (n = n->prev; n != NULL; n = n->prev)
    if (n->type == XML_ELEMENT_NODE && element_of((const char *)n->name) == E_CELL) return true;
  return false;
}

static void put_alt(writer *w, const xmlNode *n) {
  xmlChar *alt = xmlGetProp(n, (const xmlChar *)"alt");
  if (alt != NULL) put_text(w, (const char *)alt);
  xmlFree(alt);
}

/* False: what is inside is not read. */
static bool enter(writer *w, const xmlNode *n) {
  static const char hashes[] = "######";
  element e = element_of((const char *)n->name);
  switch (e) {
  case E_INLINE: break;
  case E_SKIP: return false;
  case E_LINE:
  case E_BREAK: owe(w, 1); break;
  case E_BLOCK: owe(w, 2); break;
  case E_HEADING:
    owe(w, 2);
    put_mark(w, hashes + 6 - (n->name[1] - '0'));
    w->blank = true;
    break;
  case E_ITEM:
    owe(w, 1);
    put_mark(w, "-");
    w->blank = true;
    break;
  case E_CELL:
    if (has_cell_before(n)) {
      w->blank = true;
      put_mark(w, "|");
      w->blank = true;
    }
    break;
  case E_PRE:
    owe(w, 2);
    w->pre++;
    break;
  case E_IMAGE: put_alt(w, n); break;
  }
  return xmlHasProp(n, (const xmlChar *)"hidden") == NULL;
}

static void leave(writer *w, const xmlNode *n) {
  switch (element_of((const char *)n->name)) {
  case E_LINE:
  case E_ITEM: owe(w, 1); break;
  case E_BLOCK:
  case E_HEADING: owe(w, 2); break;
  case E_PRE:
    owe(w, 2);
    w->pre--;
    break;
  default: break;
  }
}

/* Over the tree without recursion: its depth is the file's. */
static void walk(writer *w, const xmlNode *root) {
  const xmlNode *n = root;
  while (n != NULL) {
    bool inside = false;
    if (n->type == XML_ELEMENT_NODE) {
      bool read = enter(w, n);
      inside = read && n->children != NULL;
      if (!inside) leave(w, n);
    } else if ((n->type == XML_TEXT_NODE || n->type == XML_CDATA_SECTION_NODE) && n->content) {
      put_text(w, (const char *)n->content);
    }
    if (inside) {
      n = n->children;
      continue;
    }
    while (n != NULL && n != root && n->next == NULL) {
      n = n->parent;
      if (n != NULL && n != root && n->type == XML_ELEMENT_NODE) leave(w, n);
    }
    n = n == NULL || n == root ? NULL : n->next;
  }
}

int fl_source_html_text(fl_buf *out, const char *path, const char *bytes, size_t len,
                        const char *encoding, fl_err *err) {
  const int how = HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING | HTML_PARSE_NONET;
  if (len > FL_SOURCE_MAX_BYTES) return fl_source_too_much(path, err);
  htmlDocPtr doc = htmlReadMemory(bytes, (int)len, NULL, encoding, how);
  if (doc == NULL) return fl_fail(err, FL_EINPUT, "%s: cannot be read as HTML; leave it out", path);
  writer w = { .out = out };
  const xmlNode *root = xmlDocGetRootElement(doc);
  if (root != NULL) walk(&w, root);
  if (w.any) fl_buf_putc(out, '\n');
  xmlFreeDoc(doc);
  return FL_OK;
}

#define NEEDS NULL
#else

int fl_source_html_text(fl_buf *out, const char *path, const char *bytes, size_t len,
                        const char *encoding, fl_err *err) {
  (void)out, (void)bytes, (void)len, (void)encoding;
  return fl_fail(err, FL_EINPUT, "%s: HTML needs the package libxml2-dev when flotilla is built",
                 path);
}

#define NEEDS "libxml2-dev"
#endif

/* The page names its encoding near its beginning. */
static bool declares_encoding(const char *s, size_t len) {
  static const char word[] = "charset";
  size_t n = sizeof word - 1;
  if (len > 1024) len = 1024;
  for (size_t i = 0; i + n <= len; i++)
    if (strncasecmp(s + i, word, n) == 0) return true;
  return false;
}

/* Good UTF-8 is UTF-8 whatever the page says; the page is believed otherwise. */
static int read_html(fl_buf *text, const fl_source_input *in, fl_err *err) {
  fl_buf utf8 = { 0 };
  size_t bad;
  bool marked = in->len >= 2 && ((unsigned char)in->bytes[0] >= 0xFE);
  int rc = FL_OK;
  if (!marked && !fl_utf8_valid(in->bytes, in->len, &bad) && declares_encoding(in->bytes, in->len))
    return fl_source_html_text(text, in->path, in->bytes, in->len, NULL, err);
  rc = fl_source_decode(&utf8, in, err);
  if (rc == FL_OK && utf8.len > 0)
    rc = fl_source_html_text(text, in->path, utf8.data, utf8.len, "UTF-8", err);
  fl_buf_release(&utf8);
  if (rc == FL_OK && text->len == 0 && in->len > 0)
    rc = fl_fail(err, FL_EINPUT, "%s: no text in this page (is it made by a script?); leave it out",
                 in->path);
  return rc;
}

static const char *const suffixes[] = { ".html", ".htm", ".xhtml", NULL };

const fl_source_kind fl_source_kind_html = { .name = "HTML",
                                             .suffixes = suffixes,
                                             .needs = NEEDS,
                                             .max_bytes = FL_SOURCE_MAX_BYTES,
                                             .read = read_html };
