/* view_state.h - what each view remembers between two keys. */
#ifndef TUI_VIEW_STATE_H
#define TUI_VIEW_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"
#include "tui/control.h"
#include "tui/edit.h"
#include "tui/layout.h"

enum { TUI_TURNS_MAX = 64 };

typedef struct tui_fleet_state {
  uint32_t *order; /* places of the documents that are shown, sorted */
  size_t n_order, cap_order;
  uint32_t selected; /* document id; TUI_NONE: the first */
  size_t top;        /* first row shown */
  char filter[128];
  bool open;      /* the document's details are shown */
  size_t page;    /* rows of the table as drawn last, for page keys */
  tui_rect table; /* rows as drawn last, for the mouse */
} tui_fleet_state;

typedef struct tui_loss_state {
  double x0, x1; /* rounds in view; fit: the whole run */
  bool fit;
  double cursor; /* round; NaN: the last one */
  tui_rect plot; /* as drawn last, for the mouse */
} tui_loss_state;

typedef struct tui_retrieval_state {
  tui_edit input;
  bool focus;
  tui_link link;
  fl_json *result; /* what is shown: a reply or an event of the log */
  size_t selected; /* of the recent ones, 0 is the newest; SIZE_MAX: the typed one */
  double due;      /* when what was typed is sent, fl_now_s(); 0: nothing */
} tui_retrieval_state;

typedef struct tui_turn {
  char *question;
  fl_buf answer, bare;
  fl_json *source, *bare_source; /* the last line of the reply, NULL before */
  char error[256];
} tui_turn;

typedef struct tui_chat_state {
  tui_edit input;
  bool focus, split;
  tui_link link, bare_link;
  tui_turn turn[TUI_TURNS_MAX];
  size_t n_turns;
  size_t scroll; /* lines back from the newest */
} tui_chat_state;

typedef struct tui_study_state {
  size_t selected; /* 0 is the newest */
  bool held;       /* the user moved: new ones do not move the selection */
  uint32_t record; /* then: which */
  size_t page;
  bool rejected_only;
  bool coverage; /* on a narrow screen: the maps stand below, instead of the conversation */
} tui_study_state;

#endif
