/* echo.h - comparing requests and answers by their words: runs of letters and digits, capitals and
 * small letters alike where they are ASCII. Private to the layer but for fl_echo_same. */
#ifndef FL_STUDY_ECHO_H
#define FL_STUDY_ECHO_H

#include <stdbool.h>

/* Whether a request has a word of four letters or more, or a number, of what it is to be about. */
bool fl_echo_shares(const char *request, const char *about);
/* Whether an answer has no word that its request has not. */
bool fl_echo_repeats(const char *request, const char *answer);
/* Whether two requests have nine of ten different words in common: one is as good as the other. */
bool fl_echo_same(const char *a, const char *b);

#endif
