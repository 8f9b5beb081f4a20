package value

import "slices"

// Near gives the known name that a misspelt one probably means, "" if none is
// near: at most max(1, a third of its length) edits away.
func Near(name string, known []string) string {
	best, least := "", max(1, len(name)/3)+1
	for _, k := range known {
		if k == name || abs(len(k)-len(name)) >= least {
			continue
		}
		if d := distance(name, k, least); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance counts the edits (insert, delete, replace a byte, swap two
// neighbours) between two texts; it stops at limit.
func distance(a, b string, limit int) int {
	above, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		lowest := i + 1
		for j := range len(b) {
			d := row[j]
			if a[i] != b[j] {
				d = 1 + min(row[j], row[j+1], next[j])
				if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
					d = min(d, above[j-1]+1)
				}
			}
			next[j+1] = d
			lowest = min(lowest, d)
		}
		// A swap comes from two rows above, so both must be hopeless.
		if lowest >= limit && slices.Min(row) >= limit {
			return limit
		}
		above, row = row, next
	}
	return row[len(b)]
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
