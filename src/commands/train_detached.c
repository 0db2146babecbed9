/* train_detached.c - train --tui: the trainer in a session of its own, the dashboard here.
 *
 * The two share nothing but the fleet's folder (event log and control socket), so that leaving the
 * dashboard, a closed terminal or a crash of the one never touches the other. The trainer is forked
 * before any model is open, that is before there are threads. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "fleet/fleet_dir.h"
#include "cli/signals.h"
#include "commands/train.h"
#include "tui/tui.h"

/* In the child; never returns. */
static _Noreturn void train_in_child(train_args *a, const char *dir, fl_source_list *docs,
                                     int log_fd) {
  fl_err why = { 0 };
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  setsid();
  signal(SIGHUP, SIG_IGN);
  if (null >= 0) dup2(null, STDIN_FILENO);
  dup2(log_fd, STDOUT_FILENO);
  dup2(log_fd, STDERR_FILENO);
  int rc = train_run(a, dir, docs, &why);
  if (rc != FL_OK && rc != FL_EINTR) fl_error("%s", why.text);
  fflush(stdout);
  _exit(fl_exit_status(rc));
}

static uint64_t size_of(const char *path) {
  uint64_t n = 0;
  return fl_fs_size(&n, path, NULL) == FL_OK ? n : 0;
}

/* Until the trainer has written its first event or ended (*status); the log is shorter then when it
 * went on in a new part. */
static void wait_for_start(pid_t pid, const char *events, uint64_t before, bool *ended,
                           int *status) {
  const struct timespec nap = { .tv_nsec = 50000000 };
  *ended = false;
  while (!*ended && size_of(events) == before) {
    if (signals_stop()) kill(pid, SIGTERM);
    *ended = waitpid(pid, status, WNOHANG) == pid;
    nanosleep(&nap, NULL);
  }
}

/* The last line of the trainer's log, where its error stands. */
static void last_line(char *out, size_t size, const char *path) {
  fl_map m = { 0 };
  out[0] = '\0';
  if (fl_map_open(&m, path, NULL) != FL_OK) return;
  const char *data = (const char *)m.data, *end = data + m.size;
  if (end > data && end[-1] == '\n') end--;
  const char *newline = end > data ? memrchr(data, '\n', (size_t)(end - data)) : NULL;
  const char *line = newline ? newline + 1 : data;
  const size_t len = (size_t)(end - line) < size ? (size_t)(end - line) : size - 1;
  snprintf(out, size, "%.*s", (int)len, line);
  fl_map_close(&m);
}

static int result_of(int status, const char *log_path, fl_err *err) {
  static const char prefix[] = "flotilla: ";
  char line[512];
  const int codes[] = { FL_EFAIL, FL_EUSAGE, FL_EGATE, FL_EINPUT, FL_EINTR };
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return FL_OK;
  if (!WIFEXITED(status))
    return fl_fail(err, FL_EFAIL, "the trainer was ended by signal %d; %s has its last words",
                   WTERMSIG(status), log_path);
  int code = FL_EFAIL;
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    if (fl_exit_status(codes[i]) == WEXITSTATUS(status)) code = codes[i];
  if (code == FL_EINTR) return code;
  last_line(line, sizeof line, log_path);
  bool sentence = strncmp(line, prefix, sizeof prefix - 1) == 0;
  return fl_fail(err, code, "%s", sentence ? line + sizeof prefix - 1 : log_path);
}

static int watch(const char *dir, bool leave, fl_err *err) {
  tui_options o = { .fleets = &dir, .n_fleets = 1, .wait = true, .leave = leave };
  return tui_watch(&o, err);
}

/* The trainer has ended. Its log and its words were kept for the dashboard and for this process. */
static void leave_nothing(const char *dir, const char *log_path, const char *made) {
  fl_lock *lock = NULL;
  char *path = fl_fs_join(dir, FL_LOCK_FILE);
  if (path && !fl_fleet_dir_exists(dir) && fl_lock_take(&lock, path, NULL) == FL_OK) {
    (void)fl_fs_remove(log_path);
    fl_fleet_leave_nothing(dir, lock, made);
  }
  fl_free(path);
}

int train_detached(train_args *a, const char *dir, fl_source_list *docs, fl_err *err) {
  char *log_path = NULL, *events = NULL, *made = NULL;
  int log_fd = -1, status = 0, watched = FL_OK;
  bool ended = false;
  if (!isatty(STDOUT_FILENO))
    return fl_fail(err, FL_EUSAGE, "--tui: standard output is no terminal; leave the option out");
  int rc = fl_fs_mkdir_made(&made, dir, err);
  if (rc != FL_OK) goto done;
  log_path = fl_fs_join(dir, FL_TRAIN_LOG_FILE);
  events = fl_fs_join(dir, FL_EVENTS_FILE);
  if (!log_path || !events) {
    rc = fl_fail(err, FL_ENOMEM, "not enough memory");
    goto done;
  }
  log_fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (log_fd < 0) {
    rc = fl_fs_fail_errno(err, log_path, "written", errno);
    goto done;
  }
  uint64_t before = size_of(events);
  fflush(stdout);
  pid_t pid = fork();
  if (pid < 0) {
    rc = fl_fail(err, FL_EFAIL,
                 "--tui: a process for the trainer can't be started (%s); leave the "
                 "option out",
                 fl_fs_reason(errno));
    goto done;
  }
  if (pid == 0) train_in_child(a, dir, docs, log_fd);
  signals_catch();
  wait_for_start(pid, events, before, &ended, &status);
  if (!ended) watched = watch(dir, a->leave, err);
  if (!ended) ended = waitpid(pid, &status, WNOHANG) == pid;
  if (ended) {
    rc = result_of(status, log_path, err);
    if (rc != FL_OK && made) leave_nothing(dir, log_path, made);
  } else {
    rc = watched;
    fl_info("training goes on in process %ld; flotilla watch %s shows it, SIGTERM saves and stops "
            "it",
            (long)pid, dir);
  }
done:
  if (log_fd >= 0) close(log_fd);
  fl_free(made);
  fl_free(events);
  fl_free(log_path);
  return rc;
}
