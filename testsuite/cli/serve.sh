#!/bin/sh
# The server as a team meets it: a small fleet, curl, the answers beside those of `flotilla ask`.
. "$(dirname "$0")/lib.sh"
command -v curl >/dev/null || { echo 'curl is not installed'; exit 77; }
fleet=$work/fleet
question='Who is the keeper of Hargate Lighthouse?'
server=

# wait_for COMMAND...: until it succeeds; 30 s at most, and only a failure takes them.
wait_for() {
  tries=0
  until "$@"; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || { fail "never: $*"; return 1; }
    sleep 0.05
  done
}
# serve ARGUMENT...: starts a server; its address is in $url (with /v1) and $root.
serve() {
  : >"$work/url"
  "$FLOTILLA" serve -p 0 "$@" >"$work/url" 2>"$work/serve.err" </dev/null &
  server=$!
  wait_for test -s "$work/url" || { cat "$work/serve.err"; exit 1; }
  url=$(cat "$work/url")
  root=${url%/v1}
}
# stop: SIGTERM, and the exit status has to be 0.
stop() {
  kill -TERM "$server"
  checks=$((checks + 1))
  wait "$server" || fail "the server ended with $?: $(cat "$work/serve.err")"
  server=
}
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT

# post WANTED-STATUS ROUTE BODY [CURL-OPTION...]: the body of the reply is in $out, its head in
# $head.
head=$work/head
post() {
  wanted=$1 route=$2 body=$3
  shift 3
  checks=$((checks + 1))
  got=$(curl -s -o "$out" -D "$head" -w '%{http_code}' -H 'Content-Type: application/json' "$@" \
    -d "$body" "$url$route")
  [ "$got" = "$wanted" ] || fail "$route gave $got instead of $wanted: $(head -c 400 "$out")"
}
user() { printf '"messages":[{"role":"user","content":"%s"}]' "$1"; }
# content: the text of a chat reply in $out.
content() { sed -n 's/.*"message":{"role":"assistant","content":"\([^"]*\)".*/\1/p' "$out"; }
# streamed FILE: the same of a stream.
streamed() { sed -n 's/^data: .*"delta":{\("role":"assistant",\)\{0,1\}"content":"\([^"]*\)".*/\2/p' "$1" | tr -d '\n'; }
is() {
  checks=$((checks + 1))
  [ "$1" = "$2" ] || fail "$3: '$1' is not '$2'"
}

run 0 train "$fleet" -m "$model" -d "$docs" --p 48 --chunk-min 60 --chunk-max 120 \
  --embed-chunk 100 \
  --heldout 0 --lr 3e-2 --rounds 4 -q
run 0 ask "$fleet" "$question" -q && answer=$(cat "$out")
run 0 ask "$fleet" "$question" -q --bare && bare=$(cat "$out")
run 0 ask "$fleet" "$question" -q --oracle mine && mine=$(cat "$out")

