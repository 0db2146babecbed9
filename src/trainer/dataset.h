/* dataset.h - conversations from a study file (`flotilla study`) instead of self-study of our own.
 *
 * The file stays mapped; of the lines only their places are noted, and those of a document are read
 * when it becomes resident. A line belongs to the document whose name and hash it carries (in a
 * merged fleet: to the merged one when it is about a member). */
#ifndef FL_TRAINER_DATASET_H
#define FL_TRAINER_DATASET_H

#include "study/conv_json.h"
#include "fleet/manifest.h"

typedef struct fl_dataset fl_dataset;

/* FL_EINPUT when no line is about a document of m. */
int fl_dataset_open(fl_dataset **out, const char *path, const fl_manifest *m, fl_err *err);
void fl_dataset_close(fl_dataset *g);
/* Number of conversations about document `doc` (position in the manifest). g may be NULL. */
size_t fl_dataset_count(const fl_dataset *g, size_t doc);
/* Reads them all into *out (allocated, *n of them, released by the caller). FL_EINPUT names the
 * line that is no conversation or does not keep within the limits. */
int fl_dataset_read(const fl_dataset *g, size_t doc, const fl_conv_limits *limits, fl_conv **out,
                    size_t *n, fl_err *err);

/* Which of n conversations is the k-th to be used: every n uses hold each once, in an order drawn
 * anew for every pass. */
size_t fl_dataset_pick(uint64_t seed, uint32_t doc, uint64_t k, size_t n, uint32_t *scratch);

#endif
