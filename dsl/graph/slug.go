package graph

import "strings"

// Slug is a name as the name of a file: letters and digits of ASCII in lower
// case, everything else a single dash between them. The golden file of a case
// is golden/<Test.File>/<Slug(Test.Name)>.txt below Test.Dir.
func Slug(name string) string {
	var b strings.Builder
	dash := false
	for _, r := range strings.ToLower(name) {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			dash = b.Len() > 0
			continue
		}
		if dash {
			b.WriteByte('-')
			dash = false
		}
		b.WriteRune(r)
	}
	if b.Len() == 0 {
		return "case"
	}
	return b.String()
}
