package dsl_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

const envSpec = `
-- a.cue --
package a

server: {name: "a", version: "1"}

#Secret: =~"^sk-[a-z]+$" @secret()
#Level: "low" | *"high"

let Host = "localhost"

env: {
	// Where it runs
	HOST:  string | *Host
	PORT:  int & >0 | *8383
	RATE:  number | *0.5
	DEBUG: bool | *false
	LEVEL: #Level
	TOKEN: #Secret
	KEY:   string | *"sk-default" @secret()
	URL:   string | *"http://\(HOST)"
	MORE?: string
}

databases: main: url: "postgres://app:\(env.TOKEN)@\(env.HOST):\(env.PORT)/\(env.KEY)"

tools: t: {
	kind:        "query"
	description: "On \(env.HOST)"
	value: {port: env.PORT, rate: env.RATE, debug: env.DEBUG, level: env.LEVEL, url: env.URL}
}
tools: u: {
	kind:        "query"
	description: "d"
	sql: query: "SELECT 1"
}
`

func TestEnv(t *testing.T) {
	write(t, envSpec)
	vars := map[string]string{"TOKEN": "sk-abc", "PORT": "9000", "DEBUG": "true", "RATE": "1.50", "UNDECLARED": "x"}
	var asked []string
	graphs, faults := dsl.Load([]string{"a.cue"}, dsl.Options{Env: func(name string) (string, bool) {
		asked = append(asked, name)
		s, ok := vars[name]
		return s, ok
	}})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	slices.Sort(asked)
	if got, want := strings.Join(slices.Compact(asked), " "), "DEBUG HOST KEY LEVEL MORE PORT RATE TOKEN URL"; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
	g := graphs[0]
	var b strings.Builder
	for _, v := range g.Env {
		fmt.Fprintf(&b, "%s %v value=%v secret=%v optional=%v %q\n", v.Name, v.At, v.Value, v.Secret, v.Optional, v.Description)
	}
	want := `HOST a.cue:12:2 value=localhost secret=false optional=false "Where it runs"
PORT a.cue:13:2 value=9000 secret=false optional=false ""
RATE a.cue:14:2 value=1.5 secret=false optional=false ""
DEBUG a.cue:15:2 value=true secret=false optional=false ""
LEVEL a.cue:16:2 value=high secret=false optional=false ""
TOKEN a.cue:17:2 value=<nil> secret=true optional=false ""
KEY a.cue:18:2 value=<nil> secret=true optional=false ""
URL a.cue:19:2 value=http://localhost secret=false optional=false ""
MORE a.cue:20:2 value=<nil> secret=false optional=true ""
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	url := g.Databases[0].URL.S
	if want := "postgres://app:" + graph.Marker("TOKEN") + "@localhost:9000/" + graph.Marker("KEY"); url != want {
		t.Errorf("url %q, want %q", url, want)
	}
	if got, want := graph.Concealed(url), "postgres://***@localhost:9000/env.KEY"; got != want {
		t.Errorf("concealed %q, want %q", got, want)
	}
	if got, want := g.Tool("t").Description, "On localhost"; got != want {
		t.Errorf("description %q, want %q", got, want)
	}
	if strings.Contains(fmt.Sprintf("%+v", g), "sk-abc") {
		t.Error("the graph holds a secret's value")
	}
	got := value.AppendJSON(nil, constOf(g.Tool("t").Value))
	if want := `{"port":9000,"rate":1.5,"debug":true,"level":"high","url":"http://localhost"}`; string(got) != want {
		t.Errorf("value %s, want %s", got, want)
	}
}

// constOf is a tree without holes as a value.
func constOf(n *graph.Node) any {
	switch n.Kind {
	case graph.String:
		return n.Text.S
	case graph.Struct:
		o := value.NewObject(len(n.Fields))
		for _, f := range n.Fields {
			o.Set(f.Name, constOf(f.Node))
		}
		return o
	case graph.List:
		l := []any{}
		for _, x := range n.Items {
			l = append(l, constOf(x))
		}
		return l
	}
	return n.Const
}

func TestEnvFaults(t *testing.T) {
	write(t, envSpec)
	vars := map[string]string{"TOKEN": "very-secret", "PORT": "-1", "DEBUG": "yes", "RATE": "fast", "LEVEL": "medium"}
	env := func(name string) (string, bool) { s, ok := vars[name]; return s, ok }
	_, faults := dsl.Load([]string{"a.cue"}, dsl.Options{Env: env})
	want := `a.cue:13:2: env.PORT: "-1" does not fit its type
a.cue:14:2: env.RATE: "fast" is not a number
a.cue:15:2: env.DEBUG: "yes" is not true or false
a.cue:16:2: env.LEVEL: "medium" is not one of "low", "high"
a.cue:17:2: env.TOKEN: does not fit its type`
	if faults.Error() != want {
		t.Errorf("got\n%s\nwant\n%s", faults.Error(), want)
	}
	// A secret of a wrong type is not shown either, whatever is made of it.
	write(t, strings.ReplaceAll(envSpec, "#Secret: =~\"^sk-[a-z]+$\" @secret()", "#Secret: int @secret()"))
	vars = map[string]string{"TOKEN": "very-secret"}
	_, faults = dsl.Load([]string{"a.cue"}, dsl.Options{Env: env})
	if got, want := faults.Error(), "a.cue:17:9: env.TOKEN: a secret must be a string"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	write(t, envSpec)
	vars = nil
	_, faults = dsl.Load([]string{"a.cue"}, dsl.Options{Env: env})
	if got, want := faults.Error(), "a.cue:17:2: env.TOKEN: is not set in the environment and has no default"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	loads(t, dsl.Options{Env: env, EnvMayMiss: true}, "a: t u\n", "a.cue")
}
