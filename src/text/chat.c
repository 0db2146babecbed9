/* chat.c - the templates as a table, and one writer that walks it.
 *
 * A turn is  open role [after_role] gap content close tail,  where open, after_role and close are
 * control tokens and the rest is text. Text between two control tokens is tokenised in one go, as
 * it would be in the rendered string, so that a line break at the start of a content merges with
 * the one before it. An assistant's turn is cut after the gap (the opener ends there): its content
 * loses leading white space, so that nothing could have merged across. The parts of a conversation
 * that meet in text (a system message folded into the user's turn, PLAIN) are tokenised apart, in a
 * whole rendering as in pieces. */
#include "text/chat.h"

#include <string.h>

#include "text/unicode.h"

typedef struct spec {
  fl_template tpl;
  const char *name;
  const char *open, *after_role, *close; /* control tokens */
  const char *gap, *tail;                /* text */
  const char *assistant;                 /* the role's name */
  bool trims;                            /* contents lose white space at both ends */
  bool system_first;                     /* a system message may only come first */
} spec;

static const spec specs[] = {
  { FL_TEMPLATE_CHATML, "chatml", "<|im_start|>", NULL, "<|im_end|>", "\n", "\n", "assistant",
    false, false },
  { FL_TEMPLATE_LLAMA3, "llama3", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "\n\n",
    "", "assistant", true, false },
  { FL_TEMPLATE_GEMMA4, "gemma4", "<|turn>", NULL, "<turn|>", "\n", "\n", "model", true, true },
  { FL_TEMPLATE_GEMMA, "gemma", "<start_of_turn>", NULL, "<end_of_turn>", "\n", "\n", "model", true,
    true },
  { FL_TEMPLATE_PLAIN, "plain", NULL, NULL, NULL, "", "", "", true, true },
};
#define N_SPECS (sizeof specs / sizeof *specs)

static const spec *find_spec(fl_template tpl) {
  for (size_t i = 0; i < N_SPECS; i++)
    if (specs[i].tpl == tpl) return &specs[i];
  return NULL;
}

const char *fl_template_name(fl_template t) {
  const spec *s = find_spec(t);
  return s ? s->name : "none";
}

bool fl_template_by_name(fl_template *out, const char *name) {
  for (size_t i = 0; i < N_SPECS; i++)
    if (strcmp(specs[i].name, name) == 0) {
      *out = specs[i].tpl;
      return true;
    }
  return false;
}

static bool contains(fl_str s, const char *what) {
  return s.len > 0 && memmem(s.data, s.len, what, strlen(what)) != NULL;
}

static bool has_markers(const spec *s, const fl_tokenizer *t) {
  const char *const marks[] = { s->open, s->after_role, s->close };
  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
    if (marks[i] && fl_tokenizer_id(t, marks[i]) < 0) return false;
  return true;
}

fl_template fl_template_detect(const fl_gguf *g, const fl_tokenizer *t) {
  fl_str text = { 0 };
  if (!fl_gguf_get_str(g, "tokenizer.chat_template", &text)) return FL_TEMPLATE_NONE;
  for (size_t i = 0; i < N_SPECS; i++)
    if (specs[i].open && contains(text, specs[i].open) && has_markers(&specs[i], t))
      return specs[i].tpl;
  return FL_TEMPLATE_NONE;
}

/* ---- the writer --------------------------------------------------------------------------- */

/* Text gathers in `text` until a control token or the end; the first failure stays in rc. */
typedef struct writer {
  fl_ids *out;
  size_t had; /* what *out held before: the state after a failure */
  const spec *spec;
  const fl_tokenizer *t;
  fl_err *err;
  fl_buf text;
  unsigned flags; /* of the next stretch of text */
  int rc;
} writer;

