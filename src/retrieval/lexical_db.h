/* lexical_db.h - the database behind a lexical index: its tables, its tokenizer and its score;
 * private to lexical*.c, the only files that include SQLite. */
#ifndef FL_RETRIEVAL_LEXICAL_DB_H
#define FL_RETRIEVAL_LEXICAL_DB_H

#include <sqlite3.h>

#include "retrieval/lexical.h"

#define FL_LEXICAL_FORMAT "flotilla lexical index 1"

/* A passage's row is its document's id and, in the last 20 bits, its number there: the rows of a
 * document follow each other. */
enum { FL_LEXICAL_PASSAGE_BITS = 20 };

/* What the score function keeps for the query that runs. */
typedef struct fl_lexical_query {
  size_t n;     /* words */
  bool weighed; /* idf and average are set */
  double idf[FL_LEXICAL_WORDS];
  double average;                /* words in a passage's text */
  double part[FL_LEXICAL_WORDS]; /* each word's share in the score of the row */
} fl_lexical_query;

struct fl_lexical {
  sqlite3 *db;
  char *path; /* for messages; NULL: in memory */
  fl_lexical_query query;
};

/* flags: of sqlite3_open_v2. path NULL: in memory. */
int fl_lexical_connect(fl_lexical **out, const char *path, int flags, fl_err *err);
int fl_lexical_exec(fl_lexical *x, const char *sql, fl_err *err);
int fl_lexical_prepare(fl_lexical *x, sqlite3_stmt **out, const char *sql, fl_err *err);
/* Turns what SQLite said into an error: damage is FL_EINPUT. */
int fl_lexical_fail(const fl_lexical *x, int code, fl_err *err);
/* *more = there is a row. */
int fl_lexical_step(fl_lexical *x, sqlite3_stmt *s, bool *more, fl_err *err);

/* Makes the tokenizer "words" and the function word_score(table), which gives the score of a row,
 * known to the connection. */
int fl_lexical_register(fl_lexical *x, fl_err *err);
/* The score of a row that holds every word of the query without end; weighed. */
double fl_lexical_full(const fl_lexical_query *q);

#endif
