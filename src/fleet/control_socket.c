/* control.c - see control.h. */
#include "fleet/control_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json_writer.h"
#include "base/mem.h"

struct fl_control_client {
  int fd;    /* -1: free */
  bool dead; /* dropped; closed after the handler returned */
  size_t n;
  char *line; /* [FL_CONTROL_LINE] */
};

struct fl_control {
  int fd;
  bool busy;        /* in a handler */
  char *path;       /* of the socket */
  char *note;       /* the file `control.path`, or NULL */
  struct stat made; /* the socket, to tell it from another's of this name */
  fl_control_handler *handler;
  void *ctx;
  fl_control_client client[FL_CONTROL_CLIENTS];
};

/* --- the socket --- */

static bool fits_address(const char *path) {
  struct sockaddr_un a;
  return strlen(path) < sizeof a.sun_path;
}

/* Where the socket goes; *note is set when it is not in the folder. */
static int choose_path(fl_control *c, const char *dir, fl_err *err) {
  char *home = fl_fs_join(dir, "control"), *note = fl_fs_join(dir, "control.path");
  if (home == NULL || note == NULL) {
    fl_free(home);
    fl_free(note);
    return fl_fail(err, FL_ENOMEM, "%s: not enough memory for the control socket", dir);
  }
  if (fits_address(home)) {
    (void)fl_fs_remove(note);
    fl_free(note);
    c->path = home;
    return FL_OK;
  }
  fl_free(home);
  const char *base = getenv("XDG_RUNTIME_DIR");
  c->path = fl_asprintf("%s/flotilla-%ld.sock", base != NULL ? base : "/tmp", (long)getpid());
  if (c->path != NULL && !fits_address(c->path)) {
    fl_free(c->path);
    c->path = fl_asprintf("/tmp/flotilla-%ld.sock", (long)getpid());
  }
  c->note = note;
  return c->path != NULL ? FL_OK : fl_fail(err, FL_ENOMEM, "%s: not enough memory", dir);
}

static int listen_at(fl_control *c, const char *dir, fl_err *err) {
  struct sockaddr_un a = { .sun_family = AF_UNIX };
  memcpy(a.sun_path, c->path, strlen(c->path) + 1);
  c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (c->fd < 0) goto failed;
  (void)fl_fs_remove(c->path);
  /* Nobody but the owner may steer a run. */
  mode_t old = umask(0177);
  int rc = bind(c->fd, (const struct sockaddr *)&a, sizeof a);
  umask(old);
  if (rc != 0 || listen(c->fd, FL_CONTROL_CLIENTS) != 0) goto failed;
  if (stat(c->path, &c->made) != 0) goto failed;
  if (c->note != NULL) return fl_fs_replace(c->note, c->path, strlen(c->path), err);
  return FL_OK;
failed:
  return fl_fail(err, FL_EFAIL, "%s: no control socket (%s); the run goes on without one", dir,
                 strerror(errno));
}

