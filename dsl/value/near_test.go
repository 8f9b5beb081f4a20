package value

import "testing"

func TestNear(t *testing.T) {
	known := []string{"id", "description", "amount_cents", "query", "статус"}
	for name, want := range map[string]string{
		"descripton":   "description",
		"qery":         "query",
		"querry":       "query",
		"ids":          "id",
		"di":           "id",
		"qurey":        "query",
		"uqreyx":       "",
		"amountCents":  "amount_cents",
		"cents":        "",
		"":             "",
		"id":           "",
		"x":            "",
		"zzzzzzzzzzzz": "",
		"стату":        "статус",
	} {
		if got := Near(name, known); got != want {
			t.Errorf("Near(%q) = %q, want %q", name, got, want)
		}
	}
}
