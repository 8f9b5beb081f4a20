package expr

import "strings"

// didYouMean gives ` (did you mean "…"?)` for the known name that is nearest
// to a misspelt one, or "".
func didYouMean(name string, known []string) string { return suggestion(nearest(name, known)) }

func suggestion(name string) string {
	if name == "" {
		return ""
	}
	return ` (did you mean "` + name + `"?)`
}

// nearest gives the known name that is nearest to a misspelt one, or "" if
// none is near: at most a third of the letters differ, one at least.
func nearest(name string, known []string) string {
	best, dist := "", max(1, len(name)/3)+1
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < dist {
			best, dist = k, d
		}
	}
	return best
}

// distance counts the letters to insert, drop, replace or swap with their
// neighbour to get from a to b.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}
