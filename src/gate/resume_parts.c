/* resume_parts.c - see resume.h. */
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "fleet/fleet.h"
#include "fleet/manifest.h"
#include "gate/resume.h"

static const double commit_s = 0.01; /* about as long as a commit takes */

gate_doom gate_doom_draw(uint64_t rounds, uint64_t done, double whole_s, size_t to_come,
                         fl_rng *rng) {
  const uint64_t left = rounds - done;
  const uint64_t share = left / (to_come + 1);
  const double part = (double)(left + 1) / (double)(rounds + 1);
  gate_doom d = { .rounds = done + (share > 0 ? share : 1) };
  if (d.rounds >= rounds) d.rounds = UINT64_MAX; /* by age alone */
  /* Opening and births take a part of every child's life that no share of rounds tells. */
  d.age_s = whole_s * part * (0.02 + 0.9 * fl_rng_unit(rng));
  d.after_s = commit_s * fl_rng_unit(rng);
  if (fl_rng_below(rng, 3) == 0) d.changes = 1 + (size_t)fl_rng_below(rng, 12);
  return d;
}

/* What differs by nature: the log of events, locks and sockets. */
static bool is_compared(const char *name) {
  static const char *const other[] = { FL_EVENTS_FILE, FL_EVENTS_OLDER_FILE,
                                       FL_LOCK_FILE,   FL_TRAIN_LOG_FILE,
                                       "control",      "control.path" };
  for (size_t i = 0; i < sizeof other / sizeof *other; i++)
    if (strcmp(name, other[i]) == 0) return false;
  return true;
}

static bool same_content(const char *a, const char *b, const char *name) {
  char *pa = fl_fs_join(a, name), *pb = fl_fs_join(b, name);
  fl_map ma = { 0 }, mb = { 0 };
  bool same = pa && pb && fl_map_open(&ma, pa, NULL) == FL_OK;
  if (same && fl_map_open(&mb, pb, NULL) == FL_OK) {
    same = ma.size == mb.size && memcmp(ma.data, mb.data, ma.size) == 0;
    fl_map_close(&mb);
  } else {
    same = false;
  }
  fl_map_close(&ma);
  fl_free(pa);
  fl_free(pb);
  return same;
}

int gate_compare_folders(const char *a, const char *b, size_t *files, size_t *same,
                         char **first_other, fl_err *err) {
  char **names = NULL;
  size_t n = 0;
  int rc = fl_fs_list(&names, &n, a, err);
  for (size_t i = 0; i < n && rc == FL_OK; i++) {
    if (!is_compared(names[i])) continue;
    (*files)++;
    if (same_content(a, b, names[i])) {
      (*same)++;
    } else if (!*first_other) {
      *first_other = fl_strdup(names[i]);
    }
  }
  if (rc == FL_OK) fl_fs_list_free(names, n);
  return rc;
}
