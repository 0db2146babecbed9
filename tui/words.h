/* words.h - the words that the event log uses, which records hold as numbers. */
#ifndef TUI_WORDS_H
#define TUI_WORDS_H

/* NULL-terminated; entry 0 is "" for an unknown word. */
extern const char *const tui_study_kinds[];
extern const char *const tui_rejections[];
extern const char *const tui_save_reasons[];
extern const char *const tui_answer_arms[];
extern const char *const tui_end_states[];
extern const char *const tui_doc_states[];
extern const char *const tui_event_names[];
extern const char *const tui_control_cmds[];
extern const char *const tui_control_keys[];

#endif
