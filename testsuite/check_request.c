/* check_request.c - bodies of the three protocols: what is taken, what is refused and by which
 * name, and that no damaged body does harm. */
#include "http_util.h"

#include "suite.h"

static const fl_protocol *const protocols[] = { &fl_protocol_chat, &fl_protocol_responses,
                                                &fl_protocol_messages };

static const char *text_of(const fl_api_request *c, size_t i) {
  ck_assert_uint_lt(i, c->chat.n_msgs);
  return c->chat.msgs[i].text;
}

START_TEST(chat_fields) {
  fl_api_request c;
  fl_api_error f;
  char *body = http_json(
      "{'model':'m','messages':[{'role':'system','content':'S'},{'role':'user','content':[{'type':"
      "'text','text':'a'},{'type':'text','text':'b'}]}],'temperature':0.5,'top_p':0.9,'top_k':7,"
      "'min_p':0.1,'repeat_penalty':1.5,'seed':9007199254740991,'max_tokens':5,"
      "'max_completion_tokens':6,'stop':['x','yy'],'logprobs':true,'top_logprobs':3,'stream':true,"
      "'stream_options':{'include_usage':true},'reasoning_effort':'low','frequency_penalty':0.5,"
      "'presence_penalty':-2,"
      "'n':1,'logit_bias':{'17':100,'2047':-0.5},'user':'u','metadata':{},'tools':null,"
      "'flotilla':{'documents':['d1','d2'],'conversation':'c1'}}");
  ck_assert_msg(http_parse(&c, &fl_protocol_chat, body, &f) == FL_OK, "%s", f.message);
  ck_assert_uint_eq(c.chat.n_msgs, 2);
  ck_assert_int_eq((int)c.chat.msgs[0].role, FL_ROLE_SYSTEM);
  ck_assert_str_eq(text_of(&c, 1), "ab");
  ck_assert_double_eq(c.chat.sampling.temperature, 0.5);
  ck_assert_double_eq(c.chat.sampling.top_p, 0.9);
  ck_assert_uint_eq(c.chat.sampling.top_k, 7);
  ck_assert_double_eq(c.chat.sampling.min_p, 0.1);
  ck_assert_double_eq(c.chat.sampling.repeat_penalty, 1.5);
  ck_assert(c.seed_given && c.chat.seed == 9007199254740991u);
  ck_assert_uint_eq(c.chat.max_new, 6);
  ck_assert(c.chat.n_stop == 2 && strcmp(c.chat.stop[1], "yy") == 0);
  ck_assert(c.chat.logprobs && c.chat.top_logprobs == 3 && c.stream && c.include_usage &&
            c.chat.thinking);
  ck_assert(c.chat.rag == FL_RAG_NAMED && c.chat.n_docs == 2 && strcmp(c.chat.docs[1], "d2") == 0);
  ck_assert_double_eq(c.chat.sampling.frequency, 0.5);
  ck_assert_double_eq(c.chat.sampling.presence, -2);
  fl_request_identify(&c, 3, 77);
  const fl_chat_request *r = &c.chat;
  ck_assert_str_eq(r->conversation, "c1");
  ck_assert_uint_eq(r->owner, 3);
  ck_assert_uint_eq(r->sampling.n_bias, 2);
  ck_assert(r->sampling.bias[1].token == 2047 && r->sampling.bias[1].bias == -0.5f);
  ck_assert_uint_eq(r->seed, 9007199254740991u);
  fl_request_release(&c);
  fl_free(body);
}
END_TEST

START_TEST(null_is_absent) {
  fl_api_request c;
  fl_api_error f;
  char *body = http_json("{'messages':[{'role':'user','content':'q'}],'temperature':null,'seed':n"
                         "ull,"
                         "'stop':null,'stream':null,'tools':null,'flotilla':null,"
                         "'functions':null}");
  ck_assert_msg(http_parse(&c, &fl_protocol_chat, body, &f) == FL_OK, "%s", f.message);
  ck_assert(!c.seed_given && !c.stream && c.chat.n_stop == 0 && c.chat.rag == FL_RAG_AUTO);
  fl_request_identify(&c, 0, 5);
  ck_assert_ptr_null(c.chat.conversation);
  ck_assert_uint_eq(c.chat.seed, http_defaults.seed + 5); /* unnamed seeds differ by request */
  fl_request_release(&c);
  fl_free(body);
}
END_TEST

