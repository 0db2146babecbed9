/* fetch_plan.h - what an answer needs from a fleet's disk, read without the fleet, by a thread that
 * may wait as long as the disk likes while the fleet goes on being used.
 *
 *   fl_fetch_plan_list      with the fleet: copies what reading needs to know
 *   fl_fetch_plan_read      on any thread, without the fleet
 *   fl_fetch_plan_compose,  with the fleet again, or a later generation of it
 *   fl_fetch_plan_keep
 *
 * What was read belongs to its file's name, and a name stands for one content (manifest.h): a
 * commit in between makes nothing wrong; at worst something is missing and has to be listed again.
 */
#ifndef FL_ANSWER_FETCH_PLAN_H
#define FL_ANSWER_FETCH_PLAN_H

#include "cartridge/cartridge.h"
#include "fleet/manifest.h"

typedef struct fl_fetch_plan_doc {
  fl_doc_entry doc; /* copies of what reading needs: name, hash, cart_file, rows, steps, born */
  bool wanted;      /* its cartridge is not in memory */
  bool text_wanted;
  bool read; /* `cart` is there */
  fl_cartridge cart;
  fl_buf text; /* for drafts; empty where it was not wanted or cannot be had */
} fl_fetch_plan_doc;

typedef struct fl_fetch_plan {
  char *dir, *model_hash; /* the latter NULL where it is not known */
  fl_fetch_plan_doc *doc; /* [n] in the order of the list */
  size_t n;
  fl_member *member; /* whose texts make up the only document, when they do */
  size_t n_members;
  uint64_t generation; /* when it was listed */
  uint64_t bytes;      /* that the cartridges to be read take */
  size_t to_read;      /* files: cartridges and texts */
  int rc;              /* of the reading, as the next */
  fl_err err;
} fl_fetch_plan;

/* docs [n]: positions in the fleet. Texts are wanted as long as their tokens sum up to text_tokens
 * at most. */
int fl_fetch_plan_list(fl_fetch_plan *s, const fl_fleet *f, const size_t *docs, size_t n,
                       size_t text_tokens, fl_err *err);
/* Sets rc and err. FL_ENOENT: a file is missing; with a trainer at work a newer generation may be
 * there. A text that cannot be had is no error. */
void fl_fetch_plan_read(fl_fetch_plan *s);
void fl_fetch_plan_free(fl_fetch_plan *s); /* one of fl_calloc; NULL is nothing */

/* Appends the cartridge of document i to seq, from memory or the plan. FL_EBUSY: it is in
 * neither. */
int fl_fetch_plan_compose(const fl_fetch_plan *s, fl_fleet *f, fl_seq *seq, size_t i, fl_err *err);
/* Gives what was read to the fleet's cache. */
void fl_fetch_plan_keep(fl_fetch_plan *s, fl_fleet *f);

#endif