static int begin(writer *w, fl_ids *out, fl_template tpl, const fl_tokenizer *t, fl_err *err) {
  *w = (writer){ .out = out, .had = out->len, .spec = find_spec(tpl), .t = t, .err = err };
  if (w->spec == NULL)
    w->rc = fl_fail(err, FL_EUSAGE,
                    "the model's file has no chat template that is known; name one "
                    "with --template: chatml, llama3, gemma4, gemma, or plain for a base model");
  return w->rc;
}

static void no_memory(writer *w) {
  w->rc = fl_fail(w->err, FL_ENOMEM, "no memory for a chat turn");
}

static void flush_text(writer *w) {
  if (w->rc == FL_OK && w->text.oom) no_memory(w);
  if (w->rc == FL_OK && w->text.len > 0) {
    w->rc = fl_tokenize(w->t, w->out, w->text.data, w->text.len, w->flags, w->err);
    w->flags = FL_TOK_CONTINUE;
  }
  fl_buf_reset(&w->text);
}

static void put_id(writer *w, int32_t id) {
  flush_text(w);
  if (w->rc != FL_OK) return;
  fl_ids_push(w->out, id);
  w->flags = 0;
  if (w->out->oom) no_memory(w);
}

static void put_mark(writer *w, const char *mark) {
  int32_t id = fl_tokenizer_id(w->t, mark);
  if (id >= 0) {
    put_id(w, id);
  } else if (w->rc == FL_OK) {
    w->rc = fl_fail(w->err, FL_EINPUT,
                    "the model's vocabulary has no token %s, which the chat "
                    "template %s needs; choose another template",
                    mark, w->spec->name);
  }
}

static void put_text(writer *w, const char *s) { fl_buf_puts(&w->text, s); }

static void put_content(writer *w, const char *s, size_t len) {
  if (w->spec->trims) fl_uc_trim(&s, &len, false);
  fl_buf_append(&w->text, s, len);
}

static int finish(writer *w) {
  flush_text(w);
  fl_buf_release(&w->text);
  if (w->rc != FL_OK) w->out->len = w->had;
  return w->rc;
}

/* ---- parts of a conversation ---------------------------------------------------------------- */

static void put_bos(writer *w) {
  if (fl_tokenizer_adds_bos(w->t)) put_id(w, fl_tokenizer_bos(w->t));
}

static void put_header(writer *w, const char *role) {
  put_mark(w, w->spec->open);
  put_text(w, role);
  if (w->spec->after_role) put_mark(w, w->spec->after_role);
  put_text(w, w->spec->gap);
}

static void put_close(writer *w) {
  put_mark(w, w->spec->close);
  put_text(w, w->spec->tail);
}

/* What follows a system message's content. */
static void put_system_close(writer *w) {
  bool folded = w->spec->tpl == FL_TEMPLATE_GEMMA || w->spec->tpl == FL_TEMPLATE_PLAIN;
  if (folded) put_text(w, "\n\n");
  else put_close(w);
}

static bool can_think(const writer *w) {
  return w->spec->tpl == FL_TEMPLATE_GEMMA4 && fl_tokenizer_id(w->t, "<|think|>") >= 0;
}

/* `system` may be NULL: Gemma 4 still opens a system turn when it is to think. */
static void put_system(writer *w, const char *system, size_t len, bool thinking) {
  bool think_mark = thinking && can_think(w);
  if (system == NULL && !think_mark) return;
  if (w->spec->tpl == FL_TEMPLATE_GEMMA) put_header(w, "user");
  else if (w->spec->open) put_header(w, "system");
  if (think_mark) {
    put_mark(w, "<|think|>");
    put_text(w, "\n");
  }
  /* Gemma 1-3 trims only what stands in a turn of its own. */
  if (system && w->spec->tpl == FL_TEMPLATE_GEMMA) fl_buf_append(&w->text, system, len);
  else if (system) put_content(w, system, len);
  put_system_close(w);
  flush_text(w);
}

