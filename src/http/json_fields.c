/* json_fields.c - see json_fields.h. */
#include "http/json_fields.h"

#include <string.h>

static bool is_null(const fl_json *obj, const char *key, const fl_json *v) {
  bool b;
  double d;
  return fl_json_as_str(v) == NULL && !fl_json_as_num(v, &d) && !fl_json_is_obj(v) &&
         !fl_json_is_arr(v) && !fl_json_get_bool(obj, key, &b);
}

const fl_json *fl_field(const fl_json *obj, const char *key) {
  const fl_json *v = fl_json_get(obj, key);
  return v != NULL && !is_null(obj, key, v) ? v : NULL;
}

int fl_json_field_num(const fl_json *obj, const char *key, double min, double max, double *out,
                      fl_api_error *f) {
  const fl_json *v = fl_field(obj, key);
  double d;
  if (v == NULL) return FL_OK;
  if (!fl_json_as_num(v, &d) || !(d >= min && d <= max))
    return fl_api_error_set(f, 400, "invalid_value", key, "%s has to be a number from %g to %g",
                            key, min, max);
  *out = d;
  return FL_OK;
}

int fl_json_field_size(const fl_json *obj, const char *key, uint64_t min, uint64_t max, size_t *out,
                       fl_api_error *f) {
  const fl_json *v = fl_field(obj, key);
  uint64_t u;
  if (v == NULL) return FL_OK;
  if (!fl_json_get_u64(obj, key, &u) || u < min || u > max)
    return fl_api_error_set(f, 400, "invalid_value", key,
                            "%s has to be an integer from %llu to %llu", key,
                            (unsigned long long)min, (unsigned long long)max);
  *out = (size_t)u;
  return FL_OK;
}

int fl_json_field_u64(const fl_json *obj, const char *key, uint64_t *out, bool *given,
                      fl_api_error *f) {
  if (fl_field(obj, key) == NULL) return FL_OK;
  if (!fl_json_get_u64(obj, key, out))
    return fl_api_error_set(f, 400, "invalid_value", key, "%s has to be an integer, 0 or more",
                            key);
  *given = true;
  return FL_OK;
}

int fl_json_field_bool(const fl_json *obj, const char *key, bool *out, fl_api_error *f) {
  if (fl_field(obj, key) == NULL || fl_json_get_bool(obj, key, out)) return FL_OK;
  return fl_api_error_set(f, 400, "invalid_type", key, "%s has to be true or false", key);
}

int fl_json_field_str(const fl_json *obj, const char *key, const char **out, fl_api_error *f) {
  if (fl_field(obj, key) == NULL || fl_json_get_str(obj, key, out)) return FL_OK;
  return fl_api_error_set(f, 400, "invalid_type", key, "%s has to be a string", key);
}

int fl_json_field_obj(const fl_json *obj, const char *key, const fl_json **out, fl_api_error *f) {
  const fl_json *v = fl_field(obj, key);
  if (v == NULL) return FL_OK;
  if (!fl_json_is_obj(v))
    return fl_api_error_set(f, 400, "invalid_type", key, "%s has to be an object", key);
  *out = v;
  return FL_OK;
}

int fl_json_field_arr(const fl_json *obj, const char *key, const fl_json **out, fl_api_error *f) {
  const fl_json *v = fl_field(obj, key);
  if (v == NULL) return FL_OK;
  if (!fl_json_is_arr(v))
    return fl_api_error_set(f, 400, "invalid_type", key, "%s has to be an array", key);
  *out = v;
  return FL_OK;
}

int fl_json_field_refuse(const fl_json *obj, const char *const *names, size_t n, fl_api_error *f) {
  for (size_t i = 0; i < n; i++) {
    const fl_json *v = fl_field(obj, names[i]);
    if (v == NULL) continue;
    if ((fl_json_is_arr(v) || fl_json_is_obj(v)) && fl_json_len(v) == 0) continue;
    return fl_api_error_set(f, 400, "unsupported_parameter", names[i],
                            "%s is not supported by this server; leave it out", names[i]);
  }
  return FL_OK;
}

int fl_json_field_only(const fl_json *obj, const char *where, const char *const *names, size_t n,
                       fl_api_error *f) {
  for (const fl_json *v = fl_json_first(obj); v != NULL; v = fl_json_next(v)) {
    size_t i = 0;
    while (i < n && strcmp(names[i], fl_json_key(v)) != 0) i++;
    if (i == n)
      return fl_api_error_set(f, 400, "unknown_parameter", where, "%s.%.64s is unknown", where,
                              fl_json_key(v));
  }
  return FL_OK;
}
