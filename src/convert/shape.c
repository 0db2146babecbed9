/* shape.c - hyperparameters from a model's file, and a cartridge that fits them. */
#include "convert/shape.h"

#include "base/mem.h"
#include "cartridge/cartridge_io.h"

int model_shape_open(model_shape *out, const char *path, fl_err *err) {
  model_shape s = { .hp = fl_calloc(1, sizeof *s.hp) };
  if (!s.hp) return fl_fail(err, FL_ENOMEM, "not enough memory");
  int rc = fl_gguf_open(&s.gguf, path, err);
  if (rc == FL_OK) rc = fl_hparams_read(s.hp, s.gguf, err);
  if (rc == FL_OK) *out = s;
  else model_shape_close(&s);
  return rc;
}

void model_shape_close(model_shape *s) {
  if (s->hp) fl_hparams_release(s->hp);
  fl_free(s->hp);
  fl_gguf_close(s->gguf);
  *s = (model_shape){ 0 };
}

int model_shape_cartridge(fl_cartridge *out, const model_shape *s, const char *path, fl_err *err) {
  fl_cartridge c = { 0 };
  int rc = fl_cartridge_read(&c, NULL, path, s->hp, err);
  if (rc != FL_OK) return rc;
  if (c.first != 0) {
    fl_cartridge_release(&c);
    return fl_fail(err, FL_EINPUT, "%s: its rows do not begin at position 0", path);
  }
  *out = c;
  return FL_OK;
}
