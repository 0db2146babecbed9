/* api_responses.h - what the two files of OpenAI's responses share. */
#ifndef FL_HTTP_API_RESPONSES_H
#define FL_HTTP_API_RESPONSES_H

#include "http/response.h"

/* The response object; f with status "failed". */
void fl_responses_object(fl_response *t, const char *key, const char *status,
                         const fl_api_error *f);
void fl_responses_item(fl_response *t, const char *key, fl_part part, size_t index, const char *s,
                       size_t len, bool done);
void fl_responses_text_part(fl_response *t, const char *key, fl_part part, const char *s,
                            size_t len);
void fl_responses_call(fl_response *t, const char *key, const fl_tool_use *u, bool done);
const char *fl_responses_status(const fl_response *t);

/* The stream, as in fl_protocol. */
void fl_responses_begin(fl_response *t);
void fl_responses_text(fl_response *t, fl_part part, const char *s, size_t len);
void fl_responses_on_call(fl_response *t, const fl_tool_use *u);
void fl_responses_end(fl_response *t);
void fl_responses_broken(fl_response *t, const fl_api_error *f);
void fl_responses_ping(fl_response *t);

#endif
