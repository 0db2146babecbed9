/* check_events_file.c - the event log's two parts, and writing them by way of a thread. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/events.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "scratch.h"

static void emit_number(fl_events *log, int64_t i) {
  fl_event e;
  fl_event_begin(&e, "round");
  fl_event_int(&e, "i", i);
  fl_event_str(&e, "pad", "padding that makes the line longer than a few words would");
  fl_event_emit(log, &e);
}

typedef struct parts { /* what stands in the older part and then in the current one */
  int64_t *number;     /* members "i", in their order */
  size_t n, n_heads, n_lost_notes;
  int64_t lost;
  size_t size[2];
} parts;

static void take_line(parts *p, const fl_json *v) {
  double i = 0, lost = 0;
  const char *ev = NULL;
  ck_assert(fl_json_get_str(v, "ev", &ev));
  p->n_heads += strcmp(ev, "run") == 0;
  if (fl_json_get_num(v, "lost", &lost)) {
    p->n_lost_notes++;
    p->lost += (int64_t)lost;
  }
  if (!fl_json_get_num(v, "i", &i)) return;
  p->number = fl_reallocarray(p->number, p->n + 1, sizeof *p->number);
  p->number[p->n++] = (int64_t)i;
}

/* Every line of both has to be whole; with `cut`, one that is not is passed over. */
static parts read_parts(const char *path, bool cut) {
  char *older = fl_events_older(path);
  const char *name[] = { older, path };
  parts p = { 0 };
  for (size_t k = 0; k < 2; k++) {
    fl_buf b = { 0 };
    if (fl_fs_read(&b, name[k], 10 << 20, NULL) != FL_OK) continue;
    p.size[k] = b.len;
    for (const char *at = b.data; b.len > 0 && *at != '\0';) {
      const char *end = strchr(at, '\n');
      fl_json *v = NULL;
      ck_assert_ptr_nonnull(end);
      const int rc = fl_json_parse(&v, at, (size_t)(end - at), NULL);
      if (rc == FL_OK) take_line(&p, v);
      else ck_assert(cut);
      fl_json_free(v);
      at = end + 1;
    }
    fl_buf_release(&b);
  }
  fl_free(older);
  return p;
}

static void check_run_of(const parts *p, int64_t first, int64_t end) {
  ck_assert_int_eq((int64_t)p->n, end - first);
  for (size_t i = 0; i < p->n; i++) ck_assert_int_eq(p->number[i], first + (int64_t)i);
}

static void say_run(void *ctx, fl_events *to) {
  fl_event e;
  fl_event_begin(&e, "run");
  fl_event_str(&e, "cmd", ctx);
  fl_event_emit(to, &e);
}

START_TEST(names_of_older_parts) {
  static const char *const pair[][2] = { { "none/events.jsonl", "none/events.1.jsonl" },
                                         { "none/log", "none/log.1" },
                                         { ".jsonl", ".jsonl.1" } };
  for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
    char *older = fl_events_older(pair[i][0]);
    ck_assert_str_eq(older, pair[i][1]);
    fl_free(older);
  }
}
END_TEST

enum { PART = 4096 };

/* The log stays within two parts; what stands there are the newest lines, whole and in order, and
 * the current part tells whose they are. */
START_TEST(a_full_part_is_turned) {
  fl_events *log;
  char cmd[] = "x";
  const char *path = scratch("events.jsonl");
  ck_assert_int_eq(fl_events_open(&log, path, PART, NULL), FL_OK);
  fl_events_head(log, say_run, cmd);
  for (int64_t i = 0; i < 300; i++) {
    emit_number(log, i);
    parts p = read_parts(path, false);
    ck_assert_uint_le(p.size[0], PART);
    ck_assert_uint_le(p.size[1], PART);
    check_run_of(&p, p.number[0], i + 1);
    if (p.size[0] > 0) ck_assert_uint_ge(p.n_heads, 1);
    fl_free(p.number);
  }
  fl_events_close(log);
  ck_assert_uint_eq(scratch_count(), 2);
}
END_TEST

/* Opened again, it goes on in the part that is there; a kill between the two names leaves no
 * current one, which loses nothing. */
START_TEST(a_turn_that_was_cut_short) {
  fl_events *log;
  const char *path = scratch("events.jsonl");
  for (int64_t i = 0; i < 6; i++) {
    ck_assert_int_eq(fl_events_open(&log, path, PART, NULL), FL_OK);
    emit_number(log, i);
    fl_events_close(log);
    if (i == 3) ck_assert_int_eq(rename(path, scratch("events.1.jsonl")), 0);
  }
  parts p = read_parts(path, false);
  check_run_of(&p, 0, 6);
  fl_free(p.number);
}
END_TEST

enum { WRITERS = 3, EACH = 60 };
typedef struct writer {
  fl_events *log;
  int64_t first;
} writer;

static void *write_each(void *arg) {
  const writer *w = arg;
  for (int64_t i = 0; i < EACH; i++) emit_number(w->log, w->first + i);
  return NULL;
}

/* Writers with a file each, as processes are: 180 lines of 115 bytes or so (20700) fill one part
 * and not two, so that all of them must be there after one turn. */