/* Qwen3's closed think block where the vocabulary knows thinking. */
static void put_empty_think(writer *w) {
  if (fl_tokenizer_id(w->t, "<think>") < 0 || fl_tokenizer_id(w->t, "</think>") < 0) return;
  put_mark(w, "<think>");
  put_text(w, "\n\n");
  put_mark(w, "</think>");
  put_text(w, "\n\n");
}

/* Gemma 4's empty thought channel. The small models' templates do without and the models answer
 * worse with it, so a template in the file decides; without one the vocabulary does. */
static void put_empty_thought(writer *w) {
  if (fl_tokenizer_id(w->t, "<|channel>") < 0 || fl_tokenizer_id(w->t, "<channel|>") < 0) return;
  fl_str tpl = fl_tokenizer_chat_template(w->t);
  if (tpl.len > 0 && !contains(tpl, "<|channel>thought\\n<channel|>") &&
      !contains(tpl, "<|channel>thought\n<channel|>"))
    return;
  put_mark(w, "<|channel>");
  put_text(w, "thought\n");
  put_mark(w, "<channel|>");
}

static void put_opener(writer *w, bool thinking) {
  if (w->spec->open == NULL) return; /* PLAIN: the user's text ended with "Answer:" */
  put_header(w, w->spec->assistant);
  if (thinking) return;
  if (w->spec->tpl == FL_TEMPLATE_CHATML) put_empty_think(w);
  if (w->spec->tpl == FL_TEMPLATE_GEMMA4) put_empty_thought(w);
}

static void put_user(writer *w, const char *user, size_t len, bool after_system) {
  if (w->spec->tpl == FL_TEMPLATE_PLAIN) {
    w->flags = after_system ? FL_TOK_CONTINUE : 0;
    put_text(w, "Question: ");
    put_content(w, user, len);
    put_text(w, "\nAnswer:");
    flush_text(w);
    return;
  }
  if (!(after_system && w->spec->tpl == FL_TEMPLATE_GEMMA)) put_header(w, "user");
  put_content(w, user, len);
  put_close(w);
}

static void put_answer(writer *w, const char *text, size_t len) {
  size_t think = fl_chat_think_span(text, len);
  text += think;
  len -= think;
  fl_uc_trim(&text, &len, true);
  flush_text(w); /* the opener ends here, see the head of this file */
  if (w->spec->tpl == FL_TEMPLATE_PLAIN) {
    put_text(w, " ");
    put_content(w, text, len);
    put_text(w, "\n\n");
  } else {
    put_content(w, text, len);
    put_close(w);
  }
  flush_text(w);
}

/* ---- the interface -------------------------------------------------------------------------- */

int fl_chat_system(fl_ids *out, fl_template tpl, const fl_tokenizer *t, const char *system,
                   size_t len, fl_err *err) {
  writer w;
  if (begin(&w, out, tpl, t, err) != FL_OK) return w.rc;
  put_bos(&w);
  put_system(&w, system, len, false);
  return finish(&w);
}

int fl_chat_user(fl_ids *out, fl_template tpl, const fl_tokenizer *t, const char *user, size_t len,
                 bool after_system, bool thinking, fl_err *err) {
  writer w;
  if (begin(&w, out, tpl, t, err) != FL_OK) return w.rc;
  if (after_system) w.flags = FL_TOK_CONTINUE;
  put_user(&w, user, len, after_system);
  put_opener(&w, thinking);
  return finish(&w);
}

int fl_chat_assistant(fl_ids *out, fl_template tpl, const fl_tokenizer *t, const char *text,
                      size_t len, fl_err *err) {
  writer w;
  if (begin(&w, out, tpl, t, err) != FL_OK) return w.rc;
  w.flags = FL_TOK_CONTINUE;
  put_answer(&w, text, len);
  return finish(&w);
}

int fl_chat_system_close(fl_ids *out, fl_template tpl, const fl_tokenizer *t, fl_err *err) {
  writer w;
  if (begin(&w, out, tpl, t, err) != FL_OK) return w.rc;
  w.flags = FL_TOK_CONTINUE;
  put_system_close(&w);
  return finish(&w);
}

