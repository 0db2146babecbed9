/* lexical.h - an index of words: which passages of which documents hold the words of a question.
 *
 * One SQLite database (index.g*.sqlite) with an FTS5 table of passages (passage.h): their text, the
 * name of their document and their headings, in words (words.h) reduced to their stems by Porter's
 * rules for English; identifiers and numbers are words as a whole too. A document is known by its
 * id in the fleet and by the hash of its text, so that one that has changed is replaced alone.
 *
 * Scores are BM25F: a word counts by how few passages hold it, and by how often it stands in the
 * passage beside the passage's length; in a name or heading it counts more. A document's score is
 * its best passage's, and a share of what its other passages say of words that the best one lacks.
 * `full` is what a passage of nothing but the question's words would reach: score / full is
 * comparable between questions.
 *
 * A file is written once and never changed; several readers may have it open. One thread at a time
 * may use an fl_lexical.
 */
#ifndef FL_RETRIEVAL_LEXICAL_H
#define FL_RETRIEVAL_LEXICAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct fl_lexical fl_lexical;

typedef struct fl_lexical_doc {
  uint32_t id;
  const char *name, *hash; /* borrowed */
} fl_lexical_doc;

/* Opens a file that fl_lexical_build has written. FL_ENOENT, or FL_EINPUT with a sentence when it
 * is damaged or by another version. */
int fl_lexical_open(fl_lexical **out, const char *path, fl_err *err);
void fl_lexical_close(fl_lexical *x);
/* Whether it holds exactly these documents with these texts. */
bool fl_lexical_is_current(fl_lexical *x, const fl_lexical_doc *docs, size_t n);

typedef struct fl_lexical_source {
  const fl_lexical_doc *docs;
  size_t n;
  /* Appends the text of docs[i]. What it returns other than FL_OK ends the building. */
  int (*text)(void *ctx, size_t i, fl_buf *out, fl_err *err);
  void *ctx;
} fl_lexical_source;

/* Writes the index of these documents, synced. from: an index of before; documents that it has are
 * taken over without asking for their text. NULL, or one that cannot be used: all are read.
 * path NULL: into memory, and *out is that index. Else out may be NULL. A failure leaves no file.
 */
int fl_lexical_build(fl_lexical **out, const char *path, const char *from,
                     const fl_lexical_source *source, fl_err *err);

enum { FL_LEXICAL_WORDS = 64 }; /* of a question, the first so many */

typedef struct fl_lexical_hit {
  uint32_t doc;     /* id */
  uint32_t passage; /* its number in the document; of a document's hit, the best one */
  double score;
  uint64_t words; /* bit i: question word i matched in the passage; of a document, anywhere */
} fl_lexical_hit;

typedef struct fl_lexical_hits {
  fl_lexical_hit *passage, *doc; /* best first */
  size_t n_passages, n_docs;
  size_t matched; /* documents that hold a word at all */
  char **word;    /* of the question, as they were looked for */
  size_t n_words;
  double full; /* see above; 0 when no word of it is in the index */
} fl_lexical_hits;

/* The best n_passages passages and n_docs documents. A question of stop words alone is searched
 * with them. FL_EINPUT when the file turns out damaged. */
int fl_lexical_search(fl_lexical *x, const char *question, size_t len, size_t n_passages,
                      size_t n_docs, fl_lexical_hits *out, fl_err *err);
void fl_lexical_hits_release(fl_lexical_hits *h);

typedef struct fl_lexical_passage {
  fl_buf text, heading;
  size_t first, end; /* bytes of the document's text */
} fl_lexical_passage;
int fl_lexical_read(fl_lexical *x, uint32_t doc, uint32_t passage, fl_lexical_passage *out,
                    fl_err *err);
/* Appends its headings, an empty line and its text. */
void fl_lexical_passage_print(const fl_lexical_passage *p, fl_buf *out);
void fl_lexical_passage_release(fl_lexical_passage *p);

#endif
