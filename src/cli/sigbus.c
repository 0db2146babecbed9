/* sigbus.c - see sigbus.h. The handler asks /proc/self/maps which file lies at the address;
 * it calls nothing but what may be called in a handler. */
#include "cli/sigbus.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 4200, STATUS_INPUT = 4 };

static void put(const char *text) {
  ssize_t unused = write(STDERR_FILENO, text, strlen(text));
  (void)unused;
}

static const char *parse_hex(const char *s, uintptr_t *out) {
  for (*out = 0;; s++) {
    if (*s >= '0' && *s <= '9') *out = *out * 16 + (uintptr_t)(*s - '0');
    else if (*s >= 'a' && *s <= 'f') *out = *out * 16 + (uintptr_t)(*s - 'a' + 10);
    else return s;
  }
}

/* The path in a line "FIRST-END MODE OFFSET DEV INODE PATH" that holds the address; NULL. */
static const char *path_at(const char *line, uintptr_t address) {
  uintptr_t first, end;
  const char *s = parse_hex(line, &first);
  if (*s != '-') return NULL;
  parse_hex(s + 1, &end);
  return address >= first && address < end ? strchr(line, '/') : NULL;
}

static bool find_path(char line[LINE], const char **path, uintptr_t address) {
  int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  size_t n = 0;
  char c;
  *path = NULL;
  while (fd >= 0 && *path == NULL && read(fd, &c, 1) == 1) {
    if (c != '\n') {
      if (n + 1 < LINE) line[n++] = c;
      continue;
    }
    line[n] = '\0';
    n = 0;
    *path = path_at(line, address);
  }
  if (fd >= 0) close(fd);
  return *path != NULL;
}

static atomic_flag said = ATOMIC_FLAG_INIT; /* several threads may read the file at once */

static void on_bus(int sig, siginfo_t *info, void *context) {
  char line[LINE];
  const char *path;
  (void)sig;
  (void)context;
  while (atomic_flag_test_and_set(&said)) pause();
  put("flotilla: ");
  put(find_path(line, &path, (uintptr_t)info->si_addr) ? path : "a file in use");
  put(": was cut short, or its disk failed, while it was in use; restore it and repeat, what was "
      "saved is whole\n");
  _exit(STATUS_INPUT);
}

void lost_file_catch(void) {
  struct sigaction sa = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO };
  sigemptyset(&sa.sa_mask);
  sigaction(SIGBUS, &sa, NULL);
}
