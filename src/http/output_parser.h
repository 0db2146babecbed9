/* output_parser.h - an answer's text taken apart while it grows: a leading <think> block, content,
 * and <tool_call> blocks (Qwen's convention).
 *
 * Marks may be cut anywhere between pieces: text that may yet be the beginning of a mark is held
 * back. A block that is no call of a declared tool is passed on as content, with its tags. */
#ifndef FL_HTTP_OUTPUT_PARSER_H
#define FL_HTTP_OUTPUT_PARSER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"

typedef enum fl_part { FL_PART_REASONING, FL_PART_CONTENT } fl_part;

typedef struct fl_output_parser_sink {
  void *ctx;
  void (*text)(void *ctx, fl_part part, const char *s, size_t len);
  void (*call)(void *ctx, const char *name, const char *args, size_t len); /* args: JSON object */
  bool (*known)(void *ctx, const char *name); /* whether a tool of this name is declared */
} fl_output_parser_sink;

typedef enum fl_output_parser_state {
  FL_PARSER_START,
  FL_PARSER_REASONING,
  FL_PARSER_GAP,
  FL_PARSER_CONTENT,
  FL_PARSER_CALL
} fl_output_parser_state;

typedef struct fl_output_parser {
  fl_output_parser_sink sink;
  bool tools; /* calls are looked for */
  fl_output_parser_state state;
  fl_buf held; /* what is not decided yet */
} fl_output_parser;

void fl_output_parser_init(fl_output_parser *s, const fl_output_parser_sink *sink, bool tools);
void fl_output_parser_release(fl_output_parser *s);
void fl_output_parser_feed(fl_output_parser *s, const char *text, size_t len);
void fl_output_parser_finish(fl_output_parser *s); /* no more text: everything held goes out */

#endif
