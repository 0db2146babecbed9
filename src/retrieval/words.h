/* words.h - the words of a text as a lexical index knows them: in small letters and without
 * accents.
 *
 * A word is a run of letters and digits. One that holds a connector (fl_embed, --rag-floor, 3.14,
 * index.c, std::vector, c++) or small and large letters in turn (getName) is given whole first, and
 * then its parts, so that both the whole and a part of it are found. Of an apostrophe only what
 * stands before it counts where an s alone follows. A Chinese or Japanese character is a word.
 */
#ifndef FL_RETRIEVAL_WORDS_H
#define FL_RETRIEVAL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

enum { FL_WORD_BYTES = 64 }; /* a longer word is cut, a longer whole is left out */

typedef struct fl_word {
  char text[FL_WORD_BYTES + 1];
  size_t len;
  size_t first, end; /* bytes of the text that it stands for */
  bool is_part;      /* of the whole that came before */
  bool is_whole;     /* of parts that follow */
} fl_word;

/* Calls take for every word in order until it returns other than 0, which is then returned. */
int fl_words_each(const char *text, size_t len, int (*take)(void *ctx, const fl_word *w),
                  void *ctx);

/* Whether a word says nothing of what a question is about (English). */
bool fl_word_is_stop(const char *word);

#endif
