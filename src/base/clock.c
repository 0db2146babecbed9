/* clock.c - see clock.h. */
#include "base/clock.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double clock_s(clockid_t which) {
  struct timespec t;
  clock_gettime(which, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double fl_now_s(void) { return clock_s(CLOCK_MONOTONIC); }

double fl_wall_s(void) { return clock_s(CLOCK_REALTIME); }

size_t fl_peak_rss_bytes(void) {
  struct rusage use;
  if (getrusage(RUSAGE_SELF, &use) != 0) return 0;
  return (size_t)use.ru_maxrss * 1024; /* Linux counts in KiB */
}

size_t fl_rss_bytes(void) {
  FILE *f = fopen("/proc/self/statm", "re");
  if (f == NULL) return 0;
  unsigned long total, resident;
  if (fscanf(f, "%lu %lu", &total, &resident) != 2) resident = 0;
  fclose(f);
  return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}
