/* spm.h - SentencePiece-like pieces: U+2581 for a blank, user-defined pieces kept whole, characters
 * merged, what has no piece spelt in byte tokens. Merging goes by score (llama, gemma 1-3) or by a
 * ranked list (gemma4). Private to the text layer; immutable once initialised. */
#ifndef FL_TEXT_SPM_H
#define FL_TEXT_SPM_H

#include "base/buf.h"
#include "text/bpe.h"
#include "text/merge.h"
#include "text/vocab.h"

typedef struct fl_spm {
  const fl_vocab *vocab;
  const fl_bpe *bpe;    /* NULL: merging by score */
  int32_t byte_id[256]; /* "<0xNN>", -1 if missing */
  int32_t unknown;      /* -1 if none */
  bool bytes_whole;     /* all 256 byte tokens exist */
  /* Where no piece that a merge may make goes across, text may be cut first, which bounds the
   * length of what is merged: before a blank that follows a character whose last byte is not in
   * `joined` (a blank's never cuts), and, with cut_break, between a line break and another
   * character. */
  bool joined[256];
  bool cut_break;
} fl_spm;

/* `unknown` is an id or -1. Scores are needed when `bpe` is NULL. */
int fl_spm_init(fl_spm *s, const fl_vocab *v, const fl_bpe *bpe, int32_t unknown, const char *path,
                fl_err *err);
/* Appends the ids of text[0..len), in which blanks are U+2581 already. `kept`: pieces that stand
 * whole wherever they occur (NULL: none). */
int fl_spm_encode(const fl_spm *s, fl_merger *m, const fl_markers *kept, fl_ids *out,
                  const char *text, size_t len);

#endif
