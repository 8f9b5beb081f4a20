package bind

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/api"
)

// pages says where the next page of a list is.
type pages struct {
	next  *expr.Template // over body, status and headers; nil: the Link header
	param string         // the query parameter that next is sent as; "": next is an address
	max   int
}

func (c *compiler) pages(r *graph.Request) *pages {
	p := &pages{param: r.Pages.Param, max: max(r.Pages.Max, 1)}
	next := &r.Pages.Next
	if r.Method != http.MethodGet {
		c.faults.Add(r.Pages.At, next.Path, "only the pages of a get are followed")
	}
	if next.S == "link" {
		if p.param != "" {
			c.faults.Add(r.Pages.At, next.Path, "the Link header holds addresses: leave out param")
		}
		return p
	}
	p.next = c.template(next, WithAnswer(c.scope))
	if p.next != nil && !p.next.IsHole() {
		c.faults = append(c.faults, next.Fault(0, `is "link" or one hole: {{ body.next }}`))
	}
	return p
}

// follow asks for page after page and joins their lists, up to the row limit
// and the most pages.
func (r *request) follow(w *work, client *api.Client, q *api.Request, path string, env *expr.Env, from *expr.Template) (any, bool, error) {
	var err error
	if q.Target, err = r.target(env, path); err != nil {
		return nil, false, err
	}
	all := []any{}
	seen := []string{q.Target}
	for page := 1; ; page++ {
		a, err := r.send(w, client, q, env)
		if err != nil {
			return nil, false, err
		}
		list, err := pageList(env, from)
		if err != nil {
			return nil, false, fmt.Errorf("page %d: %w", page, err)
		}
		all = append(all, list...)
		next, err := r.next(env, a, path)
		if err != nil {
			return nil, false, fmt.Errorf("page %d: pages: %w", page, err)
		}
		if most := r.limit.Rows; most > 0 && len(all) >= most {
			return all[:most], len(all) > most || next != "", nil
		}
		if next == "" || page >= r.pages.max {
			return all, next != "", nil
		}
		if slices.Contains(seen, next) {
			return nil, false, fmt.Errorf("page %d: pages: the next page is one that was read already", page)
		}
		seen = append(seen, next)
		q.Target = next
	}
}

// pageList gives the list of one page.
func pageList(env *expr.Env, from *expr.Template) ([]any, error) {
	item, err := itemOf(env, from)
	if err != nil {
		return nil, err
	}
	switch l := item.(type) {
	case nil:
		return nil, nil
	case []any:
		return l, nil
	case *value.Rows:
		return l.List(), nil
	}
	if from == nil {
		return nil, errors.New("the answer is no list: say by from where its list is")
	}
	return nil, errors.New("from: gives no list")
}

// next gives the target of the next page, "" at the end.
func (r *request) next(env *expr.Env, a *api.Response, path string) (string, error) {
	if r.pages.next == nil {
		link, _ := a.Headers.Get("link")
		s, _ := link.(string)
		return address(a.URL, nextLink(s))
	}
	v, err := r.pages.next.Value(env)
	if err != nil || v == nil || v == "" {
		return "", err
	}
	if r.pages.param == "" {
		s, isText := v.(string)
		if !isText {
			return "", errors.New("next gives no address: say by param what it is sent as")
		}
		return address(a.URL, s)
	}
	switch v.(type) {
	case string, int64, float64, value.Number:
	default:
		return "", errors.New("next gives neither a text nor a number")
	}
	query, err := appendFields(nil, r.query, env, r.pages.param)
	if err != nil {
		return "", err
	}
	return path + "?" + string(appendField(query, r.pages.param, v)), nil
}

// address resolves the address of a next page. That it is on the same host is
// for the client to say.
func address(base, next string) (string, error) {
	if next == "" {
		return "", nil
	}
	from, err := url.Parse(base)
	if err != nil {
		return "", errors.New("the page has no address")
	}
	to, err := from.Parse(next)
	if err != nil {
		return "", errors.New("the address of the next page is none")
	}
	to.Fragment, to.RawFragment = "", ""
	return to.String(), nil
}
