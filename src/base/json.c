/* json.c - trees of JSON over cJSON. The text is checked against the grammar first (json_check.h);
 * duplicate keys and numbers beyond a double are found in the finished tree. Printing is our own,
 * because cJSON writes large integers with an exponent. */
#include "base/json.h"

#include <cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_check.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/utf8.h"

#define EXACT_MAX 9007199254740992.0 /* 2^53 */

static int check_keys(const cJSON *obj, fl_err *err) {
  size_t n = fl_json_len(obj), at = 0;
  if (n < 2) return FL_OK;
  const char **keys = fl_calloc(n, sizeof *keys);
  if (keys == NULL) return fl_fail(err, FL_ENOMEM, "no memory to read JSON");
  for (const cJSON *m = obj->child; m != NULL; m = m->next) keys[at++] = m->string;
  const char *twice = fl_sort_names(keys, n);
  fl_free(keys);
  return twice == NULL
             ? FL_OK
             : fl_fail(err, FL_EINPUT, "not valid JSON: the key \"%.80s\" stands twice", twice);
}

/* Depth is at most FL_JSON_DEPTH by now. */
static int check_tree(const cJSON *v, fl_err *err) {
  if (cJSON_IsNumber(v) && !isfinite(v->valuedouble))
    return fl_fail(err, FL_EINPUT, "not valid JSON: a number is too large");
  int rc = cJSON_IsObject(v) ? check_keys(v, err) : FL_OK;
  for (const cJSON *m = v->child; m != NULL && rc == FL_OK; m = m->next) rc = check_tree(m, err);
  return rc;
}

int fl_json_parse(fl_json **out, const char *text, size_t len, fl_err *err) {
  int rc = fl_json_check(text, len, err);
  if (rc != FL_OK) return rc;
  cJSON *root = cJSON_ParseWithLength(text, len);
  if (root == NULL) return fl_fail(err, FL_ENOMEM, "no memory to read JSON");
  rc = check_tree(root, err);
  if (rc != FL_OK) {
    cJSON_Delete(root);
    return rc;
  }
  *out = root;
  return FL_OK;
}

void fl_json_free(fl_json *root) { cJSON_Delete(root); }

fl_json *fl_json_object(void) { return cJSON_CreateObject(); }

fl_json *fl_json_array(void) { return cJSON_CreateArray(); }

fl_json *fl_json_number(double v) { return cJSON_CreateNumber(v); }

const fl_json *fl_json_get(const fl_json *obj, const char *key) {
  return cJSON_IsObject(obj) ? cJSON_GetObjectItemCaseSensitive(obj, key) : NULL;
}

bool fl_json_get_str(const fl_json *obj, const char *key, const char **out) {
  const char *s = fl_json_as_str(fl_json_get(obj, key));
  if (s == NULL) return false;
  *out = s;
  return true;
}

bool fl_json_get_num(const fl_json *obj, const char *key, double *out) {
  return fl_json_as_num(fl_json_get(obj, key), out);
}

bool fl_json_get_u64(const fl_json *obj, const char *key, uint64_t *out) {
  double v;
  if (!fl_json_get_num(obj, key, &v)) return false;
  if (!(v >= 0) || v > EXACT_MAX || v != floor(v)) return false;
  *out = (uint64_t)v;
  return true;
}

bool fl_json_get_bool(const fl_json *obj, const char *key, bool *out) {
  const cJSON *v = fl_json_get(obj, key);
  if (!cJSON_IsBool(v)) return false;
  *out = cJSON_IsTrue(v);
  return true;
}

const char *fl_json_as_str(const fl_json *v) { return cJSON_IsString(v) ? v->valuestring : NULL; }

bool fl_json_as_num(const fl_json *v, double *out) {
  if (!cJSON_IsNumber(v)) return false;
  *out = v->valuedouble;
  return true;
}

bool fl_json_is_obj(const fl_json *v) { return cJSON_IsObject(v); }

bool fl_json_is_arr(const fl_json *v) { return cJSON_IsArray(v); }

size_t fl_json_len(const fl_json *arr_or_obj) {
  size_t n = 0;
  for (const cJSON *m = fl_json_first(arr_or_obj); m != NULL; m = m->next) n++;
  return n;
}

const fl_json *fl_json_at(const fl_json *arr, size_t i) {
  const cJSON *m = fl_json_first(arr);
  while (m != NULL && i-- > 0) m = m->next;
  return m;
}

const fl_json *fl_json_first(const fl_json *arr_or_obj) {
  return cJSON_IsArray(arr_or_obj) || cJSON_IsObject(arr_or_obj) ? arr_or_obj->child : NULL;
}

const fl_json *fl_json_next(const fl_json *v) { return v->next; }

const char *fl_json_key(const fl_json *member) { return member->string; }

