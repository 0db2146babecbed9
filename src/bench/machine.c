/* machine.c - the machine: what it is and what it reaches at best. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "kernels/kernels.h"

static void add_peak(bench *b, const char *what, double value, const char *unit) {
  bench_figure f = { .part = "peaks", .unit = unit, .value = value };
  snprintf(f.what, sizeof f.what, "%s", what);
  bench_add(b, &f);
}

int bench_peaks(bench *b, fl_err *err) {
  fl_team *team = b->team;
  b->compute = fl_meter_open(FL_METER_OPS, team);
  if (!b->compute) return fl_fail(err, FL_ENOMEM, "not enough memory");
  add_peak(b, "micro-kernel, one thread", fl_peak_gflops(NULL), "GFLOP/s");
  add_peak(b, "micro-kernel, all threads", fl_peak_gflops(team), "GFLOP/s");
  add_peak(b, "streaming read, one thread", fl_peak_read(NULL), "GB/s");
  add_peak(b, "streaming read, all threads", fl_peak_read(team), "GB/s");
  return FL_OK;
}

int bench_read_open(bench *b, fl_err *err) {
  if (!b->read) b->read = fl_meter_open(FL_METER_BYTES, b->team);
  return b->read ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory");
}

void bench_meters_close(bench *b) {
  fl_meter_close(b->compute);
  fl_meter_close(b->read);
}

/* The processor's name as the system tells it; empty where it does not. */
static void cpu_name(char *out, size_t cap) {
  char line[512];
  FILE *f = fopen("/proc/cpuinfo", "r");
  *out = 0;
  while (f && fgets(line, sizeof line, f)) {
    char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || !colon) continue;
    line[strcspn(line, "\n")] = 0;
    snprintf(out, cap, "%s", colon[1] == ' ' ? colon + 2 : colon + 1);
    break;
  }
  if (f) fclose(f);
}

fl_json *bench_machine_json(const bench *b) {
  char name[256];
  double load = 0;
  fl_json *m = fl_json_object();
  long cores = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES);
  long page = sysconf(_SC_PAGESIZE);
  cpu_name(name, sizeof name);
  if (getloadavg(&load, 1) != 1) load = 0;
  fl_json_set_str(m, "cpu", name);
  fl_json_set_u64(m, "cores", cores > 0 ? (uint64_t)cores : 1);
  fl_json_set_u64(m, "memory_bytes", pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0);
  fl_json_set_str(m, "kernels", fl_kernels_name(fl_model_kernels(b->model)));
  fl_json_set_u64(m, "threads", fl_team_size(b->team));
  fl_json_set_num(m, "load", load);
  return m;
}
