"""The stock `anthropic` package against the server: URL KEY."""
import sys

import anthropic

url, key = sys.argv[1:3]
client = anthropic.Anthropic(base_url=url.removesuffix("/v1"), api_key=key, max_retries=0)
MESSAGES = [{"role": "user", "content": "Who is the keeper of Hargate Lighthouse?"}]
TOOL = {"name": "look", "description": "looks it up", "input_schema": {
    "type": "object", "properties": {"what": {"type": "string"}}}}


def ask(**more):
    return client.messages.create(**{"model": "m", "max_tokens": 60, "messages": MESSAGES, **more})


def raises(kind, status, call):
    try:
        call()
    except anthropic.APIStatusError as e:
        assert type(e) is kind and e.status_code == status, (type(e), e.status_code, e)
        assert e.body["type"] == "error" and e.body["error"]["message"], e.body
        return
    raise AssertionError(f"no {kind.__name__}")


message = ask()
answer = message.content[0].text
assert answer and message.stop_reason == "end_turn" and message.role == "assistant"
again = ask(system="")
assert again.usage.cache_read_input_tokens > 0 and again.usage.input_tokens == 1
with client.messages.stream(model="m", max_tokens=60, messages=MESSAGES) as s:
    assert "".join(s.text_stream) == answer
    final = s.get_final_message()
assert final.stop_reason == "end_turn" and final.usage.output_tokens == message.usage.output_tokens
assert "lighthouse.md" in final.flotilla["documents"][0]["name"]
kinds = [e.type for e in ask(stream=True)]
assert kinds[0] == "message_start" and kinds[-1] == "message_stop", kinds
short = ask(stop_sequences=[" keeper"])
assert short.stop_reason == "stop_sequence" and short.stop_sequence == " keeper"
assert ask(max_tokens=2).stop_reason == "max_tokens"
assert ask(system=[{"type": "text", "text": "Be brief."}]).content
assert ask(tools=[TOOL], messages=MESSAGES + [
    {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "look",
                                       "input": {"what": "x"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1",
                                  "content": "Peter Fel"}]}]).content

raises(anthropic.BadRequestError, 400, lambda: ask(max_tokens=0))
raises(anthropic.BadRequestError, 400, lambda: ask(extra_body={"temperature": 1.5}))
raises(anthropic.BadRequestError, 400, lambda: ask(tool_choice={"type": "any"}))
raises(anthropic.BadRequestError, 400, lambda: ask(messages=[{"role": "user", "content": [
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}]}]))
raises(anthropic.AuthenticationError, 401,
       lambda: client.with_options(api_key="wrong-key").messages.create(
           model="m", max_tokens=1, messages=MESSAGES))
raises(anthropic.NotFoundError, 404,
       lambda: client.messages.count_tokens(model="m", messages=MESSAGES))
raises(anthropic.RequestTooLargeError, 413,
       lambda: ask(messages=[{"role": "user", "content": "x" * (9 << 20)}]))
print("anthropic", anthropic.__version__, "agrees")
