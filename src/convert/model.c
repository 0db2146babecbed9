/* model.c - a model's file in another weight type. */
#include "convert/convert.h"
#include "formats/transcode.h"

static int check_source(const fl_gguf *g, fl_err *err) {
  uint64_t parts;
  if (fl_gguf_get_u64(g, "split.count", &parts) && parts > 1)
    return fl_fail(err, FL_EINPUT, "%s: one of %llu parts of a model; join them first",
                   fl_gguf_path(g), (unsigned long long)parts);
  return FL_OK;
}

int convert_model(fl_json *out, const convert_job *a, const char *type, fl_err *err) {
  fl_gguf *g = NULL;
  fl_transcode_report r = { 0 };
  int rc = fl_gguf_open(&g, a->model, err);
  if (rc == FL_OK) rc = check_source(g, err);
  if (rc == FL_OK) rc = fl_transcode(g, fl_dtype_by_name(type), a->out, a->poll, NULL, &r, err);
  if (rc == FL_OK) {
    fl_json_set_str(out, "out", a->out);
    fl_json_set_str(out, "type", type);
    fl_json_set_u64(out, "converted", r.converted);
    fl_json_set_u64(out, "already_so", r.same);
    fl_json_set_u64(out, "kept", r.kept);
    fl_json_set_u64(out, "kept_for_their_rows", r.ragged);
    fl_json_set_num(out, "before_bytes", (double)fl_gguf_file_size(g));
    fl_json_set_num(out, "file_bytes", (double)r.file_bytes);
  }
  fl_gguf_close(g);
  return rc;
}
