/* prometheus.c - /metrics in Prometheus' text format. Counters only grow; names end in their unit
 * or in _total. */
#include <stdio.h>

#include "base/clock.h"
#include "http/route.h"

static void put(fl_buf *b, const char *name, const char *kind, const char *help, double v) {
  fl_buf_printf(b, "# HELP flotilla_%s %s\n# TYPE flotilla_%s %s\nflotilla_%s %.17g\n", name, help,
                name, kind, name, v);
}

static void put_replies(fl_buf *b, fl_tallies *t) {
  fl_buf_puts(b, "# HELP flotilla_http_replies_total Replies by route and class of status.\n"
                 "# TYPE flotilla_http_replies_total counter\n");
  for (size_t i = 0; i < FL_ROUTES; i++)
    for (int c = 1; c < 6; c++) {
      const unsigned long long n = atomic_load(&t->replies[i][c]);
      if (n > 0)
        fl_buf_printf(b, "flotilla_http_replies_total{route=\"%s\",status=\"%dxx\"} %llu\n",
                      fl_route_name(i), c, n);
    }
}

static void put_engine(fl_buf *b, const fl_engine_stats *s) {
  put(b, "slots", "gauge", "Conversations that can be answered at once.", (double)s->slots);
  put(b, "slots_busy", "gauge", "Of them busy.", (double)s->slots_busy);
  put(b, "queue_depth", "gauge", "Requests that wait for a slot.", (double)s->queued);
  put(b, "documents", "gauge", "Documents of the fleet.", (double)s->docs);
  put(b, "generation", "gauge", "Generation of the fleet in use.", (double)s->generation);
  put(b, "jobs_done_total", "counter", "Answers made.", (double)s->jobs_done);
  put(b, "jobs_refused_total", "counter", "Requests refused by the engine.",
      (double)s->jobs_refused);
  put(b, "jobs_cancelled_total", "counter", "Answers cancelled.", (double)s->jobs_cancelled);
  put(b, "jobs_failed_total", "counter", "Answers that failed.", (double)s->jobs_failed);
  put(b, "prompt_tokens_total", "counter", "Tokens of prompts.", (double)s->prompt_tokens);
  put(b, "cached_tokens_total", "counter", "Of them found in a slot.", (double)s->cached_tokens);
  put(b, "completion_tokens_total", "counter", "Tokens of answers.", (double)s->completion_tokens);
  put(b, "drafted_tokens_total", "counter", "Tokens drafted by speculation.", (double)s->drafted);
  put(b, "accepted_tokens_total", "counter", "Of them accepted.", (double)s->accepted);
  put(b, "steps_total", "counter", "Passes of the model.", (double)s->steps);
  put(b, "reloads_total", "counter", "Times a new generation was taken over.", (double)s->reloads);
  put(b, "spills_total", "counter", "Slots written to disk.", (double)s->spills);
  put(b, "spills_failed_total", "counter", "Slots that could not be written.",
      (double)s->spills_failed);
  put(b, "restores_total", "counter", "Slots read back.", (double)s->restores);
  put(b, "kv_bytes", "gauge", "Memory of keys and values.", (double)s->kv_bytes);
  put(b, "weight_bytes", "gauge", "Memory of packed weights.", (double)s->weight_bytes);
}

void fl_prometheus(fl_http *e, fl_buf *out) {
  fl_engine_stats s = { 0 };
  fl_tallies *t = &e->tallies;
  fl_engine_stats_get(e->engine, &s);
  put_engine(out, &s);
  put_replies(out, t);
  put(out, "connections", "gauge", "Open connections.", (double)atomic_load(&t->connections));
  put(out, "streams", "gauge", "Streams being sent.", (double)atomic_load(&t->streams));
  put(out, "answers_total", "counter", "Answers delivered whole.",
      (double)atomic_load(&t->answers));
  put(out, "answer_seconds_total", "counter", "Seconds of these requests.",
      (double)atomic_load(&t->seconds_us) * 1e-6);
  put(out, "answer_ttft_seconds_total", "counter", "Seconds to their first tokens.",
      (double)atomic_load(&t->ttft_us) * 1e-6);
  put(out, "answer_queue_seconds_total", "counter", "Seconds they waited for slots.",
      (double)atomic_load(&t->queue_us) * 1e-6);
  put(out, "events_lost_total", "counter", "Events that the event log could not take.",
      (double)fl_events_lost(e->log));
  put(out, "resident_memory_bytes", "gauge", "Resident memory of the process.",
      (double)fl_rss_bytes());
}