# --- answers: those of ask, in every dialect, whole and streamed
serve "$fleet"
post 200 /chat/completions "{$(user "$question")}"
is "$(content)" "$answer" 'chat'
says "$out" '"finish_reason":"stop"'
says "$out" '"flotilla":\{"documents":\[\{"name":"[^"]*lighthouse\.md","score":0\.[0-9]+,[^}]*"rows":48\}'
says "$out" '"rows":96'
says "$out" '"cached_tokens":0'
post 200 /chat/completions "{$(user "$question")}"
is "$(content)" "$answer" 'chat again'
says "$out" '"cached_tokens":[1-9]' 'the second time'
post 200 /chat/completions "{$(user "$question"),\"stream\":true,\"stream_options\":{\"include_usage\":true}}"
is "$(streamed "$out")" "$answer" 'streamed chat'
says "$head" '^Content-Type: text/event-stream'
says "$out" '^data: \[DONE\]'
says "$out" '"choices":\[\],"usage":'
post 200 /responses "{\"input\":\"$question\"}"
says "$out" "\"type\":\"output_text\",\"text\":\"$answer\""
post 200 /responses "{\"input\":\"$question\",\"stream\":true}"
says "$out" '^event: response\.completed'
post 200 /messages "{\"model\":\"m\",\"max_tokens\":100,$(user "$question")}"
says "$out" "\"type\":\"text\",\"text\":\"$answer\""
post 200 /messages "{\"model\":\"m\",\"max_tokens\":100,\"stream\":true,$(user "$question")}"
says "$out" '^event: message_stop'
post 200 /chat/completions "{$(user "$question"),\"flotilla\":{\"retrieval\":\"none\"}}"
is "$(content)" "$bare" 'without documents'
says "$out" '"documents":\[\],"rows":0'
post 200 /chat/completions "{$(user "$question"),\"flotilla\":{\"documents\":[\"mine\"]}}"
is "$(content)" "$mine" 'a named document'
says "$out" 'mine\.md","score":null,"rows":48'
post 404 /chat/completions "{$(user "$question"),\"flotilla\":{\"documents\":[\"nobody\"]}}"
says "$out" 'nobody'
post 200 /chat/completions "{$(user "$question"),\"max_tokens\":2}"
says "$out" '"finish_reason":"length"'
says "$out" '"completion_tokens":2'
post 200 /chat/completions "{$(user "$question"),\"stop\":\" keeper\"}"
is "$(content)" "${answer%% keeper*}" 'a stop string'
post 200 /chat/completions "{$(user "$question"),\"logprobs\":true,\"top_logprobs\":2,\"max_tokens\":1}"
says "$out" '"top_logprobs":\[\{"token":'
sampled="{$(user "$question"),\"temperature\":1.5,\"seed\":7,\"max_tokens\":20}"
post 200 /chat/completions "$sampled"
first=$(content)
post 200 /chat/completions "$sampled"
is "$(content)" "$first" 'the same seed'

# --- a conversation goes on with its documents and its rows
post 200 /chat/completions "{$(user "$question")}" -H 'X-Conversation-Id: c1'
turn2="{\"messages\":[{\"role\":\"user\",\"content\":\"$question\"},{\"role\":\"assistant\",\"content\":\"$answer\"},{\"role\":\"user\",\"content\":\"And then?\"}]}"
post 200 /chat/completions "$turn2" -H 'X-Conversation-Id: c1'
says "$out" 'lighthouse\.md'
cached=$(sed -n 's/.*"cached_tokens":\([0-9]*\).*/\1/p' "$out")
checks=$((checks + 1))
[ "$cached" -gt 25 ] || fail "a follow-up found only $cached tokens in its slot"

# --- embeddings, models, health, metrics
post 200 /embeddings '{"input":["a lighthouse","a mine"]}'
says "$out" '"index":1,"embedding":\[-?[0-9]'
post 200 /embeddings '{"input":"a lighthouse","encoding_format":"base64"}'
says "$out" '"embedding":"[A-Za-z0-9+/]+=*"'
curl -s "$url/models" >"$out" && says "$out" '"owned_by":"flotilla"'
curl -s "$root/health" >"$out" && says "$out" '"status":"ok".*"documents":4'
curl -s "$root/metrics" >"$out" && says "$out" '^flotilla_answers_total [1-9]'
says "$out" '^flotilla_http_replies_total\{route="chat",status="2xx"\} [1-9]'

# --- refusals name what is wrong
post 400 /chat/completions '{'
post 400 /chat/completions "{$(user q),\"temperature\":3}" && says "$out" '"param":"temperature"'
post 400 /chat/completions "{$(user q),\"functions\":[{}]}" && says "$out" '"param":"functions"'
post 400 /messages "{$(user q)}" && says "$out" '^\{"type":"error"'
post 404 /nothing '{}'
post 403 /chat/completions "{$(user q)}" -H 'Host: evil.example'
post 403 /chat/completions "{$(user q)}" -H 'Origin: http://evil.example'
yes 0123456789abcde | head -c 9000000 >"$work/large"
checks=$((checks + 1))
got=$(curl -s -o "$out" -w '%{http_code}' --data-binary "@$work/large" "$url/chat/completions")
is "$got" 413 'a large body'

