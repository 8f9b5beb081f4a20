package api

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// readAll reads an answer, which net/http unpacks as it comes, up to most bytes.
func readAll(r io.Reader, most int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) > most {
		return nil, refusal(fmt.Sprintf("the answer is larger than %d bytes", most))
	}
	return raw, nil
}

// newResponse reads an answer. One of status 400 or more is an answer however
// bad its body is: its status says what matters.
func newResponse(a *http.Response, raw []byte) (*Response, error) {
	r := &Response{Status: a.StatusCode, Headers: headersOf(a.Header), Raw: raw, URL: a.Request.URL.String()}
	t, params, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil {
		t, params = "", nil
	}
	r.Type = t
	if len(raw) == 0 {
		return r, nil
	}
	if r.Body, err = decode(t, params["charset"], raw); err != nil && r.Status < http.StatusBadRequest {
		return nil, err
	}
	r.Binary = r.Body == nil && !isJSON(t) // JSON may be null
	return r, nil
}

func headersOf(h http.Header) *value.Object {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	sort.Strings(names)
	o := value.NewObject(len(names))
	for _, name := range names {
		o.Set(strings.ToLower(name), strings.ToValidUTF8(strings.Join(h[name], ", "), "\uFFFD"))
	}
	return o
}

// decode gives the value of a body: what its type says, and where there is no
// type what it looks like.
func decode(t, charset string, raw []byte) (any, error) {
	switch {
	case isJSON(t):
		return decodeJSON(raw)
	case t == "text/csv" || t == "application/csv":
		s, err := text(charset, raw)
		if err != nil {
			return nil, err
		}
		return decodeCSV(s)
	case strings.HasPrefix(t, "text/") || t == "application/xml" || t == "application/javascript" ||
		t == "application/yaml" || t == "application/x-yaml" || t == "application/x-ndjson" ||
		strings.HasSuffix(t, "+xml") && t != "image/svg+xml":
		return text(charset, raw)
	case t != "":
		return nil, nil
	}
	if b := bytes.TrimLeft(raw, " \t\r\n"); len(b) > 0 && (b[0] == '{' || b[0] == '[') {
		if v, err := value.Parse(raw); err == nil {
			return v, nil
		}
	}
	if utf8.Valid(raw) && !bytes.ContainsRune(raw, 0) {
		return string(raw), nil
	}
	return nil, nil
}

func isJSON(t string) bool {
	return t == "application/json" || strings.HasSuffix(t, "+json") || t == "text/json"
}

var byteOrderMark = []byte("\uFEFF")

func decodeJSON(raw []byte) (any, error) {
	v, err := value.Parse(bytes.TrimPrefix(raw, byteOrderMark))
	if err != nil {
		return nil, unreadable("the answer says that it is JSON, and is none")
	}
	return v, nil
}

// text gives a text as UTF-8.
func text(charset string, raw []byte) (string, error) {
	switch strings.ToLower(charset) {
	case "", "utf-8", "utf8", "us-ascii", "ascii":
		return strings.ToValidUTF8(string(bytes.TrimPrefix(raw, byteOrderMark)), "\uFFFD"), nil
	case "iso-8859-1", "latin1":
		runes := make([]rune, len(raw))
		for i, b := range raw {
			runes[i] = rune(b)
		}
		return string(runes), nil
	}
	return "", unreadable("the answer is a text in a character set other than UTF-8 and ISO 8859-1")
}

// decodeCSV gives the rows of a table as objects, by the names in its first
// row. Cells are texts.
func decodeCSV(s string) (any, error) {
	r := csv.NewReader(strings.NewReader(s))
	r.ReuseRecord = true
	head, err := r.Read()
	if err != nil {
		return nil, unreadable("the answer says that it is CSV, and has no first row of names")
	}
	names := append([]string(nil), head...)
	for i, name := range names {
		for _, other := range names[:i] {
			if name == other {
				return nil, unreadable("the CSV of the answer has two columns of the same name")
			}
		}
	}
	rows := []any{}
	for {
		cells, err := r.Read()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return nil, unreadable(fmt.Sprintf("the CSV of the answer cannot be read after %d rows", len(rows)))
		}
		o := value.NewObject(len(names))
		for i, cell := range cells {
			o.Set(names[i], cell)
		}
		rows = append(rows, o)
	}
}
