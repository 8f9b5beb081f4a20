package presenters

import "github.com/fusion-serve/fusion-serve/dsl/value"

func (s *Set) grouped(keep func(tool string) bool) []Definition { return nil }

func (s *Set) routeGrouped(name string, args *value.Object, visible func(tool string) bool) (tool string, rest *value.Object, failed *Response) {
	return "", args, nil
}