# --- sixteen at once get what one gets
i=0
pids=
while [ $i -lt 16 ]; do
  i=$((i + 1))
  case $((i % 4)) in
    0) extra=',"flotilla":{"retrieval":"none"}' ;;
    1) extra=',"flotilla":{"documents":["mine"]}' ;;
    2) extra=',"stream":true' ;;
    *) extra= ;;
  esac
  curl -s -o "$work/many.$i" -d "{$(user "$question")$extra}" "$url/chat/completions" &
  pids="$pids $!"
done
# shellcheck disable=SC2086
wait $pids
i=0
while [ $i -lt 16 ]; do
  i=$((i + 1))
  cp "$work/many.$i" "$out"
  case $((i % 4)) in
    0) is "$(content)" "$bare" "client $i" ;;
    1) is "$(content)" "$mine" "client $i" ;;
    2) is "$(streamed "$out")" "$answer" "client $i" ;;
    *) is "$(content)" "$answer" "client $i" ;;
  esac
done

# --- a new generation is taken over while the server runs
run 0 train "$fleet" --resume --rounds 1 -q
now() { curl -s "$root/health" | grep -q '"generation":[5-9]'; }
wait_for now
post 200 /chat/completions "{$(user "$question")}" && says "$out" 'lighthouse\.md'

# --- the event log has it all, and the stop is a graceful one
stop
says "$fleet/events.jsonl" '"ev":"request".*"route":"chat","status":200,"prompt_tokens":[0-9]+.*"rows":96'
says "$fleet/events.jsonl" '"ev":"request".*"status":400'
says "$fleet/events.jsonl" '"ev":"retrieve"'
grep -q "$question" "$fleet/events.jsonl" || fail 'the query is not in the log'

# --- a log that is full goes on in a new part
head -c 65000 /dev/zero | tr '\0' '\n' >"$fleet/events.jsonl"
serve "$fleet" --log-size 64K
post 200 /chat/completions "{$(user "$question")}"
stop
checks=$((checks + 1))
[ "$(wc -c <"$fleet/events.1.jsonl")" -ge 65000 ] || fail 'there is no older part'
for ev in run request end; do
  says "$fleet/events.jsonl" "\"ev\":\"$ev\""
done

# --- a disk that hangs, here a full pipe: answers go on, the stop ends, and says what is missing
cp -R "$fleet" "$work/hung"
rm "$work/hung/events.jsonl"
mkfifo "$work/hung/events.jsonl"
exec 7<>"$work/hung/events.jsonl"
head -c 65536 /dev/zero >&7
serve "$work/hung" --grace 1
post 200 /chat/completions "{$(user "$question")}"
is "$(content)" "$answer" 'while the log hangs'
post 200 /chat/completions "{$(user "$question")}"
kill -TERM "$server"
checks=$((checks + 1))
wait "$server"
[ $? -eq 1 ] || fail 'a stop with events that were not written is a failure'
server=
says "$work/serve.err" 'its disk did not take the last [0-9]+ events within 5 s'
exec 7>&-

# --- keys, a bare model, without speculation
printf 'a-key-for-tests\n' >"$work/keys"
chmod 600 "$work/keys"
serve --model "$model" --keys "$work/keys" --no-speculate --name tiny --ctx 300
post 401 /chat/completions "{$(user "$question")}" && says "$out" invalid_api_key
post 401 /chat/completions "{$(user "$question")}" -H 'Authorization: Bearer a-key-for-test'
post 200 /chat/completions "{$(user "$question")}" -H 'Authorization: Bearer a-key-for-tests'
is "$(content)" "$bare" 'the bare model'
says "$out" '"model":"tiny"'
post 400 /chat/completions "{$(user "$(yes word | head -n 400 | tr '\n' ' ')")}" \
  -H 'x-api-key: a-key-for-tests'
says "$out" 'the conversation has [0-9]+ tokens'
post 200 /messages "{\"model\":\"m\",\"max_tokens\":5,$(user "$question")}" -H 'x-api-key: a-key-for-tests'
stop

run 2 serve && one_sentence
run 2 serve "$fleet" -p 70000 && one_sentence
run 1 serve "$work/nowhere" -m "$model" -p 0 && one_sentence
: >"$work/keys"
run 4 serve "$fleet" -p 0 --keys "$work/keys" && says "$err" 'no key' && one_sentence
finish
