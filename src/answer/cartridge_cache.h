/* cartridge_cache.h - the cartridges in memory for answers, kept with a fleet. The one used longest
 * ago makes room for the next. */
#ifndef FL_ANSWER_CARTRIDGE_CACHE_H
#define FL_ANSWER_CARTRIDGE_CACHE_H

#include "fleet/state.h"

typedef struct fl_cached {
  fl_cartridge cart;
  char *file;    /* the generation file it came from; NULL: free */
  uint64_t used; /* clock of the last use */
} fl_cached;
enum { FL_CACHE_MIN = 4 };

typedef struct fl_cartridge_cache {
  fl_cached *place; /* [n] */
  size_t n;
  uint64_t clock;
} fl_cartridge_cache;

/* *out = the fleet's cache, made where there is none. */
int fl_cache_of(fl_cartridge_cache **out, fl_fleet *f, fl_err *err);
/* The cartridge of document i, or NULL; it counts as used. */
const fl_cartridge *fl_cache_find(fl_fleet *f, size_t i);
bool fl_cache_has(const fl_fleet *f, size_t i);
bool fl_cache_holds(const fl_cartridge_cache *x, const char *file);
/* Takes over *c and *file, both NULL or zeroed afterwards. */
void fl_cache_put(fl_cartridge_cache *x, fl_cartridge *c, char **file);

/* *out = the cartridge of document i: a trainer's own rows where it is resident, else from the
 * cache or from disk. Valid until the next call. */
int fl_fleet_cartridge(fl_fleet *f, size_t i, const fl_cartridge **out, fl_err *err);

#endif
