/* run_event.c - what stays as it is for as long as a run lasts: the `run` event, and what a later
 * part of the log begins with (flotilla-events(5)). */
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/mem.h"
#include "fleet/state.h"
#include "fleet/train_options.h"
#include "kernels/peak.h"

static void machine(fl_event *e) {
  struct utsname u;
  struct sysinfo s;
  if (uname(&u) == 0) fl_event_str(e, "host", u.nodename);
  fl_event_int(e, "cpus", (int64_t)sysconf(_SC_NPROCESSORS_ONLN));
  if (sysinfo(&s) == 0) fl_event_int(e, "mem_bytes", (int64_t)s.totalram * (int64_t)s.mem_unit);
}

/* Everything that stays as it is for as long as the run lasts. */
static void put_run(fl_event *e, const fl_fleet *f, const char *cmd, uint64_t rounds_total) {
  const fl_kernels *k = fl_model_kernels(f->model);
  fl_json *flags = fl_json_object();
  fl_buf b = { 0 };
  fl_event_str(e, "cmd", cmd);
  fl_event_str(e, "version", PACKAGE_VERSION);
  fl_event_int(e, "pid", (int64_t)getpid());
  fl_event_bool(e, "resumed", f->m.rounds > 0);
  char *model = fl_fs_real(fl_model_path(f->model));
  fl_event_str(e, "model", model != NULL ? model : fl_model_path(f->model));
  fl_free(model);
  fl_event_str(e, "model_name", fl_model_name(f->model));
  fl_event_str(e, "model_hash", fl_model_hash(f->model));
  fl_event_str(e, "template", fl_template_name(fl_model_template(f->model)));
  fl_event_str(e, "fleet", f->dir);
  fl_event_int(e, "threads", (int64_t)fl_team_size(f->team));
  fl_event_int(e, "ranks", (int64_t)fl_dist_count(f->dist));
  fl_event_str(e, "isa", fl_kernels_isa(k));
  fl_event_str(e, "kernel", fl_kernels_name(k));
  machine(e);
  fl_event_num(e, "peak_gflops", fl_peak_gflops(f->team));
  fl_event_num(e, "peak_gbs", fl_model_read_rate(f->model, f->team));
  fl_event_int(e, "seed", (int64_t)f->opts.seed);
  fl_event_int(e, "rounds", (int64_t)rounds_total);
  fl_event_int(e, "docs", (int64_t)f->m.n);
  fl_event_int(e, "budget", (int64_t)f->opts.budget);
  if (flags != NULL && fl_train_options_write(&f->opts, flags, true)) {
    fl_json_print(&b, flags, false);
    if (!b.oom) fl_jsonw_raw(&e->text, "flags", b.data, b.len);
  }
  fl_json_free(flags);
  fl_buf_release(&b);
}

static void log_doc(const fl_fleet *f, size_t i, const char *state, fl_events *log) {
  const fl_doc_entry *d = &f->m.doc[i];
  fl_event e;
  fl_event_begin(&e, "doc");
  fl_event_int(&e, "doc", d->id);
  fl_event_str(&e, "name", d->name);
  fl_event_int(&e, "tokens", (int64_t)d->tokens);
  fl_event_int(&e, "rows", (int64_t)d->rows);
  fl_event_int(&e, "steps", (int64_t)d->steps);
  fl_event_bool(&e, "resident", d->resident);
  fl_event_bool(&e, "marked", d->marked);
  fl_event_str(&e, "state", state);
  fl_event_str(&e, "hash", d->hash != NULL ? d->hash : "");
  fl_event_emit(log, &e);
}

void fl_log_doc(const fl_fleet *f, size_t i, const char *state) { log_doc(f, i, state, f->log); }

/* A later part of the log says again whose events it holds, and a trainer's how its documents
 * stand now. A server writes on another thread than the one that follows the manifest, so it says
 * nothing of them. */
static void begin_part(void *ctx, fl_events *to) {
  const fl_fleet *f = ctx;
  fl_event e;
  fl_event_begin(&e, "run");
  fl_buf_append(&e.text, f->run.data, f->run.len);
  if (!f->read_only) fl_event_int(&e, "round0", (int64_t)f->m.rounds);
  fl_event_bool(&e, "continued", true);
  fl_event_emit(to, &e);
  for (size_t i = 0; !f->read_only && i < f->m.n; i++) log_doc(f, i, "kept", to);
}

void fl_fleet_log_run(fl_fleet *f, const char *cmd, uint64_t rounds_total) {
  fl_event e;
  if (!fl_dist_leads(f->dist)) return;
  fl_event_begin(&e, "run");
  const size_t begun = e.text.len;
  put_run(&e, f, cmd, rounds_total);
  fl_events_head(f->log, NULL, NULL);
  fl_buf_reset(&f->run);
  if (!e.text.oom) fl_buf_append(&f->run, e.text.data + begun, e.text.len - begun);
  if (!e.text.oom && !f->run.oom) fl_events_head(f->log, begin_part, f);
  fl_event_int(&e, "round0", (int64_t)f->m.rounds);
  fl_event_emit(f->log, &e);
}
