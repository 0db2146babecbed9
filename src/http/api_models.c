/* api_models.c - the list of models (there is one), and /health. */
#include <string.h>

#include "base/json_writer.h"
#include "http/route.h"

static void put_model(const fl_http *e, fl_buf *b) {
  fl_engine_stats s = { 0 };
  fl_engine_stats_get(e->engine, &s);
  fl_jsonw_open(b, NULL, '{');
  fl_jsonw_str(b, "id", e->o->model_name);
  fl_jsonw_str(b, "object", "model");
  fl_jsonw_u64(b, "created", e->started);
  fl_jsonw_str(b, "owned_by", "flotilla");
  fl_jsonw_open(b, "flotilla", '{');
  fl_jsonw_u64(b, "documents", s.docs);
  fl_jsonw_u64(b, "generation", s.generation);
  fl_jsonw_close(b, '}');
  fl_jsonw_close(b, '}');
}

int fl_api_models(const fl_http *e, const char *id, fl_buf *out, fl_api_error *f) {
  if (id != NULL && strcmp(id, e->o->model_name) != 0)
    return fl_api_error_set(f, 404, "model_not_found", "model",
                            "the model %.200s does not exist; there is %s", id, e->o->model_name);
  if (id != NULL) {
    put_model(e, out);
    return FL_OK;
  }
  fl_jsonw_open(out, NULL, '{');
  fl_jsonw_str(out, "object", "list");
  fl_jsonw_open(out, "data", '[');
  put_model(e, out);
  fl_jsonw_close(out, ']');
  fl_jsonw_close(out, '}');
  return FL_OK;
}

void fl_api_health(fl_http *e, fl_buf *out) {
  fl_engine_stats s = { 0 };
  fl_engine_stats_get(e->engine, &s);
  fl_jsonw_open(out, NULL, '{');
  fl_jsonw_str(out, "status", atomic_load(&e->stopping) ? "stopping" : "ok");
  fl_jsonw_str(out, "model", e->o->model_name);
  fl_jsonw_u64(out, "documents", s.docs);
  fl_jsonw_u64(out, "generation", s.generation);
  fl_jsonw_u64(out, "slots", s.slots);
  fl_jsonw_u64(out, "slots_busy", s.slots_busy);
  fl_jsonw_u64(out, "queue_depth", s.queued);
  fl_jsonw_close(out, '}');
}
