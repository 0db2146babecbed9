/* fake_openai.c - a chat-completions server that behaves, or misbehaves, as its argument says. It
 * prints its address and answers until it is killed, every connection in a process of its own.
 *
 * Answers are spelled one character a token: in a byte-level vocabulary each is a token. Ids are
 * those of the embedded model. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static const char question[] = "Who is the keeper of the lamp?", answer[] = "Peter Fel is.";

typedef struct shared { /* by all connections */
  atomic_int n, here;
} shared;

static void send_all(int fd, const char *data, size_t n) {
  while (n > 0) {
    ssize_t sent = write(fd, data, n);
    if (sent <= 0) _exit(0);
    data += sent;
    n -= (size_t)sent;
  }
}

static void reply(int fd, int status, const char *extra, const char *body, size_t claimed) {
  char head[256];
  int n = snprintf(head, sizeof head,
                   "HTTP/1.1 %d Said\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                   "Connection: close\r\n%s\r\n",
                   status, claimed, extra);
  send_all(fd, head, (size_t)n);
  send_all(fd, body, strlen(body));
}

/* Head and body; the body begins at *body. */
static size_t read_request(int fd, char *buf, size_t room, char **body) {
  size_t n = 0;
  *body = NULL;
  while (n + 1 < room) {
    ssize_t got = read(fd, buf + n, room - 1 - n);
    if (got <= 0) break;
    n += (size_t)got;
    buf[n] = '\0';
    char *end = strstr(buf, "\r\n\r\n"), *len = strstr(buf, "Content-Length: ");
    if (end == NULL || len == NULL) continue;
    *body = end + 4;
    if (n - (size_t)(*body - buf) >= strtoul(len + 16, NULL, 10)) break;
  }
  return n;
}

static bool is(const char *mode, const char *name) { return strcmp(mode, name) == 0; }

/* One character as an entry; a second alternative behind the first. */
static void entry(FILE *f, const char *mode, char c, bool first) {
  if (is(mode, "nameless") && c == 'F') { /* half of a character, say */
    fprintf(f, ",{\"token\":\"\",\"logprob\":-0.25,\"bytes\":null,\"top_logprobs\":[]}");
    return;
  }
  const char *token = is(mode, "wrongtoken") ? "\\u2603snow" : NULL;
  char own[2] = { c, '\0' };
  double p = is(mode, "badprob") ? 5 : -0.25;
  fprintf(f, "%s{\"token\":\"%s\",\"logprob\":%g,\"bytes\":", first ? "" : ",", token ? token : own,
          p);
  if (token || is(mode, "nobytes")) fprintf(f, "null");
  else fprintf(f, "[%d]", is(mode, "badbytes") ? 999 : (unsigned char)c);
  if (is(mode, "badid")) fprintf(f, ",\"id\":7");
  if (is(mode, "ids")) fprintf(f, ",\"id\":%d", c == ' ' ? 220 : c - '!');
  fprintf(f,
          ",\"top_logprobs\":[{\"token\":\"%s\",\"logprob\":%g},"
          "{\"token\":\"%c\",\"logprob\":-2}",
          token ? token : own, p, c == 'x' ? 'y' : 'x');
  if (is(mode, "manyprobs"))
    for (int i = 0; i < 5000; i++) fprintf(f, ",{\"token\":\"%c\",\"logprob\":-1}", 'a' + i % 26);
  fprintf(f, "]}");
}

