/* source_slack.c - a workspace export of Slack, a zip archive: one document a channel, its messages
 * in the order of time with the names of people. Nothing is unpacked to the disk.
 *
 *   users.json                who is who
 *   CHANNEL/YYYY-MM-DD.json   the messages of a day */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "sources/kind.h"
#include "sources/source.h"

#ifdef HAVE_LIBARCHIVE
#include <archive.h>
#include <archive_entry.h>

enum { MAX_ENTRIES = 1 << 18 };
static const size_t max_total = (size_t)512 << 20; /* bytes unpacked */

typedef struct day {
  char *name; /* CHANNEL/YYYY-MM-DD.json */
  fl_buf json;
} day;

typedef struct user {
  const char *id, *name; /* in the tree of users.json */
} user;

typedef struct slack {
  const char *path;
  fl_err *err;
  day *days;
  size_t n_days, cap_days, total;
  fl_json *users_json;
  user *users;
  size_t n_users;
  bool is_export;
} slack;

static void release(slack *x) {
  for (size_t i = 0; i < x->n_days; i++) {
    fl_free(x->days[i].name);
    fl_buf_release(&x->days[i].json);
  }
  fl_free(x->days);
  fl_free(x->users);
  fl_json_free(x->users_json);
}

/* --- the archive --- */

static int damaged(const slack *x, struct archive *a) {
  const char *why = archive_error_string(a);
  return fl_fail(x->err, FL_EINPUT, "%s: not a whole zip archive (%s); download it again", x->path,
                 why ? why : "no reason given");
}

static int read_entry(slack *x, struct archive *a, fl_buf *out) {
  char block[16384];
  for (;;) {
    la_ssize_t n = archive_read_data(a, block, sizeof block);
    if (n == 0 && out->oom) return fl_fail(x->err, FL_ENOMEM, "%s: not enough memory", x->path);
    if (n == 0) return FL_OK;
    if (n < 0) return damaged(x, a);
    x->total += (size_t)n;
    if (out->len + (size_t)n > FL_SOURCE_MAX_BYTES || x->total > max_total)
      return fl_source_too_much(x->path, x->err);
    fl_buf_append(out, block, (size_t)n);
  }
}

static int parse(const slack *x, fl_json **out, const char *name, const fl_buf *text) {
  fl_err why = { 0 };
  int rc = fl_json_parse(out, text->data ? text->data : "", text->len, &why);
  if (rc == FL_ENOMEM) return fl_fail(x->err, rc, "%s: not enough memory", x->path);
  if (rc != FL_OK)
    return fl_fail(x->err, FL_EINPUT, "%s: %s in it is not valid JSON; export it again", x->path,
                   name);
  return FL_OK;
}

static bool is_day(const char *name) {
  const char *slash = strchr(name, '/');
  size_t n = strlen(name);
  return slash && slash > name && !strchr(slash + 1, '/') && n > 5 &&
         strcmp(name + n - 5, ".json") == 0;
}

static int add_day(slack *x, struct archive *a, const char *name) {
  if (x->n_days == x->cap_days) {
    size_t cap = x->cap_days ? 2 * x->cap_days : 64;
    day *grown = cap <= MAX_ENTRIES ? fl_reallocarray(x->days, cap, sizeof *grown) : NULL;
    if (grown == NULL) return fl_fail(x->err, FL_ENOMEM, "%s: too many files in it", x->path);
    x->days = grown;
    x->cap_days = cap;
  }
  day *d = &x->days[x->n_days];
  *d = (day){ .name = fl_strdup(name) };
  if (d->name == NULL) return fl_fail(x->err, FL_ENOMEM, "%s: not enough memory", x->path);
  x->n_days++;
  return read_entry(x, a, &d->json);
}

static int take_entry(slack *x, struct archive *a, struct archive_entry *entry) {
  const char *name = archive_entry_pathname(entry);
  size_t bad;
  if (name == NULL || archive_entry_filetype(entry) != AE_IFREG ||
      !fl_utf8_valid(name, strlen(name), &bad))
    return FL_OK;
  if (strcmp(name, "channels.json") == 0) x->is_export = true;
  if (is_day(name)) return add_day(x, a, name);
  if (strcmp(name, "users.json") != 0 || x->users_json) return FL_OK;
  fl_buf text = { 0 };
  int rc = read_entry(x, a, &text);
  if (rc == FL_OK) rc = parse(x, &x->users_json, name, &text);
  x->is_export = true;
  fl_buf_release(&text);
  return rc;
}

