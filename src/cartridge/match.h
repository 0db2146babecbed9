/* match.h - cartridges made in closed form, by attention matching (match_head.h has the formulas).
 *
 * The document is read once, whole. Conversations about it, given as token sequences, are then run
 * behind it layer by layer: at each layer their rows are the queries for which the layer's rows are
 * constructed, head by head, all query heads of a group for their key head; and what goes into the
 * next layer has seen the rows that were just made, not the document ("on policy"). Where the
 * conversations have more rows than `max_queries` allows, evenly spaced ones ask.
 *
 * The rows are turned (RoPE) from the document's positions to those before p, so that what follows
 * a cartridge stands at position p, as behind one that was trained, with its distances to the rows
 * as they were to the document's. Keys keep their order. Row 0, the sink, is always among them.
 *
 * Layers with a sliding window: candidates are the rows that a conversation's first row sees, and
 * each query is asked about what it sees of them; where p holds all candidates, the layer gets the
 * document's last p rows as they are. Row 0 is not kept there once the window has left it behind.
 * Layers that use another layer's rows have none of their own; the owner's rows are matched for the
 * owner's queries alone.
 *
 * A document that fits p rows is born as ever (fl_cartridge_birth). One that is longer than the
 * model's context has room for is matched as far as it fits.
 */
#ifndef FL_CARTRIDGE_MATCH_H
#define FL_CARTRIDGE_MATCH_H

#include "cartridge/cartridge.h"
#include "kernels/team.h"

typedef struct fl_match_conv {
  const int32_t *tokens; /* what follows the wrapped document, from the user's turn on */
  size_t n;              /* >= 1 */
} fl_match_conv;

typedef struct fl_match_options {
  size_t p, frozen;
  const fl_match_conv *convs;
  size_t n_convs;     /* >= 1 */
  size_t max_queries; /* of a key head; 0: FL_MATCH_QUERIES */
  double ridge;       /* 0: FL_MATCH_RIDGE */
  /* Called before every layer; other than FL_OK ends the call with it. May be NULL. */
  int (*poll)(void *ctx);
  void *ctx;
} fl_match_options;

enum { FL_MATCH_QUERIES = 16384 };
#define FL_MATCH_RIDGE 1e-4

/* pass: not recording, reads the document; pool: f32. The team is the pass's. The bits depend on
 * the document, the conversations and the options alone. */
int fl_cartridge_match(fl_cartridge *out, fl_pass *pass, fl_kv_pool *pool, fl_team *team,
                       const char *doc, size_t doc_len, const fl_match_options *o, fl_err *err);

#endif
