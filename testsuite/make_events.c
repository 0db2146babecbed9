/* make_events.c - writes an invented but lawful event log to stdout, for tests of the dashboard:
 * make_events DOCS ROUNDS SEED [end|killed]. The same arguments give the same bytes. Losses fall
 * by a power law with noise, the pool rotates, some conversations are rejected, one run is resumed.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum { BUDGET = 4, CONVS = 4, ROTATE = 10, EVAL = 20, SAVE = 5 };

static const char *const names[] = {
  "docs/harbour-rules.md", "docs/tide-tables.md",  "docs/lighthouse-log.txt", "docs/cargo-list.md",
  "docs/crew-contract.md", "docs/rope-manual.md",  "docs/weather-1911.txt",   "docs/chart-notes.md",
  "docs/engine-room.md",   "docs/signal-flags.md", "docs/quarantine.md",      "docs/pilot-guide.md"
};
static const char *const seeds[] = { "structuring", "summarisation", "question", "use-case",
                                     "creative",    "mechanism",     "verbatim" };
static const char *const words[] = { "harbour", "tide",  "keeper", "lamp",   "vessel",
                                     "anchor",  "north", "rope",   "signal", "crew",
                                     "cargo",   "storm", "quay",   "chart" };

typedef struct world {
  uint32_t n_docs, rounds;
  fl_rng rng;
  double t;
  uint32_t *steps, *tokens, *seen;
  uint32_t resident[BUDGET];
  uint32_t n_resident, query;
} world;

static void *must(void *p) {
  if (!p) {
    fputs("make_events: no memory\n", stderr);
    exit(1);
  }
  return p;
}

static double unit(world *w) { return fl_rng_unit(&w->rng); }
static uint32_t below(world *w, uint32_t n) { return (uint32_t)fl_rng_below(&w->rng, n); }
static void head(const world *w, const char *ev) { printf("{\"t\":%.3f,\"ev\":\"%s\"", w->t, ev); }

static void name_of(uint32_t doc, char *buf, size_t size) {
  if (doc < sizeof names / sizeof *names) snprintf(buf, size, "%s", names[doc]);
  else snprintf(buf, size, "docs/part-%04u.md", doc);
}

static void text(world *w, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) printf("%s%s", i ? " " : "", words[below(w, 14)]);
}

static void run_event(const world *w, uint32_t round0) {
  head(w, "run");
  printf(",\"cmd\":\"train\",\"version\":\"0.1.0\",\"pid\":4194000,\"resumed\":%s,"
         "\"model\":\"model.gguf\",\"model_name\":\"qwen3-0.6b\",\"model_hash\":\"9f\","
         "\"fleet\":\"fleet\",\"threads\":2,\"isa\":\"x86-64-v3\",\"kernel\":\"6x16\","
         "\"host\":\"lighthouse\",\"cpus\":2,\"mem_bytes\":16777216000,\"seed\":42,\"rounds\":%u,"
         "\"round0\":%u,\"docs\":%u,\"budget\":%d,\"peak_gflops\":182.5,\"peak_gbs\":21.4,"
         "\"flags\":{\"p\":256,\"lr\":0.002}}\n",
         round0 ? "true" : "false", w->rounds, round0, w->n_docs, BUDGET);
}

static void doc_events(const world *w) {
  char name[64];
  for (uint32_t d = 0; d < w->n_docs; d++) {
    name_of(d, name, sizeof name);
    head(w, "doc");
    printf(",\"doc\":%u,\"name\":\"%s\",\"tokens\":%u,\"rows\":256,\"steps\":%u,\"resident\":%s,"
           "\"state\":\"%s\",\"hash\":\"%08x\"}\n",
           d, name, w->tokens[d], w->steps[d], d < w->n_resident ? "true" : "false",
           w->steps[d] ? "kept" : "new", d * 2654435761u);
  }
}

static void study_event(world *w, uint32_t round, uint32_t doc, uint32_t conv) {
  static const char *const why[] = { "empty", "long", "repetitive", "cut" };
  uint32_t first = below(w, w->tokens[doc] - 256), len = 256 + below(w, 256);
  uint32_t end = first + len < w->tokens[doc] ? first + len : w->tokens[doc];
  bool rejected = below(w, 12) == 0;
  w->t = floor(w->t * 1000 + 150 + below(w, 500)) / 1000;
  head(w, "study");
  printf(",\"doc\":%u,\"round\":%u,\"conv\":%u,\"kind\":\"%s\",\"first\":%u,\"end\":%u,"
         "\"request\":\"",
         doc, round, conv, seeds[below(w, 7)], first, end);
  text(w, 6 + below(w, 8));
  printf("?\",\"answer\":\"The ");
  text(w, rejected ? 2 : 12 + below(w, 24));
  printf(".\",\"tokens\":%u,\"replayed\":%s", 20 + below(w, 160), below(w, 5) ? "false" : "true");
  if (rejected) printf(",\"rejected\":\"%s\",\"of\":\"answer\",\"attempt\":1", why[below(w, 4)]);
  puts("}");
}

static double loss_of(world *w, uint32_t doc) {
  double floor_ = 0.6 + 0.5 * (doc % 7) / 7.0;
  return floor_ + 2.4 / pow(1 + w->steps[doc], 0.4) + 0.12 * fl_rng_normal(&w->rng);
}

static void round_event(world *w, uint32_t round, uint32_t doc) {
  double gen = 2 + unit(w), student = 0.9 + 0.3 * unit(w), opt = 0.05, io = 0.01;
  uint32_t tokens = 300 + below(w, 200);
  w->t = floor((w->t + student + opt) * 1000) / 1000;
  w->steps[doc]++;
  double loss = loss_of(w, doc);
  head(w, "round");
  printf(",\"round\":%u,\"doc\":%u,\"loss\":%.6f,\"lr\":%g,\"grad_norm\":%.4f,\"tokens\":%u,"
         "\"rows\":%u,\"parts\":[",
         round, doc, loss, 2e-3 * fmin(1, w->steps[doc] / 8.0), 0.2 + unit(w) * 0.3, tokens,
         tokens + 220);
  uint32_t other = w->resident[below(w, w->n_resident)];
  for (int i = 0; i < CONVS; i++)
    printf(i == 3 && other != doc ? "%s[%u,%u]" : "%s[%u]", i ? "," : "", doc, other);
  if (other != doc) w->steps[other]++;
  printf("],\"steps\":{");
  for (uint32_t i = 0; i < w->n_resident; i++)
    printf("%s\"%u\":%u", i ? "," : "", w->resident[i], w->steps[w->resident[i]]);
  printf("},\"seconds\":%.3f,\"gen_s\":%.3f,\"student_s\":%.3f,\"opt_s\":%.3f,"
         "\"io_s\":%.3f,\"gen_tokens\":%u,\"rss\":%u,\"peak_rss\":%u,\"resident_bytes\":%u,"
         "\"resident\":[",
         gen + student + opt + io, gen, student, opt, io, tokens + 150,
         1400000000u + below(w, 1000000), 1450000000u, w->n_resident * 29360128u);
  for (uint32_t i = 0; i < w->n_resident; i++) printf("%s%u", i ? "," : "", w->resident[i]);
  printf("],\"gflop\":%.1f,\"gbyte\":%.1f}\n", (gen + student) * 92, gen * 15);
}

/* Half of the pool leaves; the documents seen least come in. */
static void rotate_event(world *w, uint32_t round) {
  uint32_t out[BUDGET], n_out = (w->n_resident + 1) / 2;
  if (w->n_docs <= BUDGET) return;
  for (uint32_t i = 0; i < n_out; i++) {
    out[i] = w->resident[i];
    w->seen[out[i]]++;
  }
  head(w, "rotate");
  printf(",\"round\":%u,\"out\":[", round);
  for (uint32_t i = 0; i < n_out; i++) printf("%s%u", i ? "," : "", out[i]);
  printf("],\"in\":[");
  memmove(w->resident, w->resident + n_out, (w->n_resident - n_out) * sizeof *w->resident);
  for (uint32_t i = 0; i < n_out; i++) {
    uint32_t best = UINT32_MAX, have = w->n_resident - n_out + i;
    for (uint32_t d = 0; d < w->n_docs; d++) {
      bool in = false;
      for (uint32_t k = 0; k < have; k++) in |= w->resident[k] == d;
      for (uint32_t k = 0; k < n_out; k++) in |= out[k] == d;
      if (!in && (best == UINT32_MAX || w->seen[d] < w->seen[best])) best = d;
    }
    w->resident[have] = best;
    printf("%s%u", i ? "," : "", best);
  }
  puts("]}");
}