START_TEST(writers_turn_a_part_once) {
  const char *path = scratch("events.jsonl");
  pthread_t thread[WRITERS];
  writer w[WRITERS];
  bool seen[WRITERS * EACH] = { false };
  for (int i = 0; i < WRITERS; i++) {
    w[i].first = i * EACH;
    ck_assert_int_eq(fl_events_open(&w[i].log, path, 12000, NULL), FL_OK);
  }
  for (int i = 0; i < WRITERS; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, write_each, &w[i]), 0);
  for (int i = 0; i < WRITERS; i++) pthread_join(thread[i], NULL);
  for (int i = 0; i < WRITERS; i++) fl_events_close(w[i].log);
  parts p = read_parts(path, false);
  ck_assert_uint_gt(p.size[0], 0);
  ck_assert_uint_eq(p.n, WRITERS * EACH);
  for (size_t i = 0; i < p.n; i++) {
    ck_assert(!seen[p.number[i]]);
    seen[p.number[i]] = true;
  }
  fl_free(p.number);
}
END_TEST

static _Noreturn void emit_and_tell(const char *path, int fd) {
  fl_events *log;
  if (fl_events_open(&log, path, PART, NULL) != FL_OK) _exit(1);
  for (int64_t i = 0;; i++) {
    emit_number(log, i);
    if (write(fd, &i, sizeof i) != sizeof i) _exit(2);
  }
}

/* A process that is killed at any line, the turning ones among them: what it had emitted is
 * there. */
START_TEST(a_kill_loses_no_line) {
  const char *path = scratch("events.jsonl"), *older = scratch("events.1.jsonl");
  for (int64_t last = 20; last < 60; last++) {
    int fd[2], status;
    int64_t told = -1;
    unlink(path);
    ck_assert_int_eq(pipe(fd), 0);
    const pid_t pid = fork();
    if (pid == 0) emit_and_tell(path, fd[1]);
    close(fd[1]);
    while (told < last) ck_assert_int_eq(read(fd[0], &told, sizeof told), sizeof told);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    while (read(fd[0], &told, sizeof told) == sizeof told) {}
    close(fd[0]);
    parts p = read_parts(path, false);
    ck_assert_uint_gt(p.n, 0);
    check_run_of(&p, p.number[0], p.number[0] + (int64_t)p.n);
    ck_assert_int_ge(p.number[p.n - 1], told);
    fl_free(p.number);
    unlink(older);
  }
}
END_TEST

/* The file that a link names is turned beside itself, and the link stays. */
START_TEST(a_link_stays) {
  fl_events *log;
  struct stat st;
  const char *path = scratch("events.jsonl");
  ck_assert_int_eq(symlink(scratch("far.jsonl"), path), 0);
  ck_assert_int_eq(fl_events_open(&log, path, PART, NULL), FL_OK);
  for (int64_t i = 0; i < 50; i++) emit_number(log, i);
  fl_events_close(log);
  ck_assert_int_eq(lstat(path, &st), 0);
  ck_assert(S_ISLNK(st.st_mode));
  ck_assert_int_eq(lstat(scratch("far.1.jsonl"), &st), 0);
  parts p = read_parts(path, false);
  check_run_of(&p, 0, 50);
  fl_free(p.number);
}
END_TEST

/* A part that cannot be turned grows to twice its size; the rest is counted. */
START_TEST(a_part_that_cannot_be_turned) {
  fl_events *log;
  char in[1100];
  const char *path = scratch("events.jsonl");
  fl_log_set_level(-1);
  ck_assert_int_eq(mkdir(scratch("events.1.jsonl"), 0700), 0);
  snprintf(in, sizeof in, "%s/x", scratch("events.1.jsonl"));
  scratch_put(in, "x", 1);
  ck_assert_int_eq(fl_events_open(&log, path, PART, NULL), FL_OK);
  for (int64_t i = 0; i < 300; i++) emit_number(log, i);
  const uint64_t lost = fl_events_lost(log);
  parts p = read_parts(path, false);
  ck_assert_uint_ge(p.size[1], 2 * PART);
  ck_assert_uint_le(p.size[1], 2 * PART + 200);
  check_run_of(&p, 0, 300 - (int64_t)lost);
  fl_free(p.number);
  unlink(in);
  ck_assert_int_eq(rmdir(scratch("events.1.jsonl")), 0);
  fl_events_close(log);
}
END_TEST

/* A disk that is full for a while: the line that it cuts is completed, the number of those that are
 * missing is noted, and the log goes on. */
START_TEST(what_is_missing_is_noted) {
  fl_events *log;
  struct rlimit limit;
  const char *path = scratch("events.jsonl");
  fl_log_set_level(-1);
  signal(SIGXFSZ, SIG_IGN);
  ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlim_t whole = limit.rlim_cur;
  ck_assert_int_eq(fl_events_open(&log, path, 0, NULL), FL_OK);
  limit.rlim_cur = 1000;
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
  for (int64_t i = 0; i < 30; i++) emit_number(log, i);
  limit.rlim_cur = whole;
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
  for (int64_t i = 30; i < 33; i++) emit_number(log, i);
  parts p = read_parts(path, true);
  ck_assert_uint_eq(p.n_lost_notes, 1);
  ck_assert_int_eq(p.lost, (int64_t)fl_events_lost(log));
  ck_assert_int_eq((int64_t)p.n + p.lost, 33);
  ck_assert_int_ge(p.lost, 20);
  ck_assert_int_eq(p.number[p.n - 1], 32);
  fl_free(p.number);
  fl_events_close(log);
}
END_TEST

