"""The stock `openai` package against the server: URL KEY."""
import sys
import threading

import openai

url, key = sys.argv[1:3]
client = openai.OpenAI(base_url=url, api_key=key, max_retries=0)
QUESTION = "Who is the keeper of Hargate Lighthouse?"
MESSAGES = [{"role": "user", "content": QUESTION}]
TOOL = {"type": "function", "function": {"name": "look", "description": "looks it up",
        "parameters": {"type": "object", "properties": {"what": {"type": "string"}}}}}


def raises(kind, status, call, **wanted):
    try:
        call()
    except openai.APIStatusError as e:
        assert type(e) is kind and e.status_code == status, (type(e), e.status_code, e)
        for name, value in wanted.items():
            assert getattr(e, name) == value, (name, getattr(e, name))
        return e
    raise AssertionError(f"no {kind.__name__}")


def chat(**more):
    return client.chat.completions.create(**{"model": "m", "messages": MESSAGES, "max_tokens": 60, **more})


# chat, whole and streamed
whole = chat()
answer = whole.choices[0].message.content
assert answer and whole.choices[0].finish_reason == "stop"
assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
assert "lighthouse.md" in whole.flotilla["documents"][0]["name"]
again = chat()
assert again.choices[0].message.content == answer
assert again.usage.prompt_tokens_details.cached_tokens == again.usage.prompt_tokens - 1
chunks = list(chat(stream=True, stream_options={"include_usage": True}))
assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == answer
assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
with client.chat.completions.stream(model="m", messages=MESSAGES, max_tokens=60) as s:
    for _ in s:
        pass
    assert s.get_final_completion().choices[0].message.content == answer
bare = chat(extra_body={"flotilla": {"retrieval": "none"}})
assert bare.flotilla["rows"] == 0

# log probabilities, stop, seed
probs = chat(logprobs=True, top_logprobs=3).choices[0].logprobs.content
assert b"".join(bytes(p.bytes) for p in probs).decode().startswith(answer)
assert all(len(p.top_logprobs) == 3 and p.logprob <= 0 for p in probs)
first = probs[0]
assert max(first.top_logprobs, key=lambda t: t.logprob).token == first.token
assert chat(stop=[" keeper"]).choices[0].message.content == answer.split(" keeper")[0]
assert chat(temperature=1.5, seed=3).choices[0].message.content == \
    chat(temperature=1.5, seed=3).choices[0].message.content

# tools: declared, a past call and its result
calls = [{"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"what":"x"}'}}]
assert chat(tools=[TOOL], messages=MESSAGES + [
    {"role": "assistant", "content": None, "tool_calls": calls},
    {"role": "tool", "tool_call_id": "1", "content": "Peter Fel"}]).choices[0].message.content is not None

# responses
response = client.responses.create(model="m", input=QUESTION, max_output_tokens=60)
assert response.output_text == answer and response.status == "completed"
with client.responses.stream(model="m", input=QUESTION, max_output_tokens=60) as s:
    kinds = [e.type for e in s]
    assert s.get_final_response().output_text == answer
assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
assert client.responses.create(model="m", input=QUESTION, max_output_tokens=2).status == "incomplete"

# embeddings (base64 by this package's default, and plain), models
vectors = client.embeddings.create(model="m", input=["a lighthouse", "a mine"]).data
plain = client.embeddings.create(model="m", input="a mine", encoding_format="float").data[0].embedding
assert len(vectors) == 2 and max(abs(a - b) for a, b in zip(vectors[1].embedding, plain)) < 1e-6
assert abs(sum(x * x for x in plain) - 1) < 1e-3
name = client.models.list().data[0].id
assert client.models.retrieve(name).owned_by == "flotilla"

# errors become the package's exceptions
raises(openai.BadRequestError, 400, lambda: chat(temperature=3), param="temperature")
raises(openai.BadRequestError, 400, lambda: chat(logit_bias={"x": 5}), param="logit_bias")
assert chat(logit_bias={"1": 5}, presence_penalty=0.5).choices[0].message.role == "assistant"
raises(openai.BadRequestError, 400, lambda: chat(n=2), param="n")
raises(openai.BadRequestError, 400, lambda: chat(response_format={"type": "json_object"}),
       param="response_format")
raises(openai.BadRequestError, 400, lambda: client.responses.create(
    model="m", input="x", previous_response_id="resp_1"), param="previous_response_id")
raises(openai.NotFoundError, 404, lambda: chat(extra_body={"flotilla": {"documents": ["nobody"]}}))
raises(openai.NotFoundError, 404, lambda: client.models.retrieve("other"), code="model_not_found")
raises(openai.AuthenticationError, 401, lambda: client.with_options(api_key="wrong-key").models.list(),
       code="invalid_api_key")

# more at once than slots and queue hold
outcomes = []


def one(seed):
    try:
        outcomes.append(chat(temperature=2, seed=seed, max_tokens=500).choices[0].finish_reason)
    except openai.RateLimitError as e:
        outcomes.append(int(e.response.headers["retry-after"]))


threads = [threading.Thread(target=one, args=(i,)) for i in range(16)]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert len(outcomes) == 16, outcomes
print("openai", openai.__version__, "agrees;", sum(isinstance(o, int) for o in outcomes), "of 16 refused")
