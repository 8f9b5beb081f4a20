package db

import (
	"os"
	"strings"
	"testing"
)

// An administrator makes the table as the program does.
func TestTableInDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), " ")
	for _, sql := range onceTable.Make[Postgres] {
		if !strings.Contains(text, strings.Join(strings.Fields(sql), " ")+";") {
			t.Errorf("docs/security.md does not say:\n%s", sql)
		}
	}
}
