/* gate_resume.c - resume: a training that is killed at random instants and resumed each time leaves
 * the same files, byte for byte, as one that ran through.
 *
 * Every training runs in a child process; this one never opens a model, so that it has no threads
 * when it forks. SIGKILL cannot be caught: nothing is saved beyond what was committed.
 *
 * The kills are spread over the rounds: with k of them to come, a child may commit about one part
 * in k + 1 of the rounds that are left, and is killed then if it was not before. Two of three die
 * at a random age, one of three at a random moment after a change to the folder, which is inside a
 * commit or just after it. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "commands/fleet_dir.h"
#include "commands/gate.h"
#include "commands/signals.h"
#include "trainer/trainer.h"

enum { FRESH_STARTS = 6 };
static const double poll_s = 0.0005;
static const double commit_s = 0.01; /* about as long as a commit takes */

typedef struct doom { /* what a child is killed at, whichever comes first */
  double age_s;
  size_t changes;  /* of the folder; 0: none counts */
  double after_s;  /* since the last of these */
  uint64_t rounds; /* committed */
} doom;

typedef struct watch { /* a folder that a child writes to */
  const char *dir;
  struct timespec changed;
  ino_t manifest;
  size_t changes;
  double changed_s; /* when the last of `doom.changes` was seen; 0: not yet */
  uint64_t rounds;
} watch;

/* In the child: trains until `rounds` are done in all. */
static int train_here(const gate_run *g, const char *dir, const fl_source_list *docs, fl_err *err) {
  engine e = { 0 };
  fl_fleet *f = NULL;
  fl_manifest m = { 0 };
  fl_train_options o = g->args->train;
  fl_open_options how = { .resume = fleet_dir_exists(dir), .allow_add = true };
  int rc = FL_OK;
  if (how.resume) {
    rc = fleet_dir_load(&m, dir, err);
    o.rounds = m.rounds < o.rounds ? o.rounds - (size_t)m.rounds : 0;
    fl_manifest_release(&m);
  }
  if (rc == FL_OK) rc = engine_open(&e, &g->args->engine, NULL, err);
  if (rc == FL_OK) rc = fl_fleet_open(&f, dir, e.model, e.team, docs, &o, &how, err);
  if (rc == FL_OK) rc = fl_fleet_train(f, NULL, err);
  if (f) fl_fleet_close(f);
  engine_close(&e);
  return rc;
}

static void nap(double seconds) {
  struct timespec t = { .tv_nsec = (long)(seconds * 1e9) };
  nanosleep(&t, NULL);
}

static int rounds_done(const char *dir, uint64_t *out) {
  fl_manifest m = { 0 };
  *out = 0;
  if (!fleet_dir_exists(dir)) return FL_OK;
  int rc = fl_manifest_load(&m, dir, NULL);
  if (rc == FL_OK) *out = m.rounds;
  fl_manifest_release(&m);
  return rc;
}

static void look(watch *w, const doom *d) {
  struct stat st;
  if (stat(w->dir, &st) != 0) return;
  if (st.st_mtim.tv_sec == w->changed.tv_sec && st.st_mtim.tv_nsec == w->changed.tv_nsec) return;
  w->changed = st.st_mtim;
  if (++w->changes == d->changes) w->changed_s = fl_now_s();
  char *path = fl_fs_join(w->dir, FL_MANIFEST_FILE);
  if (path && stat(path, &st) == 0 && st.st_ino != w->manifest) {
    w->manifest = st.st_ino;
    (void)rounds_done(w->dir, &w->rounds);
  }
  fl_free(path);
}

static bool is_due(const watch *w, const doom *d, double start) {
  const double now = fl_now_s();
  return now - start >= d->age_s || w->rounds >= d->rounds ||
         (w->changed_s > 0 && now - w->changed_s >= d->after_s);
}

