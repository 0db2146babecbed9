/* listen.c - see listen.h. */
#include "http/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/server.h"

/* Connections that the kernel has accepted and the server has not. Beyond them a client believes
 * that it is connected while the server does not know it, and what it sends arrives only after
 * seconds of retransmission. */
enum { BACKLOG = 4096 };

bool fl_server_is_loopback(const char *host) {
  return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
         strcmp(host, "::1") == 0;
}

static int try_one(const struct addrinfo *a) {
  const int on = 1;
  const int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
  if (fd < 0) return -1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) return fd;
  const int why = errno;
  close(fd);
  errno = why;
  return -1;
}

static uint16_t port_of(int fd) {
  struct sockaddr_storage a = { 0 };
  socklen_t len = sizeof a;
  if (getsockname(fd, (struct sockaddr *)&a, &len) != 0) return 0;
  if (a.ss_family == AF_INET6) return ntohs(((const struct sockaddr_in6 *)&a)->sin6_port);
  return ntohs(((const struct sockaddr_in *)&a)->sin_port);
}

int fl_listen(int *fd, const char *host, uint16_t *port, fl_err *err) {
  const struct addrinfo want = { .ai_socktype = SOCK_STREAM,
                                 .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
  struct addrinfo *list = NULL;
  char service[8];
  int got = -1;
  snprintf(service, sizeof service, "%u", (unsigned)*port);
  const int rc = getaddrinfo(host, service, &want, &list);
  if (rc != 0)
    return fl_fail(err, FL_EUSAGE, "--host %s: %s; give an address of this machine", host,
                   gai_strerror(rc));
  for (const struct addrinfo *a = list; got < 0 && a != NULL; a = a->ai_next) got = try_one(a);
  const int why = errno;
  freeaddrinfo(list);
  if (got < 0)
    return fl_fail(err, FL_EFAIL,
                   "--host %s --port %s: cannot listen there: %s; choose another port or end what "
                   "listens on it",
                   host, service, strerror(why));
  *fd = got;
  *port = port_of(got);
  return FL_OK;
}
