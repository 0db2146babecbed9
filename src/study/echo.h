/* echo.h - comparing requests and answers by their words: runs of letters and digits, capitals and
 * small letters alike where they are ASCII. Private to the layer but for fl_echo_same. */
#ifndef FL_STUDY_ECHO_H
#define FL_STUDY_ECHO_H

#include <stdbool.h>

/* Whether a request has a word of four letters or more, or a number, of what it is to be about. */
bool fl_echo_shares(const char *request, const char *about);
/* Whether an answer to a request has a word of that kind of what it is to be about, beyond those
 * that the request has. */
bool fl_echo_tells(const char *request, const char *answer, const char *about);
/* Whether there is a question mark in it, of whatever script. */
bool fl_echo_asks(const char *request);
/* Whether an answer has no word that its request has not. */
bool fl_echo_repeats(const char *request, const char *answer);
/* Whether two requests have nine of ten different words in common: one is as good as the other. */
bool fl_echo_same(const char *a, const char *b);

#endif