/* Starts a child and kills it when its doom says so (NULL: never). *killed tells how it ended. */
static int train_child(const gate_run *g, const char *dir, const fl_source_list *docs,
                       const doom *d, bool *killed, fl_err *err) {
  watch w = { .dir = dir };
  double start = fl_now_s();
  int status;
  *killed = false;
  if (d) look(&w, d); /* what is there already is no change */
  w.changes = 0;
  w.changed_s = 0;
  pid_t pid = fork();
  if (pid < 0)
    return fl_fail(err, FL_EFAIL,
                   "a child process can't be started (%s); free memory or raise the "
                   "limit of processes",
                   fl_fs_reason(errno));
  if (pid == 0) {
    fl_err why = { 0 };
    int rc = train_here(g, dir, docs, &why);
    if (rc != FL_OK) fl_error("gate resume: %s", why.text);
    _exit(fl_exit_status(rc));
  }
  while (waitpid(pid, &status, WNOHANG) == 0) {
    bool stop = signals_stop();
    if (d) look(&w, d);
    if (stop || (d && is_due(&w, d, start))) {
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      *killed = WIFSIGNALED(status);
      return stop ? FL_EINTR : FL_OK;
    }
    nap(poll_s);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return FL_OK;
  return fl_fail(err, FL_EFAIL, "a training process failed (status %d)",
                 WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
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

/* Files of `a` that `b` has with the same bytes; *first_other: allocated, one that it has not. */
static int compare_folders(const char *a, const char *b, size_t *files, size_t *same,
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

static doom draw_doom(const gate_run *g, uint64_t done, double whole_s, fl_rng *rng,
                      size_t to_come) {
  const uint64_t left = g->args->train.rounds - done;
  const uint64_t share = left / (to_come + 1);
  const double part = (double)(left + 1) / (double)(g->args->train.rounds + 1);
  doom d = { .rounds = done + (share > 0 ? share : 1) };
  if (d.rounds >= g->args->train.rounds) d.rounds = UINT64_MAX; /* by age alone */
  /* Opening and births take a part of every child's life that no share of rounds tells. */
  d.age_s = whole_s * part * (0.02 + 0.9 * fl_rng_unit(rng));
  d.after_s = commit_s * fl_rng_unit(rng);
  if (fl_rng_below(rng, 3) == 0) d.changes = 1 + (size_t)fl_rng_below(rng, 12);
  return d;
}

/* Kills at random until it was done as often as asked; the last child comes through. */
static int killed_run(const gate_run *g, const char *dir, const fl_source_list *docs,
                      double whole_s, fl_rng *rng, size_t *kills, fl_err *err) {
  for (*kills = 0;;) {
    uint64_t done;
    bool killed, more = *kills < g->args->kills;
    if (rounds_done(dir, &done) != FL_OK)
      return fl_fail(err, FL_EGATE, "%s: the manifest of a killed run can't be read", dir);
    const doom d = draw_doom(g, done, whole_s, rng, g->args->kills - *kills);
    int rc = train_child(g, dir, docs, more ? &d : NULL, &killed, err);
    if (rc != FL_OK) return rc;
    if (!killed) return FL_OK;
    (*kills)++;
    fl_info("killed (%zu of %zu) at round %llu or later", *kills, g->args->kills,
            (unsigned long long)done);
  }
}

static int run_in(gate_run *g, const char *tmp, const fl_source_list *docs, fl_err *err) {
  char *whole = fl_fs_join(tmp, "whole"), *broken = NULL, *other = NULL;
  fl_rng rng = fl_rng_stream(g->args->train.seed, FL_RNG_TEST, 2, 0, 0);
  size_t kills = 0, files = 0, same = 0;
  bool killed;
  double start = fl_now_s();
  int rc = whole ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK) rc = train_child(g, whole, docs, NULL, &killed, err);
  double whole_s = fl_now_s() - start;
  /* A run that came through too early begins anew, and is hit sooner. */
  for (int i = 0; i < FRESH_STARTS && kills < g->args->kills && rc == FL_OK; i++, whole_s /= 2) {
    fl_free(broken);
    broken = fl_asprintf("%s/killed-%d", tmp, i);
    rc = broken ? killed_run(g, broken, docs, whole_s, &rng, &kills, err)
                : fl_fail(err, FL_ENOMEM, "not enough memory");
  }
  if (rc == FL_OK) rc = compare_folders(whole, broken, &files, &same, &other, err);
  if (rc == FL_OK && same == files) { /* nor may the resumed one have more */
    files = same = 0;
    rc = compare_folders(broken, whole, &files, &same, &other, err);
  }
  if (rc == FL_OK) {
    fl_json *row = fl_json_object();
    fl_json_set_u64(row, "rounds", g->args->train.rounds);
    fl_json_set_u64(row, "kills", kills);
    fl_json_set_u64(row, "files", files);
    fl_json_set_u64(row, "same", same);
    gate_check(g, kills == g->args->kills && same == files, row,
               "%zu rounds, killed %zu times: %zu/%zu files agree byte for byte%s%s",
               g->args->train.rounds, kills, same, files,
               other ? "; the first that does not: " : "", other ? other : "");
  }
  fl_free(other);
  fl_free(broken);
  fl_free(whole);
  return rc;
}

static int run(gate_run *g, fl_err *err) {
  fl_source_list docs = { 0 };
  char *tmp = NULL;
  int rc = fl_train_options_check(&g->args->train, err);
  if (rc == FL_OK) rc = gate_sources(&docs, g, err);
  if (rc == FL_OK) rc = gate_temp_dir(&tmp, err);
  if (rc == FL_OK) rc = run_in(g, tmp, &docs, err);
  if (rc == FL_OK && g->failed > 0) {
    fl_info("%s: the folders are kept", tmp);
    fl_free(tmp);
  } else {
    gate_temp_remove(tmp);
  }
  fl_source_release(&docs);
  return rc;
}

const gate gate_resume = { "resume", "a killed and resumed run equals the uninterrupted one", run };
