package golden

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// leastLeak is the length from which on a value is looked for: a shorter one
// (a digit, "no") stands in every answer by chance.
const leastLeak = 4

// findLeak looks for values that must not leave in the bytes of an answer and
// in the log lines of its call. A value that a field of the answer shows in
// full is declared there, and so no secret.
func findLeak(hidden []any, resp *presenters.Response, got []byte, log string) string {
	shown := map[string]bool{}
	collect(resp.Side().Data, shown)
	body := answerOnly(got)
	for _, v := range leaves(nil, hidden) {
		text := string(value.AppendText(nil, v))
		if len(text) < leastLeak || shown[text] {
			continue
		}
		escaped := value.AppendString(nil, text)
		escaped = escaped[1 : len(escaped)-1]
		switch {
		case bytes.Contains(body, []byte(text)), bytes.Contains(body, escaped):
			return fmt.Sprintf("leak: a value of %d characters that is redacted or secret stands in the answer, on line %d of\n%s", len(text), lineOf(got, text), got)
		case strings.Contains(log, text):
			return fmt.Sprintf("leak: a value of %d characters that is redacted or secret stands in the log of the call", len(text))
		}
	}
	return ""
}

// answerOnly drops the head line, which holds the arguments of the case.
func answerOnly(got []byte) []byte {
	_, body, _ := bytes.Cut(got, []byte("\n"))
	return body
}

func lineOf(got []byte, text string) int {
	head, body, _ := bytes.Cut(got, []byte("\n"))
	before, _, _ := bytes.Cut(body, []byte(text))
	return 2 + bytes.Count(before, []byte("\n")) + bytes.Count(head, []byte("\n"))
}

// leaves gives the scalars of a value.
func leaves(dst []any, v any) []any {
	switch v := v.(type) {
	case nil, bool:
		return dst
	case []any:
		for _, x := range v {
			dst = leaves(dst, x)
		}
		return dst
	case *value.Object:
		for i := range v.Len() {
			_, x := v.At(i)
			dst = leaves(dst, x)
		}
		return dst
	case *value.Rows:
		return leaves(dst, v.List())
	}
	return append(dst, v)
}

func collect(v any, into map[string]bool) {
	for _, x := range leaves(nil, v) {
		into[string(value.AppendText(nil, x))] = true
	}
}