#define U "'messages':[{'role':'user','content':'q'}]"
static const struct {
  const char *body, *param;
} refused[] = {
  { "{}", "messages" },
  { "{'messages':[]}", "messages" },
  { "{'messages':'q'}", "messages" },
  { "{'messages':[1]}", "messages" },
  { "{'messages':[{'content':'q'}]}", "messages" },
  { "{'messages':[{'role':'robot','content':'q'}]}", "messages" },
  { "{'messages':[{'role':'user'}]}", "messages[0].content" },
  { "{'messages':[{'role':'user','content':7}]}", "messages[0].content" },
  { "{'messages':[{'role':'user','content':[{'type':'image_url','image_url':{}}]}]}",
    "messages[0].content" },
  { "{'messages':[{'role':'user','content':'q'},{'role':'assistant','content':'a'}]}", "messages" },
  { "{" U ",'temperature':2.5}", "temperature" },
  { "{" U ",'temperature':'hot'}", "temperature" },
  { "{" U ",'top_p':-1}", "top_p" },
  { "{" U ",'top_k':1.5}", "top_k" },
  { "{" U ",'min_p':2}", "min_p" },
  { "{" U ",'seed':-1}", "seed" },
  { "{" U ",'max_tokens':0}", "max_tokens" },
  { "{" U ",'n':2}", "n" },
  { "{" U ",'presence_penalty':2.1}", "presence_penalty" },
  { "{" U ",'frequency_penalty':'x'}", "frequency_penalty" },
  { "{" U ",'stop':['']}", "stop" },
  { "{" U ",'stop':[1]}", "stop" },
  { "{" U ",'stop':{}}", "stop" },
  { "{" U ",'stream':'yes'}", "stream" },
  { "{" U ",'stream_options':{'include_usage':true}}", "stream_options" },
  { "{" U ",'top_logprobs':2}", "top_logprobs" },
  { "{" U ",'logprobs':true,'top_logprobs':21}", "top_logprobs" },
  { "{" U ",'logit_bias':{'1':101}}", "logit_bias" },
  { "{" U ",'logit_bias':{'x':1}}", "logit_bias" },
  { "{" U ",'logit_bias':{'-1':1}}", "logit_bias" },
  { "{" U ",'logit_bias':[1]}", "logit_bias" },
  { "{" U ",'functions':[{}]}", "functions" },
  { "{" U ",'function_call':'auto'}", "function_call" },
  { "{" U ",'audio':{'voice':'x'}}", "audio" },
  { "{" U ",'response_format':{'type':'json_object'}}", "response_format" },
  { "{" U ",'tool_choice':'required'}", "tool_choice" },
  { "{" U ",'tools':[{'type':'web'}]}", "tools" },
  { "{" U ",'tools':[{'type':'function','function':{'name':'a b'}}]}", "tools" },
  { "{" U ",'tools':[{'type':'function','function':{'name':'f','parameters':[]}}]}", "tools" },
  { "{" U ",'flotilla':[]}", "flotilla" },
  { "{" U ",'flotilla':{'docs':['x']}}", "flotilla" },
  { "{" U ",'flotilla':{'documents':[1]}}", "flotilla" },
  { "{" U ",'flotilla':{'retrieval':'always'}}", "flotilla" },
  { "{" U ",'flotilla':{'retrieval':'auto','documents':['x']}}", "flotilla" },
};

START_TEST(chat_refuses) {
  fl_api_request c;
  fl_api_error f;
  char *body = http_json(refused[_i].body);
  ck_assert_msg(http_parse(&c, &fl_protocol_chat, body, &f) == FL_EINPUT, "taken: %s", body);
  ck_assert_int_eq(f.status, 400);
  ck_assert_msg(strcmp(f.param, refused[_i].param) == 0, "%s: param %s", body, f.param);
  fl_request_release(&c);
  fl_free(body);
}
END_TEST

START_TEST(tools_convention) {
  fl_api_request c;
  fl_api_error f;
  char *body = http_json(
      "{'messages':[{'role':'user','content':'q'},{'role':'assistant','content':null,'tool_calls':"
      "[{'id':'1','type':'function','function':{'name':'f','arguments':'{}'}}]},{'role':'tool',"
      "'tool_call_id':'1','content':'r1'},{'role':'tool','content':'r2'}],'tools':[{'type':"
      "'function','function':{'name':'f','description':'d','parameters':{'type':'object'}}}]}");
  ck_assert_msg(http_parse(&c, &fl_protocol_chat, body, &f) == FL_OK, "%s", f.message);
  ck_assert_uint_eq(c.chat.n_msgs, 4);
  ck_assert_int_eq((int)c.chat.msgs[0].role, FL_ROLE_SYSTEM);
  ck_assert_ptr_nonnull(strstr(text_of(&c, 0),
                               "<tools>\n{\"type\":\"function\",\"function\":{\"n"
                               "ame\":"
                               "\"f\",\"description\":\"d\",\"parameters\":{\"type\":\"object\"}}"
                               "}\n"
                               "</tools>"));
  ck_assert_str_eq(text_of(&c, 2),
                   "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>");
  ck_assert_str_eq(text_of(&c, 3), "<tool_response>\nr1\n</tool_response>\n"
                                   "<tool_response>\nr2\n</tool_response>");
  ck_assert(fl_request_knows(&c, "f") && !fl_request_knows(&c, "g"));
  fl_request_release(&c);
  fl_free(body);
}
END_TEST

