/* resume.c - resume: a training that is killed at random instants and resumed each time leaves
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

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "fleet/fleet_dir.h"
#include "gate/gate.h"
#include "gate/resume.h"
#include "trainer/trainer.h"

enum { FRESH_STARTS = 6 };
static const double poll_s = 0.0005;

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
  gate_model m = { 0 };
  fl_fleet *f = NULL;
  fl_manifest was = { 0 };
  fl_train_options o = g->opt->train;
  fl_open_options how = { .resume = fl_fleet_dir_exists(dir), .allow_add = true };
  int rc = FL_OK;
  if (how.resume) {
    rc = fl_fleet_dir_load(&was, dir, err);
    o.rounds = was.rounds < o.rounds ? o.rounds - (size_t)was.rounds : 0;
    fl_manifest_release(&was);
  }
  if (rc == FL_OK) rc = gate_model_open(&m, g, NULL, err);
  if (rc == FL_OK) rc = fl_fleet_open(&f, dir, m.model, m.team, docs, &o, &how, err);
  if (rc == FL_OK) rc = fl_fleet_train(f, NULL, err);
  if (f) fl_fleet_close(f);
  gate_model_close(&m);
  return rc;
}

static void nap(double seconds) {
  struct timespec t = { .tv_nsec = (long)(seconds * 1e9) };
  nanosleep(&t, NULL);
}

static int rounds_done(const char *dir, uint64_t *out) {
  fl_manifest m = { 0 };
  *out = 0;
  if (!fl_fleet_dir_exists(dir)) return FL_OK;
  int rc = fl_manifest_load(&m, dir, NULL);
  if (rc == FL_OK) *out = m.rounds;
  fl_manifest_release(&m);
  return rc;
}

static void look(watch *w, const gate_doom *d) {
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

static bool is_due(const watch *w, const gate_doom *d, double start) {
  const double now = fl_now_s();
  return now - start >= d->age_s || w->rounds >= d->rounds ||
         (w->changed_s > 0 && now - w->changed_s >= d->after_s);
}

/* Starts a child and kills it when its doom says so (NULL: never). *killed tells how it ended. */
static int train_child(const gate_run *g, const char *dir, const fl_source_list *docs,
                       const gate_doom *d, bool *killed, fl_err *err) {
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
    bool stop = g->opt->poll(NULL) != FL_OK;
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

/* Kills at random until it was done as often as asked; the last child comes through. */
static int killed_run(const gate_run *g, const char *dir, const fl_source_list *docs,
                      double whole_s, fl_rng *rng, size_t *kills, fl_err *err) {
  for (*kills = 0;;) {
    uint64_t done;
    bool killed, more = *kills < g->opt->kills;
    if (rounds_done(dir, &done) != FL_OK)
      return fl_fail(err, FL_EGATE, "%s: the manifest of a killed run can't be read", dir);
    const gate_doom d =
        gate_doom_draw(g->opt->train.rounds, done, whole_s, g->opt->kills - *kills, rng);
    int rc = train_child(g, dir, docs, more ? &d : NULL, &killed, err);
    if (rc != FL_OK) return rc;
    if (!killed) return FL_OK;
    (*kills)++;
    fl_info("killed (%zu of %zu) at round %llu or later", *kills, g->opt->kills,
            (unsigned long long)done);
  }
}

static int run_in(gate_run *g, const char *tmp, const fl_source_list *docs, fl_err *err) {
  char *whole = fl_fs_join(tmp, "whole"), *broken = NULL, *other = NULL;
  fl_rng rng = fl_rng_stream(g->opt->train.seed, FL_RNG_TEST, 2, 0, 0);
  size_t kills = 0, files = 0, same = 0;
  bool killed;
  double start = fl_now_s();
  int rc = whole ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK) rc = train_child(g, whole, docs, NULL, &killed, err);
  double whole_s = fl_now_s() - start;
  /* A run that came through too early begins anew, and is hit sooner. */
  for (int i = 0; i < FRESH_STARTS && kills < g->opt->kills && rc == FL_OK; i++, whole_s /= 2) {
    fl_free(broken);
    broken = fl_asprintf("%s/killed-%d", tmp, i);
    rc = broken ? killed_run(g, broken, docs, whole_s, &rng, &kills, err)
                : fl_fail(err, FL_ENOMEM, "not enough memory");
  }
  if (rc == FL_OK) rc = gate_compare_folders(whole, broken, &files, &same, &other, err);
  if (rc == FL_OK && same == files) { /* nor may the resumed one have more */
    files = same = 0;
    rc = gate_compare_folders(broken, whole, &files, &same, &other, err);
  }
  if (rc == FL_OK) {
    fl_json *row = fl_json_object();
    fl_json_set_u64(row, "rounds", g->opt->train.rounds);
    fl_json_set_u64(row, "kills", kills);
    fl_json_set_u64(row, "files", files);
    fl_json_set_u64(row, "same", same);
    gate_check(g, kills == g->opt->kills && same == files, row,
               "%zu rounds, killed %zu times: %zu/%zu files agree byte for byte%s%s",
               g->opt->train.rounds, kills, same, files, other ? "; the first that does not: " : "",
               other ? other : "");
  }
  fl_free(other);
  fl_free(broken);
  fl_free(whole);
  return rc;
}

static int run(gate_run *g, fl_err *err) {
  fl_source_list docs = { 0 };
  char *tmp = NULL;
  int rc = fl_train_options_check(&g->opt->train, err);
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
