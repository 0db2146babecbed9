/* fuzz_request.c - whatever a client sends: the request parser, the three protocols, and what a
 * model may say to the output parser. The first byte says which; the rest is the text.
 *
 * Built in two ways. With libFuzzer (make fuzz-request CC=clang, see CONTRIBUTING.md) it is a
 * target. Otherwise main replays the corpus and mutations of it, always the same ones, so that the
 * suite has it under every sanitizer. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/rng.h"
#include "http/response.h"

static const fl_request_defaults defaults = {
  .sampling = { .temperature = 0, .top_p = 1, .repeat_penalty = 1 }, .max_new = 100, .tools = true
};

/* What must hold of every request that is taken. */
static void check_request(const fl_chat_request *r) {
  bool good = r->n_msgs > 0 && r->msgs[r->n_msgs - 1].role == FL_ROLE_USER && r->max_new > 0 &&
              r->sampling.temperature >= 0 && r->sampling.temperature <= 2 &&
              r->n_stop <= FL_REQUEST_STOPS && r->n_docs <= FL_REQUEST_DOCS &&
              r->top_logprobs <= FL_REQUEST_TOP_LOGPROBS;
  for (size_t i = 0; i < r->n_msgs; i++) good = good && strlen(r->msgs[i].text) <= r->msgs[i].len;
  if (!good) abort();
}

static void try_request(const fl_protocol *d, const char *text, size_t len) {
  fl_json *body = NULL;
  fl_api_request c = { 0 };
  fl_api_error f = { 0 };
  fl_buf out = { 0 };
  if (fl_json_parse(&body, text, len, NULL) != FL_OK) return;
  fl_request_init(&c, body, &defaults);
  int rc =
      fl_json_is_obj(body) ? d->parse(&c, &f) : fl_api_error_set(&f, 400, NULL, NULL, "no object");
  if (rc == FL_OK) rc = fl_request_extension(&c, &f);
  if (rc == FL_OK) rc = fl_request_finish(&c, &defaults, &f);
  if (rc == FL_OK) check_request(&c.chat);
  else fl_api_error_body(&out, &f, d->family, "id");
  if (rc != FL_OK && (f.status < 400 || f.status > 599 || out.len == 0)) abort();
  fl_buf_release(&out);
  fl_request_release(&c);
}

/* --- what a model says --- */

typedef struct heard {
  size_t text, calls;
} heard;

static void on_text(void *ctx, fl_part part, const char *s, size_t len) {
  heard *h = ctx;
  (void)part;
  h->text += len + (s == NULL);
}

static void on_call(void *ctx, const char *name, const char *args, size_t len) {
  heard *h = ctx;
  fl_json *v = NULL;
  if (strcmp(name, "f") != 0 || fl_json_parse(&v, args, len, NULL) != FL_OK) abort();
  fl_json_free(v);
  h->calls++;
}

static bool on_known(void *ctx, const char *name) {
  (void)ctx;
  return strcmp(name, "f") == 0;
}

/* Cut anywhere, an answer comes to the same. */
static heard split(const char *text, size_t len, size_t piece) {
  heard h = { 0 };
  fl_output_parser s;
  const fl_output_parser_sink sink = {
    .ctx = &h, .text = on_text, .call = on_call, .known = on_known
  };
  fl_output_parser_init(&s, &sink, true);
  for (size_t at = 0; at < len; at += piece)
    fl_output_parser_feed(&s, text + at, len - at < piece ? len - at : piece);
  fl_output_parser_finish(&s);
  fl_output_parser_release(&s);
  return h;
}