bool fl_json_set(fl_json *obj, const char *key, fl_json *v) {
  if (v == NULL) return false;
  bool done = cJSON_IsObject(obj);
  if (done && fl_json_get(obj, key) != NULL)
    done = cJSON_ReplaceItemInObjectCaseSensitive(obj, key, v);
  else if (done) done = cJSON_AddItemToObject(obj, key, v);
  if (!done) cJSON_Delete(v);
  return done;
}

bool fl_json_set_str(fl_json *obj, const char *key, const char *s) {
  return fl_json_set(obj, key, cJSON_CreateString(s));
}

bool fl_json_set_num(fl_json *obj, const char *key, double v) {
  return fl_json_set(obj, key, cJSON_CreateNumber(v));
}

bool fl_json_set_u64(fl_json *obj, const char *key, uint64_t v) {
  return v <= (uint64_t)EXACT_MAX && fl_json_set(obj, key, cJSON_CreateNumber((double)v));
}

bool fl_json_set_bool(fl_json *obj, const char *key, bool v) {
  return fl_json_set(obj, key, cJSON_CreateBool(v));
}

bool fl_json_push(fl_json *arr, fl_json *v) {
  if (v == NULL) return false;
  if (cJSON_IsArray(arr) && cJSON_AddItemToArray(arr, v)) return true;
  cJSON_Delete(v);
  return false;
}

fl_json *fl_json_dup(const fl_json *v) { return cJSON_Duplicate(v, true); }

void fl_json_del(fl_json *obj, const char *key) {
  if (cJSON_IsObject(obj)) cJSON_DeleteItemFromObjectCaseSensitive(obj, key);
}

void fl_json_number_text(fl_buf *out, double v) {
  char text[40];
  if (!isfinite(v)) {
    fl_buf_puts(out, "null");
    return;
  }
  if (v == floor(v) && fabs(v) <= EXACT_MAX) {
    snprintf(text, sizeof text, "%.0f", v);
  } else {
    for (int digits = 15; digits <= 17; digits++) {
      snprintf(text, sizeof text, "%.*g", digits, v);
      if (strtod(text, NULL) == v) break;
    }
  }
  for (char *c = text; *c != '\0'; c++) /* the locale's decimal mark, whatever it is */
    if (strchr("0123456789+-e.", *c) == NULL) *c = '.';
  fl_buf_puts(out, text);
}

void fl_json_escape(fl_buf *out, const char *s, size_t len) {
  static const char letter[] = "btnvfr"; /* of 0x08 to 0x0D; \v is not of JSON */
  fl_buf_putc(out, '"');
  for (size_t at = 0; at < len;) {
    uint32_t cp;
    bool valid;
    size_t n = fl_utf8_decode(&cp, &valid, s + at, len - at);
    if (!valid) fl_buf_puts(out, "\xEF\xBF\xBD");
    else if (cp == '"' || cp == '\\') fl_buf_printf(out, "\\%c", (char)cp);
    else if (cp >= 8 && cp <= 13 && cp != 11) fl_buf_printf(out, "\\%c", letter[cp - 8]);
    else if (cp < 0x20) fl_buf_printf(out, "\\u%04x", (unsigned)cp);
    else fl_buf_append(out, s + at, n);
    at += n;
  }
  fl_buf_putc(out, '"');
}

static void put_line_break(fl_buf *out, size_t depth) {
  fl_buf_putc(out, '\n');
  for (size_t i = 0; i < depth; i++) fl_buf_puts(out, "  ");
}

static void put_value(fl_buf *out, const cJSON *v, bool pretty, size_t depth);

static void put_members(fl_buf *out, const cJSON *v, bool pretty, size_t depth) {
  bool object = cJSON_IsObject(v);
  fl_buf_putc(out, object ? '{' : '[');
  for (const cJSON *m = v->child; m != NULL; m = m->next) {
    if (m != v->child) fl_buf_putc(out, ',');
    if (pretty) put_line_break(out, depth + 1);
    if (object) {
      fl_json_escape(out, m->string, strlen(m->string));
      fl_buf_puts(out, pretty ? ": " : ":");
    }
    put_value(out, m, pretty, depth + 1);
  }
  if (pretty && v->child != NULL) put_line_break(out, depth);
  fl_buf_putc(out, object ? '}' : ']');
}

static void put_value(fl_buf *out, const cJSON *v, bool pretty, size_t depth) {
  if (cJSON_IsArray(v) || cJSON_IsObject(v)) put_members(out, v, pretty, depth);
  else if (cJSON_IsNumber(v)) fl_json_number_text(out, v->valuedouble);
  else if (cJSON_IsString(v)) fl_json_escape(out, v->valuestring, strlen(v->valuestring));
  else if (cJSON_IsBool(v)) fl_buf_puts(out, cJSON_IsTrue(v) ? "true" : "false");
  else fl_buf_puts(out, "null");
}

void fl_json_print(fl_buf *out, const fl_json *v, bool pretty) {
  put_value(out, v, pretty, 0);
  if (pretty) fl_buf_putc(out, '\n');
}

void fl_json_print_inside(fl_buf *out, const fl_json *v, size_t depth) {
  put_value(out, v, true, depth);
}