static void completion(int fd, const char *mode, bool bot_b) {
  char *text;
  size_t len;
  FILE *f = open_memstream(&text, &len);
  const char *said = bot_b ? answer : question;
  fprintf(f,
          "{\"choices\":[{\"index\":0,\"finish_reason\":\"%s\",\"message\":"
          "{\"role\":\"assistant\",\"content\":\"%s\"}",
          is(mode, "cut") ? "length" : "stop",
          bot_b && is(mode, "spell") ? "Something else." : said);
  if (bot_b && !is(mode, "noprobs")) {
    fprintf(f, ",\"logprobs\":{\"content\":[");
    for (const char *c = said; *c; c++) entry(f, mode, *c, c == said);
    if (is(mode, "listsend")) /* as llama-cpp-python does */
      fprintf(f, ",{\"token\":\"\",\"logprob\":-0.5,\"bytes\":null,\"top_logprobs\":["
                 "{\"token\":\"\",\"logprob\":-0.5},{\"token\":\"x\",\"logprob\":-1}]}");
    /* As llama.cpp does: control tokens are spelled as nothing, with their ids. */
    if (is(mode, "ids"))
      fprintf(f, ",{\"id\":2045,\"token\":\"\",\"bytes\":[],\"logprob\":-0.1,\"top_logprobs\":["
                 "{\"id\":2045,\"token\":\"\",\"bytes\":[],\"logprob\":-0.1},"
                 "{\"id\":87,\"token\":\"x\",\"bytes\":[120],\"logprob\":-3},"
                 "{\"id\":2044,\"token\":\"\",\"bytes\":[],\"logprob\":-4}]}");
    fprintf(f, "]}");
  }
  fprintf(f, "}]%s}", is(mode, "otherprompt") ? ",\"usage\":{\"prompt_tokens\":7}" : "");
  fclose(f);
  if (is(mode, "truncated")) text[len * 2 / 3] = '\0';
  reply(fd, 200, "", text, strlen(text) + (is(mode, "short") ? 100 : 0));
  free(text);
}

static void deep(int fd) {
  static char text[200001];
  memset(text, '[', sizeof text - 1);
  reply(fd, 200, "", text, sizeof text - 1);
}

static void endless(int fd) {
  static char text[65536];
  memset(text, ' ', sizeof text - 1);
  reply(fd, 200, "", "", (size_t)1 << 40);
  for (;;) send_all(fd, text, sizeof text - 1);
}

static void serve(int fd, const char *mode, shared *s) {
  static char buf[1 << 20];
  char *body;
  if (read_request(fd, buf, sizeof buf, &body) == 0 || body == NULL) return;
  int n = atomic_fetch_add(&s->n, 1);
  if (strncmp(buf, "POST /tokenize ", 15) == 0) {
    const char *ids = "{\"tokens\":[1,2,3]}";
    if (is(mode, "othertok")) reply(fd, 200, "", ids, strlen(ids));
    else reply(fd, 404, "", "{}", 2);
    return;
  }
  if (is(mode, "hang"))
    for (;;) pause();
  if (is(mode, "meet")) { /* answers come only once two are here */
    atomic_fetch_add(&s->here, 1);
    while (atomic_load(&s->here) < 2) usleep(1000);
  }
  if (is(mode, "key") && strstr(buf, "Authorization: Bearer open sesame\r\n") == NULL &&
      strstr(buf, "Authorization: Bearer sesame\r\n") == NULL)
    reply(fd, 401, "", "{\"error\":\"who is it?\"}", 22);
  else if (is(mode, "busy") && n % 3 != 0) reply(fd, 429, "Retry-After: 0\r\n", "{}", 2);
  else if (is(mode, "flaky") && n % 2 == 0) reply(fd, 503, "", "{}", 2);
  else if (is(mode, "broken")) reply(fd, 500, "", "oh \x01 dear", 9);
  else if (is(mode, "redirect")) reply(fd, 302, "Location: file:///etc/passwd\r\n", "", 0);
  else if (is(mode, "words")) reply(fd, 200, "", "hello", 5);
  else if (is(mode, "empty")) reply(fd, 200, "", "", 0);
  else if (is(mode, "nochoices")) reply(fd, 200, "", "{\"choices\":[]}", 14);
  else if (is(mode, "deep")) deep(fd);
  else if (is(mode, "endless")) endless(fd);
  else completion(fd, mode, strstr(body, "keeper of the lamp") != NULL);
}

int main(int argc, char **argv) {
  struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  socklen_t len = sizeof at;
  shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (argc != 2 || s == MAP_FAILED || listener < 0 ||
      bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 64) != 0 ||
      getsockname(listener, (struct sockaddr *)&at, &len) != 0)
    return 1;
  signal(SIGCHLD, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  printf("http://127.0.0.1:%d\n", ntohs(at.sin_port));
  fflush(stdout);
  for (;;) {
    int fd = accept(listener, NULL, NULL);
    if (fd < 0) continue;
    pid_t child = fork();
    if (child == 0) {
      close(listener);
      alarm(60); /* a hanging one does not outlive the test for long */
      serve(fd, argv[1], s);
      _exit(0);
    }
    close(fd);
  }
}
