/* split.h - an answer's text taken apart while it grows: a leading <think> block, content, and
 * <tool_call> blocks (Qwen's convention).
 *
 * Marks may be cut anywhere between pieces: text that may yet be the beginning of a mark is held
 * back. A block that is no call of a declared tool comes back as content, marks and all. */
#ifndef FL_EDGE_SPLIT_H
#define FL_EDGE_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"

typedef enum fl_part { FL_PART_REASONING, FL_PART_CONTENT } fl_part;

typedef struct fl_split_sink {
  void *ctx;
  void (*text)(void *ctx, fl_part part, const char *s, size_t len);
  void (*call)(void *ctx, const char *name, const char *args, size_t len); /* args: JSON object */
  bool (*known)(void *ctx, const char *name); /* whether a tool of this name is declared */
} fl_split_sink;

typedef enum fl_split_state {
  FL_SPLIT_START,
  FL_SPLIT_REASONING,
  FL_SPLIT_GAP,
  FL_SPLIT_CONTENT,
  FL_SPLIT_CALL
} fl_split_state;

typedef struct fl_split {
  fl_split_sink sink;
  bool tools; /* calls are looked for */
  fl_split_state state;
  fl_buf held; /* what is not decided yet */
} fl_split;

void fl_split_init(fl_split *s, const fl_split_sink *sink, bool tools);
void fl_split_release(fl_split *s);
void fl_split_feed(fl_split *s, const char *text, size_t len);
void fl_split_finish(fl_split *s); /* no more text: everything held goes out */

#endif
