/* study_file.h - study files without a model: what is in them, several made one; and files of seed
 * instructions. */
#ifndef FL_STUDY_STUDY_FILE_H
#define FL_STUDY_STUDY_FILE_H

#include "base/json.h"
#include "study/study.h"

/* *out = {conversations, skipped, tokens, supervised, documents: [...], kinds: [...]} and, of the
 * first `texts` conversations, their requests and answers. Damaged lines are FL_EINPUT by
 * number. */
int fl_study_show(fl_json **out, const char *path, size_t texts, fl_err *err);

/* Writes the conversations of all files to `to` (NULL: standard output): exact duplicates once,
 * each document's numbered from 0 in the order of the files. */
int fl_study_merge(const char *const *paths, size_t n, const char *to, size_t *kept,
                   size_t *dropped, fl_err *err);

typedef struct fl_study_seeds {
  fl_seed_kind *v;
  size_t n;
} fl_study_seeds;
/* JSON, an array or one object a line: {"kind": "...", "text": "..."}, or "request" instead of
 * "text"; 1 to FL_MAX_SEEDS. */
int fl_study_seeds_read(fl_study_seeds *out, const char *path, fl_err *err);
void fl_study_seeds_release(fl_study_seeds *s);

#endif