/* --- by way of a thread --- */

START_TEST(lines_by_way_of_a_thread) {
  fl_events *log;
  pthread_t thread[WRITERS];
  writer w[WRITERS];
  const char *path = scratch("events.jsonl");
  ck_assert_int_eq(fl_events_open(&log, path, 0, NULL), FL_OK);
  ck_assert_int_eq(fl_events_behind(log, 1 << 20, NULL), FL_OK);
  for (int i = 0; i < WRITERS; i++) {
    w[i] = (writer){ log, i * EACH };
    ck_assert_int_eq(pthread_create(&thread[i], NULL, write_each, &w[i]), 0);
  }
  for (int i = 0; i < WRITERS; i++) pthread_join(thread[i], NULL);
  ck_assert_uint_eq(fl_events_drain(log, 60), 0);
  parts p = read_parts(path, false);
  ck_assert_uint_eq(p.n, WRITERS * EACH);
  fl_free(p.number);
  emit_number(log, 1000);
  fl_events_close(log); /* what waits is written */
  p = read_parts(path, false);
  ck_assert_int_eq(p.number[p.n - 1], 1000);
  fl_free(p.number);
}
END_TEST

static void fill(int fd) {
  static char newlines[4096];
  memset(newlines, '\n', sizeof newlines);
  while (write(fd, newlines, sizeof newlines) > 0) {}
}

/* What is in the pipe moves to `out`. */
static void empty(int fd, fl_buf *out) {
  char block[4096];
  for (ssize_t n; (n = read(fd, block, sizeof block)) > 0;) fl_buf_append(out, block, (size_t)n);
}

/* The sum of the notes on lines that are missing. */
static uint64_t noted(const fl_buf *text) {
  static const char mark[] = "\"lost\":";
  uint64_t n = 0;
  for (const char *at = text->data; (at = strstr(at, mark)) != NULL;) {
    at += sizeof mark - 1;
    n += strtoull(at, NULL, 10);
  }
  return n;
}

/* A disk that hangs, here a full pipe: nobody waits for it, what has no place is counted; when it
 * goes on so does the log, and when it does not the end does not wait either. */
START_TEST(a_disk_that_hangs) {
  const struct timespec nap = { .tv_nsec = 1000000 };
  fl_events *log;
  fl_buf text = { 0 };
  const char *path = scratch("events.jsonl");
  fl_log_set_level(-1);
  ck_assert_int_eq(mkfifo(path, 0600), 0);
  const int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ck_assert_int_eq(fl_events_open(&log, path, 0, NULL), FL_OK);
  ck_assert_int_eq(fl_events_behind(log, 2000, NULL), FL_OK);
  fill(fd);
  for (int64_t i = 0; i < 100; i++) emit_number(log, i);
  ck_assert_uint_gt(fl_events_drain(log, 0.05), 0);
  const uint64_t lost = fl_events_lost(log);
  ck_assert_uint_gt(lost, 50);
  while (fl_events_drain(log, 0) > 0) { /* it goes on */
    empty(fd, &text);
    nanosleep(&nap, NULL);
  }
  emit_number(log, 100);
  ck_assert_uint_eq(fl_events_drain(log, 60), 0);
  empty(fd, &text);
  ck_assert_ptr_nonnull(strstr(text.data, "\"i\":0,"));
  ck_assert_ptr_nonnull(strstr(text.data, "\"i\":100,"));
  ck_assert_uint_eq(noted(&text), lost);
  fill(fd); /* and hangs for good */
  emit_number(log, 101);
  ck_assert_uint_gt(fl_events_drain(log, 0.05), 0);
  fl_events_close(log);
  fl_buf_release(&text);
}
END_TEST

Suite *suite_events_file(void) {
  Suite *s = suite_create("events_file");
  TCase *core = tcase_create("Core"), *errors = tcase_create("Errors");
  tcase_add_checked_fixture(core, scratch_begin, scratch_end);
  tcase_add_checked_fixture(errors, scratch_begin, scratch_end);
  tcase_add_test(core, names_of_older_parts);
  tcase_add_test(core, a_full_part_is_turned);
  tcase_add_test(core, a_turn_that_was_cut_short);
  tcase_add_test(core, writers_turn_a_part_once);
  tcase_add_test(core, a_link_stays);
  tcase_add_test(core, lines_by_way_of_a_thread);
  tcase_add_test(errors, a_kill_loses_no_line);
  tcase_add_test(errors, a_part_that_cannot_be_turned);
  tcase_add_test(errors, what_is_missing_is_noted);
  tcase_add_test(errors, a_disk_that_hangs);
  suite_add_tcase(s, core);
  suite_add_tcase(s, errors);
  return s;
}