static int read_archive(slack *x, const fl_source_input *in) {
  struct archive *a = archive_read_new();
  struct archive_entry *entry;
  int rc = FL_OK, got = ARCHIVE_OK;
  if (a == NULL) return fl_fail(x->err, FL_ENOMEM, "%s: not enough memory", x->path);
  archive_read_support_format_zip(a);
  if (archive_read_open_memory(a, in->bytes, in->len) != ARCHIVE_OK) rc = damaged(x, a);
  while (rc == FL_OK && (got = archive_read_next_header(a, &entry)) == ARCHIVE_OK)
    rc = take_entry(x, a, entry);
  if (rc == FL_OK && got != ARCHIVE_EOF && got != ARCHIVE_OK) rc = damaged(x, a);
  archive_read_free(a);
  if (rc == FL_OK && !x->is_export)
    rc = fl_fail(x->err, FL_EINPUT,
                 "%s: a zip archive, but no export of Slack (no users.json or "
                 "channels.json); unpack it and name the folder",
                 x->path);
  return rc;
}

/* --- people --- */

static int by_id(const void *a, const void *b) {
  return strcmp(((const user *)a)->id, ((const user *)b)->id);
}

static const char *first_name(const fl_json *u) {
  static const char *const keys[] = { "display_name", "real_name", "name" };
  const fl_json *profile = fl_json_get(u, "profile");
  const char *s = NULL;
  for (size_t i = 0; i < 3; i++) {
    if (profile && fl_json_get_str(profile, keys[i], &s) && *s) return s;
    if (fl_json_get_str(u, keys[i], &s) && *s) return s;
  }
  return NULL;
}

static int index_users(slack *x) {
  if (x->users_json == NULL || !fl_json_is_arr(x->users_json)) return FL_OK;
  x->users = fl_calloc(fl_json_len(x->users_json) + 1, sizeof *x->users);
  if (x->users == NULL) return fl_fail(x->err, FL_ENOMEM, "%s: not enough memory", x->path);
  for (const fl_json *u = fl_json_first(x->users_json); u; u = fl_json_next(u)) {
    user one = { 0 };
    one.name = first_name(u);
    if (fl_json_get_str(u, "id", &one.id) && one.name) x->users[x->n_users++] = one;
  }
  qsort(x->users, x->n_users, sizeof *x->users, by_id);
  return FL_OK;
}

static const char *name_of(const slack *x, const char *id) {
  user key = { .id = id };
  const user *u = x->n_users ? bsearch(&key, x->users, x->n_users, sizeof key, by_id) : NULL;
  return u ? u->name : id;
}

/* --- messages --- */

static void put(fl_buf *out, const char *s) { fl_source_put_clean(out, s, strlen(s)); }

/* What stands between < and >: a person, a channel, a link with its words. */
static void put_reference(const slack *x, fl_buf *out, const char *s, size_t n) {
  char text[1024];
  if (n >= sizeof text) n = sizeof text - 1;
  memcpy(text, s, n);
  text[n] = '\0';
  char *words = strchr(text, '|');
  if (words) *words++ = '\0';
  if (text[0] == '@') {
    fl_buf_putc(out, '@');
    put(out, words ? words : name_of(x, text + 1));
  } else if (text[0] == '#' || text[0] == '!') {
    fl_buf_putc(out, text[0] == '#' ? '#' : '@');
    put(out, words ? words : text + 1);
  } else if (words) {
    put(out, words);
    fl_buf_puts(out, " (");
    put(out, text);
    fl_buf_putc(out, ')');
  } else {
    put(out, text);
  }
}

static void put_text(const slack *x, fl_buf *out, const char *s) {
  static const struct {
    const char *from, *to;
  } entities[] = { { "&amp;", "&" }, { "&lt;", "<" }, { "&gt;", ">" } };
  bool closes = true; /* whether a > is left: else each < would look through all the rest */
  /* A short reference may stand for a long name: the text that is too much is told by put_day. */
  while (*s && out->len <= FL_SOURCE_MAX_BYTES) {
    const char *close = *s == '<' && closes ? strchr(s, '>') : NULL;
    if (*s == '<') closes = close != NULL;
    if (close) {
      put_reference(x, out, s + 1, (size_t)(close - s - 1));
      s = close + 1;
      continue;
    }
    size_t i = 0, n = strcspn(s, "<&");
    if (n > 0) {
      fl_source_put_clean(out, s, n);
      s += n;
      continue;
    }
    while (i < 3 && strncmp(s, entities[i].from, strlen(entities[i].from)) != 0) i++;
    fl_buf_puts(out, i < 3 ? entities[i].to : *s == '<' ? "<" : "&");
    s += i < 3 ? strlen(entities[i].from) : 1;
  }
}

