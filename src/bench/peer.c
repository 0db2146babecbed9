/* peer.c - other programs as child processes: llama-bench and torch on the same task, and
 * this program itself, whose peak memory is asked for. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "bench/bench.h"

extern char **environ;

typedef struct child {
  fl_buf out; /* what it wrote on stdout */
  long peak_kib;
  int status; /* exit status, or -1 */
} child;

static void read_all(int fd, fl_buf *out) {
  char block[4096];
  for (;;) {
    ssize_t n = read(fd, block, sizeof block);
    if (n > 0) fl_buf_append(out, block, (size_t)n);
    else if (n == 0 || errno != EINTR) return;
  }
}

/* Runs argv[0], sought on the path, and waits for it. Its stderr goes nowhere. */
static int run_child(child *c, const char *const *argv, fl_err *err) {
  int fd[2];
  pid_t pid;
  posix_spawn_file_actions_t acts;
  if (pipe(fd) != 0) return fl_fail(err, FL_EFAIL, "no pipe: %s", strerror(errno));
  posix_spawn_file_actions_init(&acts);
  posix_spawn_file_actions_adddup2(&acts, fd[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&acts, fd[0]);
  posix_spawn_file_actions_addclose(&acts, fd[1]);
  posix_spawn_file_actions_addopen(&acts, STDERR_FILENO, "/dev/null", 1 /* O_WRONLY */, 0);
  /* The interface lacks a const that it keeps to. */
  int rc = posix_spawnp(&pid, argv[0], &acts, NULL, (char *const *)(uintptr_t)argv, environ);
  posix_spawn_file_actions_destroy(&acts);
  close(fd[1]);
  if (rc != 0) {
    close(fd[0]);
    return fl_fail(err, FL_ENOENT, "%s: cannot be run (%s); install it or name it", argv[0],
                   strerror(rc));
  }
  read_all(fd[0], &c->out);
  close(fd[0]);
  int status;
  struct rusage use;
  while (wait4(pid, &status, 0, &use) < 0)
    if (errno != EINTR) return fl_fail(err, FL_EFAIL, "%s: lost", argv[0]);
  c->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  c->peak_kib = use.ru_maxrss;
  if (c->status != 0 || c->out.oom)
    return fl_fail(err, FL_EFAIL, "%s: ended with status %d", argv[0], c->status);
  return FL_OK;
}

/* A number under `key` in JSON text: an object, or an array whose first element is one. */
static int number_in(const fl_buf *text, const char *key, const char *who, double *out,
                     fl_err *err) {
  fl_json *j = NULL;
  int rc = fl_json_parse(&j, text->data ? text->data : "", text->len, err);
  if (rc != FL_OK) {
    fl_err_prefix(err, "%s", who);
    return rc;
  }
  const fl_json *o = fl_json_is_arr(j) ? fl_json_first(j) : j;
  if (!o || !fl_json_get_num(o, key, out))
    rc = fl_fail(err, FL_EFAIL, "%s: its output has no %s", who, key);
  fl_json_free(j);
  return rc;
}

typedef struct number_text {
  char s[24];
} number_text;
static number_text text_of(size_t n) {
  number_text t;
  snprintf(t.s, sizeof t.s, "%zu", n);
  return t;
}

int bench_llama(const bench *b, size_t n_prompt, size_t n_gen, double *out, fl_err *err) {
  const number_text p = text_of(n_prompt), g = text_of(n_gen), t = text_of(fl_team_size(b->team));
  const char *argv[] = { b->opt->llama_bench,
                         "-m",
                         b->model_path,
                         "-t",
                         t.s,
                         "-p",
                         p.s,
                         "-n",
                         g.s,
                         "-r",
                         "1",
                         "-o",
                         "json",
                         NULL };
  child c = { 0 };
  int rc = run_child(&c, argv, err);
  if (rc == FL_OK) rc = number_in(&c.out, "avg_ts", argv[0], out, err);
  fl_buf_release(&c.out);
  return rc;
}

int bench_torch(const bench *b, const bench_shape *s, const char *type, double *out, fl_err *err) {
  const fl_hparams *hp = b->hp;
  const fl_layer_hparams *l = &hp->layer[0];
  const size_t value[] = { s->rows,      s->prefix,   s->n_sup,    s->n_convs,
                           hp->n_layers, hp->d_model, l->n_heads,  l->kv_heads,
                           l->head_dim,  l->n_ff,     hp->n_vocab, fl_team_size(b->team) };
  enum { N = sizeof value / sizeof *value };
  number_text text[N];
  const char *argv[N + 4] = { "python3", b->opt->torch_step, type };
  for (size_t i = 0; i < N; i++) {
    text[i] = text_of(value[i]);
    argv[3 + i] = text[i].s;
  }
  child c = { 0 };
  int rc = run_child(&c, argv, err);
  if (rc == FL_OK) rc = number_in(&c.out, "seconds", b->opt->torch_step, out, err);
  fl_buf_release(&c.out);
  return rc;
}

/* The peak of this program when it does nothing but steps: of the parts that run some, contention
 * is the one that measures nothing beside them which takes memory. */
static int peak_of_step(const bench *b, bool checkpoint, double *bytes, fl_err *err) {
  const number_text t = text_of(fl_team_size(b->team));
  const char *argv[] = { "/proc/self/exe",
                         "bench",
                         b->model_path,
                         "--only",
                         "contention",
                         "--reps",
                         "1",
                         "--threads",
                         t.s,
                         "--json",
                         checkpoint ? "--checkpoint" : NULL,
                         NULL };
  child c = { 0 };
  int rc = run_child(&c, argv, err);
  if (rc == FL_OK) *bytes = (double)c.peak_kib * 1024;
  fl_buf_release(&c.out);
  return rc;
}

int bench_memory(bench *b, fl_err *err) {
  const char *names[] = { "training", "training --checkpoint" };
  double file = 0;
  fl_map m = { 0 };
  int rc = fl_map_open(&m, b->model_path, err);
  if (rc == FL_OK) file = (double)m.size;
  fl_map_close(&m);
  for (size_t i = 0; i < 2 && rc == FL_OK; i++) {
    double bytes = 0;
    rc = peak_of_step(b, i == 1, &bytes, err);
    bench_figure f = { .part = "memory", .unit = "MiB", .value = bytes / 0x1p20 };
    snprintf(f.what, sizeof f.what, "%s", names[i]);
    if (rc == FL_OK) bench_add(b, &f);
    f.value = (bytes - file) / 0x1p20;
    snprintf(f.what, sizeof f.what, "%s, over the file", names[i]);
    if (rc == FL_OK) bench_add(b, &f);
  }
  return rc;
}
