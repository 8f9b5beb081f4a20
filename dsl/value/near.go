package value

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

// distance counts the edits (insert, delete, replace a byte) between two
// texts; it stops at limit.
func distance(a, b string, limit int) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal, lowest := row[0], i+1
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], d
			lowest = min(lowest, d)
		}
		if lowest >= limit {
			return limit
		}
	}
	return row[len(b)]
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