static void put_list(const slack *x, fl_buf *out, const fl_json *m, const char *list,
                     const char *member, const char *before) {
  const char *s;
  const fl_json *items = fl_json_get(m, list);
  if (items == NULL || !fl_json_is_arr(items)) return;
  for (const fl_json *f = fl_json_first(items); f; f = fl_json_next(f))
    if (fl_json_get_str(f, member, &s) && *s) {
      fl_buf_puts(out, before);
      put_text(x, out, s);
      if (*before == '\n') continue;
      fl_buf_putc(out, ']');
    }
}

static void put_message(const slack *x, fl_buf *out, const fl_json *m) {
  static const char *const silent[] = { "channel_join", "channel_leave", "group_join",
                                        "group_leave", NULL };
  const char *ts = "", *text = "", *who = NULL, *subtype = NULL, *thread = NULL, *s;
  char when[32] = "";
  fl_json_get_str(m, "subtype", &subtype);
  for (size_t i = 0; subtype && silent[i]; i++)
    if (strcmp(subtype, silent[i]) == 0) return;
  fl_json_get_str(m, "ts", &ts);
  fl_json_get_str(m, "text", &text);
  fl_json_get_str(m, "thread_ts", &thread);
  time_t t = (time_t)strtoll(ts, NULL, 10);
  struct tm tm;
  if (gmtime_r(&t, &tm)) strftime(when, sizeof when, "%Y-%m-%d %H:%M", &tm);
  if (fl_json_get_str(m, "user", &s)) who = name_of(x, s);
  else if (!fl_json_get_str(m, "username", &who)) fl_json_get_str(m, "bot_id", &who);
  fl_buf_printf(out, "%s%s ", thread && strcmp(thread, ts) != 0 ? "  > " : "", when);
  put(out, who ? who : "somebody");
  fl_buf_puts(out, ": ");
  put_text(x, out, text);
  put_list(x, out, m, "attachments", "fallback", "\n    ");
  put_list(x, out, m, "files", "name", " [file: ");
  fl_buf_putc(out, '\n');
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const day *)a)->name, ((const day *)b)->name);
}

static int put_day(const slack *x, fl_buf *out, const day *d) {
  fl_json *json = NULL;
  int rc = parse(x, &json, d->name, &d->json);
  if (rc == FL_OK && fl_json_is_arr(json))
    for (const fl_json *m = fl_json_first(json); m && out->len <= FL_SOURCE_MAX_BYTES;
         m = fl_json_next(m))
      put_message(x, out, m);
  fl_json_free(json);
  if (rc == FL_OK && out->len > FL_SOURCE_MAX_BYTES) rc = fl_source_too_much(x->path, x->err);
  return rc;
}

/* Days in order are messages in order: an export sorts them inside a day. */
static int put_channels(slack *x, fl_source_parts *out) {
  int rc = FL_OK;
  const char *channel = NULL;
  size_t len = 0;
  fl_source_part *part = NULL;
  qsort(x->days, x->n_days, sizeof *x->days, by_name);
  for (size_t i = 0; rc == FL_OK && i < x->n_days; i++) {
    const char *name = x->days[i].name;
    size_t n = (size_t)(strchr(name, '/') - name);
    if (channel == NULL || n != len || memcmp(channel, name, n) != 0) {
      if (part && part->text.len == 0) { /* nothing was said in it */
        fl_free(part->name);
        out->n--;
      }
      part = fl_source_parts_add(out, name, n);
      if (part == NULL) return fl_fail(x->err, FL_ENOMEM, "%s: not enough memory", x->path);
      channel = name;
      len = n;
    }
    rc = put_day(x, &part->text, &x->days[i]);
  }
  if (rc == FL_OK && part && part->text.len == 0) {
    fl_free(part->name);
    out->n--;
  }
  if (rc == FL_OK && out->n == 0)
    rc = fl_fail(x->err, FL_EINPUT, "%s: no messages in this export; leave it out", x->path);
  return rc;
}

static int read_slack(fl_source_parts *out, const fl_source_input *in, fl_err *err) {
  slack x = { .path = in->path, .err = err };
  if (in->len == 0) return fl_fail(err, FL_EINPUT, "%s: empty; leave it out or fill it", in->path);
  int rc = read_archive(&x, in);
  if (rc == FL_OK) rc = index_users(&x);
  if (rc == FL_OK) rc = put_channels(&x, out);
  release(&x);
  return rc;
}

#define NEEDS NULL
#define READ read_slack
#else
#define NEEDS "libarchive-dev"
#define READ NULL
#endif

static const char *const suffixes[] = { ".zip", NULL };

const fl_source_kind fl_source_kind_slack = { .name = "Slack export",
                                              .suffixes = suffixes,
                                              .needs = NEEDS,
                                              .max_bytes = FL_SOURCE_MAX_FILE,
                                              .text_hash = true,
                                              .read_parts = READ };