START_TEST(tools_behind_a_system_message) {
  fl_api_request c;
  fl_api_error f;
  char *body = http_json("{'messages':[{'role':'system','content':'S'},{'role':'user','content':'"
                         "q'}],"
                         "'tools':[{'type':'function','function':{'name':'f'}}]}");
  ck_assert_int_eq(http_parse(&c, &fl_protocol_chat, body, &f), FL_OK);
  ck_assert_uint_eq(c.chat.n_msgs, 2);
  ck_assert_int_eq(strncmp(text_of(&c, 0), "S\n\n# Tools\n", 11), 0);
  ck_assert_uint_eq(strlen(text_of(&c, 0)), c.chat.msgs[0].len);
  fl_request_release(&c);
  fl_free(body);
}
END_TEST

START_TEST(messages_blocks) {
  fl_api_request c;
  fl_api_error f;
  char *body = http_json(
      "{'model':'m','max_tokens':9,'system':[{'type':'text','text':'S'}],'messages':[{'role':'use"
      "r',"
      "'content':'q'},{'role':'assistant','content':[{'type':'thinking','thinking':'t','signature':"
      "''},{'type':'text','text':'let me'},{'type':'tool_use','id':'1','name':'f','input':{'a':1}"
      "}]},"
      "{'role':'user','content':[{'type':'tool_result','tool_use_id':'1','content':[{'type':'text',"
      "'text':'r'}]},{'type':'text','text':'and?'}]}],'stop_sequences':['x'],'thinking':{'type':"
      "'enabled','budget_tokens':1024},'tools':[{'name':'f','input_schema':{}}]}");
  ck_assert_msg(http_parse(&c, &fl_protocol_messages, body, &f) == FL_OK, "%s", f.message);
  ck_assert_uint_eq(c.chat.n_msgs, 4);
  ck_assert_str_eq(text_of(&c, 2), "let me\n<tool_call>\n"
                                   "{\"name\": \"f\", \"arguments\": {\"a\":1}}\n</tool_call>");
  ck_assert_str_eq(text_of(&c, 3), "<tool_response>\nr\n</tool_response>\nand?");
  ck_assert(c.chat.max_new == 9 && c.chat.thinking && c.chat.n_stop == 1);
  fl_request_release(&c);
  fl_free(body);
}
END_TEST

static const struct {
  size_t protocol;
  const char *body, *param;
} others[] = {
  { 2, "{'max_tokens':1," U "}", "model" },
  { 2, "{'model':'m'," U "}", "max_tokens" },
  { 2, "{'model':'m','max_tokens':1}", "messages" },
  { 2, "{'model':'m','max_tokens':1,'temperature':1.5," U "}", "temperature" },
  { 2, "{'model':'m','max_tokens':1,'messages':[{'role':'system','content':'q'}]}", "messages" },
  { 2, "{'model':'m','max_tokens':1,'messages':[{'role':'user','content':[{'type':'image'}]}]}",
    "messages" },
  { 2, "{'model':'m','max_tokens':1,'tools':[{'type':'bash_20250124','name':'bash'}]," U "}",
    "tools" },
  { 2, "{'model':'m','max_tokens':1,'tool_choice':{'type':'any'}," U "}", "tool_choice" },
  { 1, "{}", "input" },
  { 1, "{'input':7}", "input" },
  { 1, "{'input':[]}", "messages" },
  { 1, "{'input':'q','previous_response_id':'r'}", "previous_response_id" },
  { 1, "{'input':'q','background':true}", "background" },
  { 1, "{'input':'q','truncation':'auto'}", "truncation" },
  { 1, "{'input':'q','text':{'format':{'type':'json_schema'}}}", "text" },
  { 1, "{'input':'q','tools':[{'type':'web_search'}]}", "tools" },
  { 1, "{'input':[{'type':'item_reference','id':'x'}]}", "input" },
};

START_TEST(others_refuse) {
  fl_api_request c;
  fl_api_error f;
  char *body = http_json(others[_i].body);
  ck_assert_msg(http_parse(&c, protocols[others[_i].protocol], body, &f) == FL_EINPUT, "taken: %s",
                body);
  ck_assert_msg(strcmp(f.param, others[_i].param) == 0, "%s: param %s", body, f.param);
  fl_request_release(&c);
  fl_free(body);
}
END_TEST

