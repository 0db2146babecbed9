/* control.c - the non-blocking client of the control socket. */
#include "tui/control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"

enum { REPLY_MAX = 4 << 20 };

static void fail(tui_link *l, const char *text) {
  if (l->state == TUI_LINK_WAITING) close(l->fd);
  l->state = TUI_LINK_FAILED;
  snprintf(l->error, sizeof l->error, "%s", text);
}

/* The address: "control" in the folder or, where that is missing or its path too long for an
 * address, what the file "control.path" names. */
static bool address_of(struct sockaddr_un *out, const char *dir) {
  *out = (struct sockaddr_un){ .sun_family = AF_UNIX };
  int n = snprintf(out->sun_path, sizeof out->sun_path, "%s/control", dir);
  if (n > 0 && (size_t)n < sizeof out->sun_path && fl_fs_exists(out->sun_path)) return true;
  char *name = fl_fs_join(dir, "control.path");
  fl_buf text = { 0 };
  bool ok = name && fl_fs_read(&text, name, sizeof out->sun_path, NULL) == FL_OK;
  while (ok && text.len && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == ' '))
    text.data[--text.len] = '\0';
  ok = ok && text.len > 0 && text.len < sizeof out->sun_path && text.data[0] == '/';
  if (ok) memcpy(out->sun_path, text.data, text.len + 1);
  fl_buf_release(&text);
  fl_free(name);
  return ok;
}

void tui_link_start(tui_link *l, const char *dir, fl_json *request) {
  tui_link_close(l);
  l->absent = false;
  l->sent = 0;
  fl_buf_reset(&l->in);
  fl_buf_reset(&l->out);
  if (request) fl_json_print(&l->out, request, false);
  fl_buf_putc(&l->out, '\n');
  bool whole = request && !l->out.oom;
  fl_json_free(request);
  struct sockaddr_un a;
  if (!whole) {
    fail(l, "no memory for the request");
    return;
  }
  if (!address_of(&a, dir)) {
    l->absent = true;
    fail(l, "no trainer or server is running on this fleet");
    return;
  }
  l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (l->fd < 0) {
    fail(l, strerror(errno));
    return;
  }
  l->state = TUI_LINK_WAITING;
  if (connect(l->fd, (struct sockaddr *)&a, sizeof a) == 0 || errno == EINPROGRESS) return;
  l->absent = errno == ECONNREFUSED || errno == ENOENT;
  fail(l, l->absent         ? "nobody listens at the control socket: the trainer is gone"
          : errno == EAGAIN ? "the trainer is busy; try again"
          : errno == EACCES ? "the control socket belongs to another user"
                            : strerror(errno));
}

static bool send_some(tui_link *l) {
  while (l->sent < l->out.len) {
    ssize_t n = send(l->fd, l->out.data + l->sent, l->out.len - l->sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN || errno == EINPROGRESS || errno == ENOTCONN;
    l->sent += (size_t)n;
  }
  return true;
}

/* One line of a reply. */
static void take(tui_link *l, const char *text, size_t len, tui_link_line *line, void *ctx) {
  fl_json *reply = NULL;
  bool ok = false;
  const char *error = NULL;
  if (fl_json_parse(&reply, text, len, NULL) != FL_OK || !fl_json_is_obj(reply)) {
    fail(l, "the reply is not JSON; is it a trainer that listens there?");
  } else if (fl_json_get_bool(reply, "ok", &ok)) {
    close(l->fd);
    l->state = TUI_LINK_DONE;
    if (!ok) {
      fl_json_get_str(reply, "error", &error);
      l->state = TUI_LINK_FAILED;
      snprintf(l->error, sizeof l->error, "%s", error ? error : "the trainer refused");
    }
    line(ctx, reply, true);
  } else {
    line(ctx, reply, false);
  }
  fl_json_free(reply);
}

static void take_lines(tui_link *l, tui_link_line *line, void *ctx) {
  size_t start = 0;
  while (l->state == TUI_LINK_WAITING && start < l->in.len) {
    const char *nl = memchr(l->in.data + start, '\n', l->in.len - start);
    if (!nl) break;
    size_t end = (size_t)(nl - l->in.data);
    take(l, l->in.data + start, end - start, line, ctx);
    start = end + 1;
  }
  if (start > 0) {
    memmove(l->in.data, l->in.data + start, l->in.len - start);
    l->in.len -= start;
  }
  if (l->state == TUI_LINK_WAITING && l->in.len > REPLY_MAX) fail(l, "the reply is too long");
}

bool tui_link_poll(tui_link *l, tui_link_line *line, void *ctx) {
  if (l->state != TUI_LINK_WAITING) return false;
  /* a listener may refuse before it has read the request: its reply is read all the same */
  bool broken = !send_some(l), changed = broken;
  char block[8192];
  /* a bounded number of blocks, so that a flood of tokens does not stop the screen */
  for (int i = 0; i < 32 && l->state == TUI_LINK_WAITING; i++) {
    ssize_t n = recv(l->fd, block, sizeof block, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == ENOTCONN)) break;
    changed = true;
    if (n <= 0) {
      fail(l, "the trainer closed the connection");
      break;
    }
    fl_buf_append(&l->in, block, (size_t)n);
    if (l->in.oom) fail(l, "no memory for the reply");
    else take_lines(l, line, ctx);
  }
  if (broken && l->state == TUI_LINK_WAITING) fail(l, "the trainer closed the connection");
  return changed;
}

short tui_link_events(const tui_link *l) {
  if (l->state != TUI_LINK_WAITING) return 0;
  return (short)(POLLIN | (l->sent < l->out.len ? POLLOUT : 0));
}

void tui_link_close(tui_link *l) {
  if (l->state == TUI_LINK_WAITING) close(l->fd);
  l->state = TUI_LINK_IDLE;
  l->error[0] = '\0';
}

void tui_link_release(tui_link *l) {
  tui_link_close(l);
  fl_buf_release(&l->out);
  fl_buf_release(&l->in);
}