int fl_control_open(fl_control **out, const char *dir, fl_control_handler *handler, void *ctx,
                    fl_err *err) {
  fl_control *c = fl_calloc(1, sizeof *c);
  if (c == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory", dir);
  c->fd = -1;
  c->handler = handler;
  c->ctx = ctx;
  for (size_t i = 0; i < FL_CONTROL_CLIENTS; i++) c->client[i].fd = -1;
  int rc = choose_path(c, dir, err);
  if (rc == FL_OK) rc = listen_at(c, dir, err);
  if (rc != FL_OK) {
    fl_control_close(c);
    return rc;
  }
  *out = c;
  return FL_OK;
}

static bool answers(const char *path) {
  struct sockaddr_un a = { .sun_family = AF_UNIX };
  if (!fits_address(path)) return false;
  memcpy(a.sun_path, path, strlen(path) + 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool yes = fd >= 0 && connect(fd, (const struct sockaddr *)&a, sizeof a) == 0;
  if (fd >= 0) close(fd);
  return yes;
}

bool fl_control_is_taken(const char *dir) {
  char *home = fl_fs_join(dir, "control"), *note = fl_fs_join(dir, "control.path");
  fl_buf path = { 0 };
  bool taken = home != NULL && answers(home);
  if (!taken && note != NULL && fl_fs_read(&path, note, 4096, NULL) == FL_OK && path.len > 0)
    taken = answers(path.data);
  fl_buf_release(&path);
  fl_free(home);
  fl_free(note);
  return taken;
}

static void client_close(fl_control_client *k) {
  if (k->fd >= 0) close(k->fd);
  fl_free(k->line);
  *k = (fl_control_client){ .fd = -1 };
}

static bool is_ours(const fl_control *c) {
  struct stat now;
  return stat(c->path, &now) == 0 && now.st_dev == c->made.st_dev && now.st_ino == c->made.st_ino;
}

void fl_control_close(fl_control *c) {
  if (c == NULL) return;
  for (size_t i = 0; i < FL_CONTROL_CLIENTS; i++) client_close(&c->client[i]);
  if (c->fd >= 0) close(c->fd);
  if (c->fd >= 0 && is_ours(c)) {
    (void)fl_fs_remove(c->path);
    if (c->note != NULL) (void)fl_fs_remove(c->note);
  }
  fl_free(c->path);
  fl_free(c->note);
  fl_free(c);
}

/* --- sending --- */

static void send_all(fl_control_client *k, const char *data, size_t len) {
  while (!k->dead && len > 0) {
    ssize_t n = send(k->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      k->dead = true;
      return;
    }
    data += n;
    len -= (size_t)n;
  }
}

void fl_control_send(fl_control_client *client, const char *text, size_t len) {
  send_all(client, text, len);
  send_all(client, "\n", 1);
}

void fl_control_send_buf(fl_control_client *c, fl_buf *b) {
  if (b->oom) fl_control_fail(c, "not enough memory for the answer");
  else fl_control_send(c, b->data, b->len);
  fl_buf_release(b);
}

void fl_control_ok(fl_control_client *client) { fl_control_send(client, "{\"ok\":true}", 11); }

void fl_control_fail(fl_control_client *client, const char *sentence) {
  fl_buf b = { 0 };
  fl_jsonw_open(&b, NULL, '{');
  fl_jsonw_bool(&b, "ok", false);
  fl_jsonw_str(&b, "error", sentence);
  fl_jsonw_close(&b, '}');
  if (!b.oom) fl_control_send(client, b.data, b.len);
  fl_buf_release(&b);
}

bool fl_control_alive(const fl_control_client *client) { return !client->dead; }

/* --- receiving --- */

static void take_line(fl_control *c, fl_control_client *k, const char *line, size_t len) {
  fl_json *o = NULL;
  const char *cmd = NULL;
  fl_err why = { 0 };
  if (fl_json_parse(&o, line, len, &why) != FL_OK) fl_control_fail(k, why.text);
  else if (!fl_json_get_str(o, "cmd", &cmd)) fl_control_fail(k, "no \"cmd\" in the request");
  else c->handler(c->ctx, k, cmd, o);
  fl_json_free(o);
}

static void take_lines(fl_control *c, fl_control_client *k) {
  size_t at = 0;
  while (!k->dead) {
    const char *end = memchr(k->line + at, '\n', k->n - at);
    if (end == NULL) break;
    size_t len = (size_t)(end - (k->line + at));
    if (len > 0) take_line(c, k, k->line + at, len);
    at += len + 1;
  }
  memmove(k->line, k->line + at, k->n - at);
  k->n -= at;
  if (k->n == FL_CONTROL_LINE) {
    fl_control_fail(k, "a request is longer than 64 KiB");
    k->dead = true;
  }
}

static void receive(fl_control *c, fl_control_client *k) {
  for (;;) {
    ssize_t n = recv(k->fd, k->line + k->n, FL_CONTROL_LINE - k->n, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (n <= 0) {
      k->dead = true;
      return;
    }
    k->n += (size_t)n;
    take_lines(c, k);
    if (k->dead) return;
  }
}

static void accept_clients(fl_control *c) {
  for (;;) {
    int fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    size_t i = 0;
    while (i < FL_CONTROL_CLIENTS && c->client[i].fd >= 0) i++;
    char *line = i < FL_CONTROL_CLIENTS ? fl_malloc(FL_CONTROL_LINE) : NULL;
    if (line == NULL) {
      close(fd);
      continue;
    }
    c->client[i] = (fl_control_client){ .fd = fd, .line = line };
  }
}

void fl_control_poll(fl_control *c, int timeout_ms) {
  if (c == NULL || c->busy) return;
  struct pollfd p[FL_CONTROL_CLIENTS + 1];
  size_t of[FL_CONTROL_CLIENTS + 1], n = 1;
  p[0] = (struct pollfd){ .fd = c->fd, .events = POLLIN };
  for (size_t i = 0; i < FL_CONTROL_CLIENTS; i++) {
    if (c->client[i].fd < 0) continue;
    of[n] = i;
    p[n++] = (struct pollfd){ .fd = c->client[i].fd, .events = POLLIN };
  }
  if (poll(p, (nfds_t)n, timeout_ms) <= 0) return;
  c->busy = true;
  for (size_t k = 1; k < n; k++)
    if (p[k].revents != 0) receive(c, &c->client[of[k]]);
  if (p[0].revents != 0) accept_clients(c);
  c->busy = false;
  for (size_t i = 0; i < FL_CONTROL_CLIENTS; i++)
    if (c->client[i].dead) client_close(&c->client[i]);
}
