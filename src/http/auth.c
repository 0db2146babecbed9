/* auth.c - see auth.h. */
#include "http/auth.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"

enum { KEY_MIN = 8, KEY_MAX = 255, KEY_ROOM = 256, MAX_FILE = 1 << 20 };

typedef struct stored {
  uint8_t byte[KEY_ROOM]; /* padded with zeros, which no key contains: no length is compared */
} stored;

struct fl_keys {
  stored *key;
  size_t n;
};

static int add_line(fl_keys *k, const char *line, size_t len, const char *path, size_t number,
                    fl_err *err) {
  while (len > 0 && strchr(" \t\r", line[len - 1]) != NULL) len--;
  while (len > 0 && (line[0] == ' ' || line[0] == '\t')) line++, len--;
  if (len == 0 || line[0] == '#') return FL_OK;
  for (size_t i = 0; i < len; i++)
    if (line[i] <= ' ' || line[i] > '~')
      return fl_fail(err, FL_EINPUT,
                     "%s: line %zu is no key; a key has printable ASCII characters without spaces",
                     path, number);
  if (len < KEY_MIN || len > KEY_MAX)
    return fl_fail(err, FL_EINPUT, "%s: line %zu has %zu characters; a key has %d to %d", path,
                   number, len, KEY_MIN, KEY_MAX);
  stored *more = fl_reallocarray(k->key, k->n + 1, sizeof *more);
  if (more == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for the keys");
  k->key = more;
  memset(&more[k->n], 0, sizeof *more);
  memcpy(more[k->n].byte, line, len);
  k->n++;
  return FL_OK;
}

static void warn_if_open(const char *path) {
  struct stat st;
  if (stat(path, &st) == 0 && (st.st_mode & (S_IRGRP | S_IROTH)) != 0)
    fl_warn("%s: others may read these keys; chmod 600 would keep them yours", path);
}

int fl_keys_open(fl_keys **out, const char *path, fl_err *err) {
  fl_buf text = { 0 };
  fl_keys *k = fl_calloc(1, sizeof *k);
  int rc = k != NULL ? fl_fs_read(&text, path, MAX_FILE, err)
                     : fl_fail(err, FL_ENOMEM, "not enough memory for the keys");
  size_t at = 0;
  for (size_t number = 1; rc == FL_OK && at < text.len; number++) {
    const char *line = text.data + at, *end = memchr(line, '\n', text.len - at);
    const size_t len = end != NULL ? (size_t)(end - line) : text.len - at;
    rc = add_line(k, line, len, path, number, err);
    at += len + 1;
  }
  if (rc == FL_OK && k->n == 0)
    rc = fl_fail(err, FL_EINPUT, "%s: there is no key in it; write one a line", path);
  if (text.data != NULL) explicit_bzero(text.data, text.cap);
  fl_buf_release(&text);
  if (rc != FL_OK) {
    fl_keys_close(k);
    return rc;
  }
  warn_if_open(path);
  *out = k;
  return FL_OK;
}

void fl_keys_close(fl_keys *k) {
  if (k == NULL) return;
  if (k->key != NULL) explicit_bzero(k->key, k->n * sizeof *k->key);
  fl_free(k->key);
  fl_free(k);
}

int fl_keys_find(const fl_keys *k, const char *shown, size_t len) {
  uint8_t padded[KEY_ROOM] = { 0 };
  int found = -1;
  if (shown == NULL || len > KEY_MAX) len = 0; /* compared all the same */
  if (len > 0) memcpy(padded, shown, len);
  for (size_t i = 0; i < k->n; i++) {
    volatile uint8_t differs = 0; /* volatile: the loop is not cut short by the compiler */
    for (size_t j = 0; j < KEY_ROOM; j++)
      differs = (uint8_t)(differs | (padded[j] ^ k->key[i].byte[j]));
    found = differs == 0 ? (int)i : found;
  }
  return found;
}

uint32_t fl_keys_owner(const fl_keys *k, int i) {
  char text[FL_HASH_TEXT];
  fl_hash_bytes(text, k->key[i].byte, KEY_ROOM);
  const uint32_t owner = (uint32_t)strtoul(text + strlen(text) - 8, NULL, 16);
  return owner != 0 ? owner : 1;
}

const char *fl_auth_bearer(const char *header) {
  static const char scheme[] = "Bearer ";
  if (header == NULL || strncasecmp(header, scheme, sizeof scheme - 1) != 0) return NULL;
  header += sizeof scheme - 1;
  while (*header == ' ') header++;
  return header;
}
