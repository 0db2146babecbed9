/* fake_trainer.c - stands in for a trainer in tests of the dashboard: fake_trainer DIR LOG.
 * It writes the lines of LOG into DIR/events.jsonl, ten at a time, with its own process in the run
 * event, and answers on DIR/control. With "hold" as third argument it writes nothing but the first
 * half until it is told to go on ({"cmd":"resume"}). It ends after {"cmd":"stop"}.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"

enum { CLIENTS = 16, LINE = 1 << 16 };

typedef struct trainer {
  FILE *in, *log;
  int fd, client[CLIENTS];
  int streaming[CLIENTS]; /* tokens still to send */
  bool paused, stop, ended;
  long lines;
} trainer;

static double now(void) {
  struct timespec ts;
  clock_gettime(CLOCK_REALTIME, &ts);
  return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* One line of the recorded log with the time of now; the run event with this process in it. */
static void copy_line(trainer *t, char *line) {
  char host[256] = "?";
  char *rest = strstr(line, ",\"ev\"");
  char *pid = strstr(line, "\"pid\":"), *name = strstr(line, "\"host\":\"");
  if (!rest) return;
  if (!pid || !name) {
    fprintf(t->log, "{\"t\":%.3f%s", now(), rest);
  } else {
    gethostname(host, sizeof host - 1);
    char *after_pid = strchr(pid, ','), *after_host = strchr(name, ',');
    fprintf(t->log, "{\"t\":%.3f%.*s\"pid\":%d%.*s\"host\":\"%s\"%s", now(), (int)(pid - rest),
            rest, (int)getpid(), (int)(name - after_pid), after_pid, host, after_host);
  }
  fflush(t->log);
}

static void advance(trainer *t) {
  static char line[LINE];
  for (int i = 0; i < 10 && !t->paused && !t->ended; i++) {
    if (!fgets(line, sizeof line, t->in)) t->paused = true;
    else if (strstr(line, "\"ev\":\"end\"")) continue; /* only when told to stop */
    else copy_line(t, line);
    t->lines++;
  }
}

static void say(int fd, const char *text) {
  if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0) fputs("client gone\n", stderr);
}

static void log_control(trainer *t, const char *cmd, const fl_json *req) {
  const char *key = NULL;
  double value = 0, doc;
  bool on = false;
  fprintf(t->log, "{\"t\":%.3f,\"ev\":\"control\",\"cmd\":\"%s\"", now(), cmd);
  if (fl_json_get_str(req, "key", &key)) fprintf(t->log, ",\"key\":\"%s\"", key);
  if (fl_json_get_num(req, "value", &value)) fprintf(t->log, ",\"value\":%.17g", value);
  if (fl_json_get_bool(req, "value", &on)) fprintf(t->log, ",\"value\":%s", on ? "true" : "false");
  if (fl_json_get_num(req, "doc", &doc)) fprintf(t->log, ",\"doc\":%.0f", doc);
  fputs(",\"by\":\"socket\"}\n", t->log);
  fflush(t->log);
}

static void retrieve(int fd, const char *query) {
  bool tide = strstr(query, "tide") != NULL;
  char text[1024];
  snprintf(text, sizeof text,
           "{\"ok\":true,\"query\":\"q\",\"docs\":[{\"doc\":%d,\"name\":\"docs/%s\","
           "\"score\":0.81},{\"doc\":5,\"name\":\"docs/rope-manual.md\",\"score\":0.32}],"
           "\"chunks\":[{\"chunk\":3,\"doc\":%d,\"score\":0.81}],\"chosen\":[%d],"
           "\"floor\":0.3,\"margin\":0.05,\"seconds\":0.002}\n",
           tide ? 1 : 2, tide ? "tide-tables.md" : "lighthouse-log.txt", tide ? 1 : 2,
           tide ? 1 : 2);
  say(fd, text);
}

