/* sentence.h - where a sentence ends. Private to the layer. */
#ifndef FL_STUDY_SENTENCE_H
#define FL_STUDY_SENTENCE_H

#include <stdbool.h>
#include <stddef.h>

/* The sentence that begins at `from` in a block that ends at `to`: *end = behind its last byte that
 * is no white space; returns where the next one begins, `to` when there is none. A full stop ends
 * one where a space follows and then what may begin a sentence, and neither a number of a list, an
 * initial nor a usual abbreviation stands before it. Sentences under 24 bytes are joined to what
 * follows, those over 400 are cut where a line, a clause or a word ends. */
size_t fl_sentence_end(const char *text, size_t from, size_t to, size_t *end);

#endif
