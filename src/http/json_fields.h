/* json_fields.h - taking fields out of a request: type and range are checked, the fault names the
 * field. An absent field and an explicit null are the same and leave *out as it is. */
#ifndef FL_HTTP_JSON_FIELDS_H
#define FL_HTTP_JSON_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "http/api_error.h"

/* The field, NULL when absent or null. */
const fl_json *fl_field(const fl_json *obj, const char *key);
int fl_json_field_num(const fl_json *obj, const char *key, double min, double max, double *out,
                      fl_api_error *f);
int fl_json_field_size(const fl_json *obj, const char *key, uint64_t min, uint64_t max, size_t *out,
                       fl_api_error *f);
int fl_json_field_u64(const fl_json *obj, const char *key, uint64_t *out, bool *given,
                      fl_api_error *f);
int fl_json_field_bool(const fl_json *obj, const char *key, bool *out, fl_api_error *f);
int fl_json_field_str(const fl_json *obj, const char *key, const char **out, fl_api_error *f);
int fl_json_field_obj(const fl_json *obj, const char *key, const fl_json **out, fl_api_error *f);
int fl_json_field_arr(const fl_json *obj, const char *key, const fl_json **out, fl_api_error *f);
/* Refuses each named field that is given; empty arrays and objects pass. */
int fl_json_field_refuse(const fl_json *obj, const char *const *names, size_t n, fl_api_error *f);
/* Refuses every field that is not named. */
int fl_json_field_only(const fl_json *obj, const char *where, const char *const *names, size_t n,
                       fl_api_error *f);

#endif
