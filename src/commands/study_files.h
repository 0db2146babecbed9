/* study_files.h - study files without a model: what is in them, several made one; and files of seed
 * instructions. */
#ifndef FL_COMMANDS_STUDY_FILES_H
#define FL_COMMANDS_STUDY_FILES_H

#include "base/json.h"
#include "study/study.h"

/* *out = {conversations, skipped, tokens, supervised, documents: [...], kinds: [...]} and, of the
 * first `texts` conversations, their requests and answers. Damaged lines are FL_EINPUT by
 * number. */
int study_show(fl_json **out, const char *path, size_t texts, fl_err *err);

/* Writes the conversations of all files to `to` (NULL: standard output): exact duplicates once,
 * each document's numbered from 0 in the order of the files. */
int study_merge(const char *const *paths, size_t n, const char *to, size_t *kept, size_t *dropped,
                fl_err *err);

typedef struct study_seeds {
  fl_seed_kind *v;
  size_t n;
} study_seeds;
/* JSON, an array or one object a line: {"kind": "...", "text": "..."}, or "request" instead of
 * "text"; 1 to FL_MAX_SEEDS. */
int study_seeds_read(study_seeds *out, const char *path, fl_err *err);
void study_seeds_release(study_seeds *s);

#endif
