package presenters

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// shared gives a folder of the data that lies beside the project: from the
// environment variable if it is set. It skips the test, saying so, where there
// is none.
func shared(t testing.TB, variable, name string) string {
	t.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", name)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no folder %s: set %s to run this test", dir, variable)
	}
	return dir
}

// TestToonSpecification runs the encode fixtures of the public TOON
// specification, version 4.0.
func TestToonSpecification(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shared(t, "FUSION_PEERS", "peers"), "toon", "encode", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	ran := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var fixtures struct {
			Version string
			Tests   []struct {
				Name, Expected string
				Input          json.RawMessage
				Options        struct {
					Delimiter  string
					IndentSize int
				}
			}
		}
		if err := json.Unmarshal(b, &fixtures); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if fixtures.Version != "4.0" {
			t.Errorf("%s is of version %s, not 4.0", file, fixtures.Version)
		}
		for _, x := range fixtures.Tests {
			in, err := value.Parse(x.Input)
			if err != nil {
				t.Fatalf("%s: %v", x.Name, err)
			}
			how := toon{delim: ',', indent: 2}
			if x.Options.Delimiter != "" {
				how.delim = x.Options.Delimiter[0]
			}
			if x.Options.IndentSize != 0 {
				how.indent = x.Options.IndentSize
			}
			if got := string(how.root(nil, in)); got != x.Expected {
				t.Errorf("%s: %s\n%s\ngot\n%s\nwant\n%s", filepath.Base(file), x.Name, x.Input, got, x.Expected)
			}
			ran++
		}
	}
	if ran < 173 {
		t.Errorf("only %d fixtures ran", ran)
	}
}

func TestToonNumbers(t *testing.T) {
	for in, want := range map[string]string{
		"1e21":                      "1000000000000000000000",
		"1e-7":                      "0.0000001",
		"-2.50":                     "-2.5",
		"1208925819614629174706176": "1208925819614629174706176",
		"1e400":                     "1" + strings.Repeat("0", 400),
		"1e999999999":               `"1e999999999"`,
		"0.10000000000000000000":    "0.10000000000000000000",
	} {
		v, err := value.Parse([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(appendToon(nil, v)); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