static void try_reply(const char *text, size_t len) {
  const heard whole = split(text, len, len > 0 ? len : 1), bytes = split(text, len, 1);
  if (whole.text != bytes.text || whole.calls != bytes.calls || whole.text > len) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static const fl_protocol *const protocols[] = { &fl_protocol_chat, &fl_protocol_responses,
                                                  &fl_protocol_messages };
  if (n == 0) return 0;
  char *text = fl_malloc(n - 1 > 0 ? n - 1 : 1); /* exact, so that a step over is seen */
  if (text == NULL) return 0;
  memcpy(text, data + 1, n - 1);
  if (data[0] % 4 < 3) try_request(protocols[data[0] % 4], text, n - 1);
  else try_reply(text, n - 1);
  fl_free(text);
  return 0;
}

#ifndef FL_LIBFUZZER
enum { MOST = 65536, FILES = 64 };

/* One change: a bit, a byte, a piece left out, doubled, or taken from another file. */
static size_t mutate(uint8_t *x, size_t n, const fl_buf *other, fl_rng *rng) {
  const size_t at = n > 0 ? (size_t)(fl_rng_unit(rng) * (double)n) : 0;
  size_t len = 1 + (size_t)(fl_rng_unit(rng) * 40), from;
  if (len > n - at) len = n - at;
  switch ((int)(fl_rng_unit(rng) * 6)) {
  case 0:
    if (n > 0) x[at] ^= (uint8_t)(1 << (int)(fl_rng_unit(rng) * 8));
    break;
  case 1:
    if (n > 0) x[at] = (uint8_t)(fl_rng_unit(rng) * 256);
    break;
  case 2:
    if (n > 0) x[at] = (uint8_t) "{}[]\",:\\0n-<"[(int)(fl_rng_unit(rng) * 12)];
    break;
  case 3: memmove(x + at, x + at + len, n - at - len); return n - len;
  case 4:
    if (n + len > MOST) break;
    memmove(x + at + len, x + at, n - at);
    return n + len;
  default:
    from = (size_t)(fl_rng_unit(rng) * (double)other->len);
    if (len > other->len - from) len = other->len - from;
    memcpy(x + at, other->data + from, len);
  }
  return n;
}

static void mutate_all(const fl_buf *file, size_t n_files, unsigned rounds) {
  uint8_t *x = fl_malloc(MOST);
  if (x == NULL) exit(99);
  for (unsigned i = 0; i < rounds; i++) {
    fl_rng rng = fl_rng_stream(1, FL_RNG_TEST, i, 2, 0);
    const fl_buf *a = &file[i % n_files];
    const fl_buf *b = &file[(size_t)(fl_rng_unit(&rng) * (double)n_files)];
    size_t n = a->len;
    memcpy(x, a->data, n);
    for (int k = 1 + (int)(fl_rng_unit(&rng) * 8); k > 0; k--) n = mutate(x, n, b, &rng);
    (void)LLVMFuzzerTestOneInput(x, n);
  }
  fl_free(x);
}

int main(int argc, char **argv) {
  const char *src = getenv("SRCDIR");
  const unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 20000;
  char *dir = fl_fs_join(src != NULL ? src : ".", "testsuite/corpus/request"), **names = NULL;
  fl_buf file[FILES] = { 0 };
  size_t n = 0, n_files = 0;
  fl_err err = { 0 };
  if (dir == NULL || fl_fs_list(&names, &n, dir, &err) != FL_OK) {
    fprintf(stderr, "%s\n", err.text);
    return 99;
  }
  for (size_t i = 0; i < n && n_files < FILES; i++) {
    char *path = fl_fs_join(dir, names[i]);
    if (fl_fs_read(&file[n_files], path, MOST, NULL) == FL_OK && file[n_files].len > 0) {
      (void)LLVMFuzzerTestOneInput((const uint8_t *)file[n_files].data, file[n_files].len);
      n_files++;
    }
    fl_free(path);
  }
  if (n_files == 0) return 99;
  mutate_all(file, n_files, rounds);
  for (size_t i = 0; i < n_files; i++) fl_buf_release(&file[i]);
  fl_fs_list_free(names, n);
  fl_free(dir);
  printf("%zu files and %u mutations\n", n_files, rounds);
  return 0;
}
#endif