/* True when the connection stays open. */
static bool answer(trainer *t, int i, const char *cmd, const fl_json *req) {
  const char *query = "";
  char text[128];
  bool bare = false;
  if (strcmp(cmd, "ping") == 0) {
    snprintf(text, sizeof text, "{\"ok\":true,\"pid\":%d,\"round\":%ld,\"paused\":%s}\n",
             (int)getpid(), t->lines / 6, t->paused ? "true" : "false");
    say(t->client[i], text);
    return false;
  }
  fl_json_get_str(req, "query", &query);
  if (strcmp(cmd, "retrieve") == 0) {
    retrieve(t->client[i], query);
    return false;
  }
  if (strcmp(cmd, "ask") == 0) {
    fl_json_get_bool(req, "bare", &bare);
    t->streaming[i] = bare ? -5 : 5;
    return true;
  }
  log_control(t, cmd, req);
  if (strcmp(cmd, "pause") == 0) t->paused = true;
  else if (strcmp(cmd, "resume") == 0) t->paused = false;
  else if (strcmp(cmd, "stop") == 0) t->stop = true;
  else if (strcmp(cmd, "set") == 0) {
    double v = 0;
    fl_json_get_num(req, "value", &v);
    if (v == 13) {
      say(t->client[i], "{\"ok\":false,\"error\":\"13 brings bad luck at sea\"}\n");
      return false;
    }
  }
  say(t->client[i], "{\"ok\":true}\n");
  return false;
}

static void serve(trainer *t, int i) {
  static char line[LINE];
  ssize_t n = recv(t->client[i], line, sizeof line - 1, 0);
  fl_json *req = NULL;
  const char *cmd = NULL;
  bool stays = false;
  if (n > 0 && fl_json_parse(&req, line, (size_t)n, NULL) == FL_OK &&
      fl_json_get_str(req, "cmd", &cmd))
    stays = answer(t, i, cmd, req);
  fl_json_free(req);
  if (stays) return;
  close(t->client[i]);
  t->client[i] = -1;
}

static void stream(trainer *t, int i) {
  static const char *const words[] = { "The ", "keeper ", "lit ", "the ", "lamp." };
  bool bare = t->streaming[i] < 0;
  int left = abs(t->streaming[i]) - 1;
  char text[160];
  snprintf(text, sizeof text, "{\"token\":\"%s\"}\n", words[4 - left]);
  say(t->client[i], text);
  t->streaming[i] = bare ? -left : left;
  if (left) return;
  say(t->client[i], bare ? "{\"ok\":true,\"text\":\"I do not know of a keeper.\",\"docs\":[],"
                           "\"rows\":0,\"tok_s\":30.1}\n"
                         : "{\"ok\":true,\"text\":\"The keeper lit the lamp.\",\"docs\":[2,1],"
                           "\"rows\":512,\"tok_s\":24.5}\n");
  close(t->client[i]);
  t->client[i] = -1;
}

static void turn(trainer *t) {
  struct pollfd p[CLIENTS + 1] = { { .fd = t->fd, .events = POLLIN } };
  for (int i = 0; i < CLIENTS; i++)
    p[i + 1] = (struct pollfd){ .fd = t->client[i], .events = POLLIN };
  poll(p, CLIENTS + 1, 30);
  for (int i = 0; i < CLIENTS; i++) {
    if (t->client[i] < 0) continue;
    if (t->streaming[i]) stream(t, i);
    else if (p[i + 1].revents) serve(t, i);
  }
  if (!(p[0].revents & POLLIN)) return;
  int fd = accept(t->fd, NULL, NULL);
  for (int i = 0; fd >= 0 && i < CLIENTS; i++)
    if (t->client[i] < 0) {
      t->client[i] = fd;
      t->streaming[i] = 0;
      return;
    }
  if (fd >= 0) close(fd);
}

int main(int argc, char **argv) {
  trainer t = { 0 };
  char path[512];
  struct sockaddr_un a = { .sun_family = AF_UNIX };
  bool hold = argc > 3 && strcmp(argv[3], "hold") == 0;
  if (argc < 3) return 2;
  snprintf(path, sizeof path, "%s/events.jsonl", argv[1]);
  t.in = fopen(argv[2], "r");
  t.log = fopen(path, "a");
  snprintf(a.sun_path, sizeof a.sun_path, "%.90s/control", argv[1]);
  unlink(a.sun_path);
  t.fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (!t.in || !t.log || t.fd < 0 || bind(t.fd, (struct sockaddr *)&a, sizeof a) != 0 ||
      listen(t.fd, 8) != 0) {
    fprintf(stderr, "fake_trainer: %s\n", strerror(errno));
    return 1;
  }
  for (int i = 0; i < CLIENTS; i++) t.client[i] = -1;
  while (!t.stop) {
    turn(&t);
    advance(&t);
    if (hold && t.lines >= 200) t.paused = true, hold = false;
  }
  fprintf(t.log, "{\"t\":%.3f,\"ev\":\"end\",\"status\":\"signal\",\"round\":%ld,\"seconds\":1}\n",
          now(), t.lines / 6);
  unlink(a.sun_path);
  fclose(t.in);
  fclose(t.log);
  return 0;
}
