/* supply.h - what an answer needs from a fleet's disk, read apart from the fleet, by a thread that
 * may wait as long as the disk likes while the fleet goes on being used.
 *
 *   fl_supply_list ---------> fl_supply_read -------> fl_supply_compose, fl_supply_keep
 *   what is not in memory     any thread, no fleet    with the fleet again, or a later generation
 *
 * What was read belongs to its file's name, and a name stands for one content (manifest.h): a
 * commit in between makes nothing wrong, at worst something is missing and has to be listed again.
 */
#ifndef FL_FLEET_SUPPLY_H
#define FL_FLEET_SUPPLY_H

#include "fleet/manifest.h"

typedef struct fl_supply_doc {
  fl_mdoc doc; /* copies of what reading needs: name, hash, cart_file, rows, steps, born */
  bool wanted; /* its cartridge is not in memory */
  bool text_wanted;
  bool read; /* `cart` is there */
  fl_cartridge cart;
  fl_buf text; /* for drafts; empty where it was not wanted or cannot be had */
} fl_supply_doc;

typedef struct fl_supply {
  char *dir, *model_hash; /* the latter NULL where it is not known */
  fl_supply_doc *doc;     /* [n] in the order of the list */
  size_t n;
  fl_member *member; /* whose texts make up the only document, when they do */
  size_t n_members;
  uint64_t generation; /* when it was listed */
  uint64_t bytes;      /* that the cartridges to be read take */
  size_t to_read;      /* files: cartridges and texts */
} fl_supply;

/* docs [n]: positions in the fleet. Texts are wanted as long as their tokens sum up to text_tokens
 * at most. */
int fl_supply_list(fl_supply *s, const fl_fleet *f, const size_t *docs, size_t n,
                   size_t text_tokens, fl_err *err);
/* FL_ENOENT: a file is missing; with a trainer at work a newer generation may be there. A text that
 * cannot be had is no error. */
int fl_supply_read(fl_supply *s, fl_err *err);
void fl_supply_free(fl_supply *s); /* one of fl_calloc; NULL is nothing */

/* Appends the cartridge of document i to seq, from memory or the supply. FL_EBUSY: it is in
 * neither. */
int fl_supply_compose(const fl_supply *s, fl_fleet *f, fl_seq *seq, size_t i, fl_err *err);
/* Gives what was read to the fleet's cache. */
void fl_supply_keep(fl_supply *s, fl_fleet *f);

/* The retrieval index of a manifest, for fl_fleet_follow. dim: the model's width. FL_ENOENT: it
 * names none, or a file that is missing. */
int fl_manifest_read_index(struct fl_index **out, const fl_manifest *m, const char *dir, size_t dim,
                           fl_err *err);

#endif
