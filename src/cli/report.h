/* report.h - a result is built once, as a JSON object, and printed either as JSON or for people:
 * members as "name  value" lines, arrays of objects as tables. */
#ifndef FL_CLI_REPORT_H
#define FL_CLI_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/json.h"

/* Prints on stdout. In the text form underscores in names become spaces, members that end in
 * "_bytes" print as sizes, in "_s" as times; null prints as "-". */
int report_print(const fl_json *result, bool json, fl_err *err);

/* True where colour may be used: a terminal, TERM not "dumb", NO_COLOR unset or empty. */
bool report_colour(FILE *f);

#endif