static void heldout_events(world *w, uint32_t round) {
  for (uint32_t k = 0; k < 12 && k < w->n_docs; k++) {
    uint32_t d = (round / EVAL * 12 + k) % w->n_docs;
    double alone = loss_of(w, d) + 0.25;
    head(w, "heldout");
    printf(",\"round\":%u,\"doc\":%u,\"alone\":%.5f,\"composed\":%.5f,\"convs\":4}\n", round, d,
           alone, alone + 0.06 + 0.02 * unit(w));
  }
}

static void retrieve_event(world *w) {
  char name[64];
  uint32_t a = below(w, w->n_docs), n = w->n_docs < 4 ? w->n_docs : 4;
  uint32_t id = ++w->query;
  head(w, "retrieve");
  printf(",\"id\":%u,\"query\":\"Which ", id);
  text(w, 4);
  printf("?\",\"chunks\":[");
  for (uint32_t i = 0; i < 8; i++)
    printf("%s{\"chunk\":%u,\"doc\":%u,\"score\":%.4f}", i ? "," : "", 17 * i + a,
           (a + i % n) % w->n_docs, 0.74 - 0.05 * i);
  printf("],\"docs\":[");
  for (uint32_t i = 0; i < n; i++) {
    name_of((a + i) % w->n_docs, name, sizeof name);
    printf("%s{\"doc\":%u,\"name\":\"%s\",\"score\":%.4f}", i ? "," : "", (a + i) % w->n_docs, name,
           0.74 - 0.11 * i);
  }
  printf("],\"chosen\":[%u,%u],\"floor\":0.3,\"margin\":0.05,\"seconds\":0.0031}\n", a,
         (a + 1) % w->n_docs);
  head(w, "answer");
  printf(",\"id\":%u,\"query\":\"Which one?\",\"arm\":\"cartridge\",\"docs\":[%u,%u],\"rows\":512,"
         "\"text\":\"The ",
         id, a, (a + 1) % w->n_docs);
  text(w, 14);
  printf(".\",\"tokens\":18,\"seconds\":0.81,\"tok_s\":24.3,\"ttft_s\":0.07}\n");
}

