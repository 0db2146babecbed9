/* gate.c - the table of gates, and what a check says. */
#include "gate/gate.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

const gate *const gates[] = { &gate_equiv,  &gate_compose, &gate_batch, &gate_grad,
                              &gate_logits, &gate_resume,  &gate_evict, NULL };

const gate *gate_find(const char *name, fl_err *err) {
  fl_buf names = { 0 };
  for (const gate *const *g = gates; *g; g++) {
    if (strcmp((*g)->name, name) == 0) {
      fl_buf_release(&names);
      return *g;
    }
    fl_buf_printf(&names, "%s%s", g == gates ? "" : ", ", (*g)->name);
  }
  (void)fl_fail(err, FL_EUSAGE, "%s: unknown gate; there are %s", name,
                names.data ? names.data : "none");
  fl_buf_release(&names);
  return NULL;
}

void gate_check(gate_run *g, bool pass, fl_json *figures, const char *fmt, ...) {
  char text[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  if (!pass) g->failed++;
  g->told(g->ctx, pass, text, figures);
}