/* Renders the leading system message or messages; *first becomes the index after them. */
static void render_opening(writer *w, const fl_message *msgs, size_t n, bool thinking,
                           size_t *first) {
  fl_buf joined = { 0 };
  size_t i = 0;
  for (; i < n && msgs[i].role == FL_ROLE_SYSTEM && (i == 0 || w->spec->system_first); i++) {
    if (i > 0) fl_buf_puts(&joined, "\n\n");
    fl_buf_append(&joined, msgs[i].text, msgs[i].len);
  }
  put_bos(w);
  if (joined.oom && w->rc == FL_OK) no_memory(w);
  put_system(w, i == 0 ? NULL : joined.data ? joined.data : "", joined.len, thinking);
  fl_buf_release(&joined);
  *first = i;
}

static void render_late_system(writer *w, const fl_message *m) {
  if (w->spec->system_first) {
    if (w->rc == FL_OK)
      w->rc = fl_fail(w->err, FL_EUSAGE,
                      "the chat template %s allows system messages only at the "
                      "start of a conversation; move it there",
                      w->spec->name);
    return;
  }
  put_system(w, m->text, m->len, false);
}

int fl_chat_render(fl_ids *out, fl_template tpl, const fl_tokenizer *t, const fl_message *msgs,
                   size_t n, bool thinking, fl_err *err) {
  writer w;
  if (begin(&w, out, tpl, t, err) != FL_OK) return w.rc;
  if (n == 0 || msgs[n - 1].role != FL_ROLE_USER)
    return fl_fail(err, FL_EUSAGE, "a conversation has to end with a user's message");
  size_t first;
  render_opening(&w, msgs, n, thinking, &first);
  if (tpl == FL_TEMPLATE_GEMMA && first > 0 && msgs[first].role != FL_ROLE_USER)
    w.rc = fl_fail(err, FL_EUSAGE,
                   "the chat template gemma needs a user's message after the "
                   "system message");
  for (size_t i = first; i < n && w.rc == FL_OK; i++) {
    if (msgs[i].role == FL_ROLE_SYSTEM) {
      render_late_system(&w, &msgs[i]);
    } else if (msgs[i].role == FL_ROLE_USER) {
      put_user(&w, msgs[i].text, msgs[i].len, first > 0 && i == first);
    } else {
      put_opener(&w, true); /* past answers stand without the empty block */
      put_answer(&w, msgs[i].text, msgs[i].len);
    }
  }
  put_opener(&w, thinking);
  return finish(&w);
}

int32_t fl_chat_end_of_turn(fl_template tpl, const fl_tokenizer *t) {
  const spec *s = find_spec(tpl);
  return s && s->close ? fl_tokenizer_id(t, s->close) : -1;
}

bool fl_chat_stops(fl_template tpl, const fl_tokenizer *t, int32_t id) {
  return id >= 0 && (id == fl_chat_end_of_turn(tpl, t) || fl_tokenizer_is_end(t, id));
}

/* Length of open...close at the head of text[0..len), or 0. */
static size_t block_span(const char *text, size_t len, const char *open, const char *close) {
  size_t n_open = strlen(open), n_close = strlen(close);
  if (len < n_open || memcmp(text, open, n_open) != 0) return 0;
  const char *end = memmem(text + n_open, len - n_open, close, n_close);
  return end ? (size_t)(end - text) + n_close : 0;
}

size_t fl_chat_think_span(const char *text, size_t len) {
  const char *at = text;
  size_t left = len;
  fl_uc_trim(&at, &left, true);
  size_t n = block_span(at, left, "<think>", "</think>");
  if (n == 0) n = block_span(at, left, "<|channel>thought", "<channel|>");
  if (n == 0) return 0;
  at += n;
  left -= n;
  fl_uc_trim(&at, &left, true);
  return len - left;
}