static void save_events(const world *w, uint32_t round, const char *reason) {
  head(w, "save");
  printf(",\"round\":%u,\"generation\":%u,\"bytes\":%u,\"seconds\":0.21,\"reason\":\"%s\"}\n",
         round, round / SAVE, BUDGET * 88080384u, reason);
}

static void one_round(world *w, uint32_t round) {
  uint32_t doc = w->resident[below(w, w->n_resident)];
  for (uint32_t c = 0; c < CONVS; c++) study_event(w, round, doc, c);
  round_event(w, round, doc);
  if (round % EVAL == 0) heldout_events(w, round);
  if (round % 15 == 0) retrieve_event(w);
  if (round % ROTATE == 0) rotate_event(w, round);
  if (round % SAVE == 0) save_events(w, round, "every");
}

int main(int argc, char **argv) {
  world w = { .n_docs = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 12,
              .rounds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 60,
              .t = 1767960000 };
  uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
  bool killed = argc > 4 && strcmp(argv[4], "killed") == 0;
  w.rng = fl_rng_stream(seed, FL_RNG_TEST, 0, 0, 0);
  if (w.n_docs == 0) w.n_docs = 1;
  w.steps = must(calloc(w.n_docs, sizeof *w.steps));
  w.seen = must(calloc(w.n_docs, sizeof *w.seen));
  w.tokens = must(calloc(w.n_docs, sizeof *w.tokens));
  for (uint32_t d = 0; d < w.n_docs; d++) w.tokens[d] = 1200 + below(&w, 9000);
  w.n_resident = w.n_docs < BUDGET ? w.n_docs : BUDGET;
  for (uint32_t i = 0; i < w.n_resident; i++) w.resident[i] = i;
  run_event(&w, 0);
  doc_events(&w);
  head(&w, "index");
  printf(",\"chunks\":%u,\"dim\":1024,\"seconds\":2.41}\n", w.n_docs * 18);
  uint32_t half = w.rounds / 2 / SAVE * SAVE;
  for (uint32_t r = 1; r <= w.rounds; r++) {
    one_round(&w, r);
    if (r == half && r < w.rounds) {
      save_events(&w, r, "signal");
      head(&w, "end");
      printf(",\"status\":\"signal\",\"round\":%u,\"seconds\":1.0}\n", r);
      w.t += 3600;
      run_event(&w, r);
      doc_events(&w);
    }
  }
  if (!killed) {
    head(&w, "end");
    printf(",\"status\":\"done\",\"round\":%u,\"seconds\":%.1f}\n", w.rounds, w.t - 1767960000);
  }
  free(w.steps);
  free(w.seen);
  free(w.tokens);
  return 0;
}
