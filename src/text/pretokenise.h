/* pretokenise.h - cutting text into the pieces inside which byte-level BPE merges. Written by hand
 * over code point classes; each scanner states the published regular expression it stands for.
 * Private to the text layer. */
#ifndef FL_TEXT_PRETOKENISE_H
#define FL_TEXT_PRETOKENISE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum fl_pre { FL_PRE_QWEN2, FL_PRE_LLAMA3, FL_PRE_SMOLLM, FL_PRE_GPT2 } fl_pre;

/* By the name in tokenizer.ggml.pre; false if it is not one of ours. */
bool fl_pre_by_name(fl_pre *out, const char *name, size_t len);
/* "qwen2", "llama3", "smollm", "gpt2". */
const char *fl_pre_name(fl_pre pre);
/* Byte length of the first piece of s[0..len): 0 only when len is 0. The pieces of a text are the
 * same whatever buffer it lies in, but not when it is cut: pass all that is left. */
size_t fl_pretokenise(fl_pre pre, const char *s, size_t len);

#endif
