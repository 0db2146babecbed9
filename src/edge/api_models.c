/* api_models.c - the list of models (there is one), and /health. */
#include <string.h>

#include "edge/jsonw.h"
#include "edge/route.h"

static void put_model(const fl_edge *e, fl_buf *b) {
  fl_engine_stats s = { 0 };
  fl_engine_stats_get(e->engine, &s);
  fl_jw_open(b, NULL, '{');
  fl_jw_str(b, "id", e->o->model_name);
  fl_jw_str(b, "object", "model");
  fl_jw_u64(b, "created", e->started);
  fl_jw_str(b, "owned_by", "flotilla");
  fl_jw_open(b, "flotilla", '{');
  fl_jw_u64(b, "documents", s.docs);
  fl_jw_u64(b, "generation", s.generation);
  fl_jw_close(b, '}');
  fl_jw_close(b, '}');
}

int fl_api_models(const fl_edge *e, const char *id, fl_buf *out, fl_fault *f) {
  if (id != NULL && strcmp(id, e->o->model_name) != 0)
    return fl_fault_set(f, 404, "model_not_found", "model",
                        "the model %.200s does not exist; there is "
                        "%s",
                        id, e->o->model_name);
  if (id != NULL) {
    put_model(e, out);
    return FL_OK;
  }
  fl_jw_open(out, NULL, '{');
  fl_jw_str(out, "object", "list");
  fl_jw_open(out, "data", '[');
  put_model(e, out);
  fl_jw_close(out, ']');
  fl_jw_close(out, '}');
  return FL_OK;
}

void fl_api_health(fl_edge *e, fl_buf *out) {
  fl_engine_stats s = { 0 };
  fl_engine_stats_get(e->engine, &s);
  fl_jw_open(out, NULL, '{');
  fl_jw_str(out, "status", atomic_load(&e->stopping) ? "stopping" : "ok");
  fl_jw_str(out, "model", e->o->model_name);
  fl_jw_u64(out, "documents", s.docs);
  fl_jw_u64(out, "generation", s.generation);
  fl_jw_u64(out, "slots", s.slots);
  fl_jw_u64(out, "slots_busy", s.slots_busy);
  fl_jw_u64(out, "queue_depth", s.queued);
  fl_jw_close(out, '}');
}