START_TEST(responses_items) {
  fl_api_request c;
  fl_api_error f;
  char *body = http_json(
      "{'input':[{'role':'user','content':'q'},{'type':'reasoning','summary':[]},{'type':"
      "'function_call','call_id':'1','name':'f','arguments':'{}'},{'type':'function_call_output',"
      "'call_id':'1','output':'r'}],'instructions':'S','max_output_tokens':3,'reasoning':{'effort':"
      "'none'},'background':false,'include':[]}");
  ck_assert_msg(http_parse(&c, &fl_protocol_responses, body, &f) == FL_OK, "%s", f.message);
  ck_assert_uint_eq(c.chat.n_msgs, 4);
  ck_assert_str_eq(text_of(&c, 0), "S");
  ck_assert_str_eq(text_of(&c, 3), "<tool_response>\nr\n</tool_response>");
  ck_assert(c.chat.max_new == 3 && !c.chat.thinking);
  fl_request_release(&c);
  fl_free(body);
}
END_TEST

/* Bytes of good bodies are changed, cut and doubled at random places; every outcome is fine but a
 * crash, a leak (under the sanitizer) or a fault without a sentence. */
START_TEST(mutations) {
  char *good[3] = {
    http_json("{'messages':[{'role':'system','content':'S'},{'role':'user','content':[{'type':'te"
              "xt',"
              "'text':'a'}]},{'role':'assistant','tool_calls':[{'function':{'name':'f','arguments':"
              "'{}'}}]},{'role':'tool','content':'r'}],'stop':['x'],'tools':[{'type':'function',"
              "'function':{'name':'f','parameters':{}}}],'flotilla':{'documents':['d']},'seed':1}"),
    http_json("{'input':[{'role':'user','content':[{'type':'input_text','text':'q'}]},{'type':"
              "'function_call','name':'f','arguments':'{}'},{'type':'function_call_output','outpu"
              "t':"
              "'r'}],'tools':[{'type':'function','name':'f','parameters':{}}],'reasoning':{}}"),
    http_json("{'model':'m','max_tokens':1,'system':'S','messages':[{'role':'user','content':[{'t"
              "ype':"
              "'tool_result','content':'r'}]},{'role':'assistant','content':[{'type':'tool_use',"
              "'name':'f','input':{}}]},{'role':'user','content':'q'}],'tools':[{'name':'f'}]}")
  };
  static const char alphabet[] = "{}[]:,\"\\0123456789eE.-+ntrufalsextypenam\x80\xff";
  uint64_t state = 12345; /* a plain generator: the cases are the same everywhere */
  for (int round = 0; round < 6000; round++) {
    const size_t d = (size_t)round % 3;
    char body[2048];
    size_t len = strlen(good[d]);
    memcpy(body, good[d], len);
    for (int k = 0; k < 1 + round % 4; k++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const size_t at = (size_t)(state >> 33) % len;
      if ((state >> 20) % 16 == 0 && at > 0) len = at;
      else body[at] = alphabet[(state >> 24) % (sizeof alphabet - 1)];
    }
    fl_api_request c;
    fl_api_error f;
    const int rc = http_parse_n(&c, protocols[d], body, len, &f);
    ck_assert(rc == FL_OK || rc == FL_EINPUT);
    ck_assert(f.status == 0 || (f.message[0] != '\0' && rc == FL_EINPUT));
    fl_request_release(&c);
  }
  for (size_t i = 0; i < 3; i++) fl_free(good[i]);
}
END_TEST

/* Whichever allocation fails, the request is refused or taken, and nothing leaks. */
START_TEST(out_of_memory) {
  char *body = http_json("{'messages':[{'role':'user','content':'q'},{'role':'tool','content':'r'"
                         "}],"
                         "'tools':[{'type':'function','function':{'name':'f','parameters':{}}}]}");
  for (size_t n = 1; n < 200; n++) {
    fl_api_request c;
    fl_api_error f;
    fl_mem_fault_after(n);
    (void)http_parse(&c, &fl_protocol_chat, body, &f);
    fl_mem_fault_after(0);
    fl_request_release(&c);
  }
  fl_free(body);
}
END_TEST

Suite *suite_request(void) {
  Suite *s = suite_create("request");
  TCase *t = tcase_create("chat");
  tcase_add_test(t, chat_fields);
  tcase_add_test(t, null_is_absent);
  tcase_add_loop_test(t, chat_refuses, 0, (int)(sizeof refused / sizeof *refused));
  tcase_add_test(t, tools_convention);
  tcase_add_test(t, tools_behind_a_system_message);
  suite_add_tcase(s, t);
  t = tcase_create("others");
  tcase_add_test(t, messages_blocks);
  tcase_add_test(t, responses_items);
  tcase_add_loop_test(t, others_refuse, 0, (int)(sizeof others / sizeof *others));
  suite_add_tcase(s, t);
  t = tcase_create("hostile");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, mutations);
  tcase_add_test(t, out_of_memory);
  suite_add_tcase(s, t);
  return s;
}
