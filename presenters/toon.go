package presenters

import "github.com/fusion-serve/fusion-serve/dsl/value"

func appendToon(dst []byte, v any) []byte { return value.AppendIndent(dst, v, 0) }
