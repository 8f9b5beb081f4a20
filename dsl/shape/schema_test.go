package shape

import (
	"regexp"
	"strings"
	"testing"
)

func TestSchema(t *testing.T) {
	re := regexp.MustCompile
	for _, c := range []struct {
		name, want string
		s          *Shape
	}{
		{"empty struct", `{"type":"object","properties":{},"additionalProperties":false}`, structOf()},
		{"open struct", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":{}}`,
			&Shape{Kind: Struct, Fields: []*Field{{Name: "a", Shape: text()}}, Rest: &Shape{}}},
		{"map", `{"type":"object","properties":{"m":{"type":"object","propertyNames":{"type":"string"},"additionalProperties":{"type":"number"}}},"required":["m"],"additionalProperties":false}`,
			structOf(&Field{Name: "m", Shape: &Shape{Kind: Struct, Rest: &Shape{Kind: Float}}})},
		{"map at the top", `{"type":"object","properties":{},"additionalProperties":{"type":"number"}}`, &Shape{Kind: Struct, Rest: &Shape{Kind: Float}}},
		{"patterns of keys", `{"type":"object","properties":{},"patternProperties":{"^x-":{"type":"string"}},"additionalProperties":false}`,
			&Shape{Kind: Struct, KeyPatterns: []PatternField{{re("^x-"), text()}}}},
		{"notes, defaults, examples", `{"type":"object","properties":{` +
			`"n":{"type":"integer","minimum":1,"title":"N","description":"How \"many\"","default":20,"examples":[5]},` +
			`"s":{"type":"string","examples":["5","x"]},"o":{"type":"boolean"}},"required":["s"],"additionalProperties":false}`,
			structOf(
				&Field{Name: "n", Shape: whole1(), Title: "N", Description: `How "many"`, HasDefault: true, Default: int64(20), Examples: []string{"5"}},
				&Field{Name: "s", Shape: text(), Examples: []string{"5", "x"}},
				&Field{Name: "o", Shape: &Shape{Kind: Bool}, Optional: true})},
		{"numbers", `{"type":"number","exclusiveMinimum":-0.5,"maximum":1000000000000000000000,"multipleOf":0.01,"not":{"enum":[1,2.5]}}`,
			&Shape{Kind: Float, Min: &Bound{"-0.5", true}, Max: &Bound{Value: "1000000000000000000000"}, MultipleOf: "0.01", Not: []any{int64(1), 2.5}}},
		{"texts", `{"type":"string","minLength":1,"maxLength":9,"format":"email","pattern":"^a","not":{"const":"ab"},"allOf":[{"pattern":"z$"},{"not":{"pattern":"q"}}]}`,
			&Shape{Kind: String, MinRunes: 1, MaxRunes: 9, Format: "email", Not: []any{"ab"}, Patterns: []Pattern{{Re: re("^a")}, {Re: re("z$")}, {re("q"), true}}}},
		{"base64", `{"type":"string","contentEncoding":"base64"}`, &Shape{Kind: String, MaxRunes: -1, Format: "base64"}},
		{"ip", `{"type":"string","anyOf":[{"format":"ipv4"},{"format":"ipv6"}]}`, &Shape{Kind: String, MaxRunes: -1, Format: "ip"}},
		{"layout", `{"type":"string","allOf":[{"pattern":"^[0-9]{1,2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?$"}]}`, &Shape{Kind: String, MaxRunes: -1, Format: LayoutFormat("15:04:05")}},
		{"layout of words", `{"type":"string"}`, &Shape{Kind: String, MaxRunes: -1, Format: LayoutFormat("Jan 2 2006")}},
		{"constants", `{"type":"string","const":"x"}`, &Shape{Kind: Const, Const: "x"}},
		{"constant number", `{"type":"number","const":5}`, &Shape{Kind: Const, Const: int64(5)}},
		{"enum", `{"type":"string","enum":["a","b"]}`, enumOf("a", "b")},
		{"enum or null", `{"anyOf":[{"type":"string","enum":["a","b"]},{"type":"null"}]}`, &Shape{Kind: Union, Alts: append(enumOf("a", "b").Alts, &Shape{Kind: Null})}},
		{"enum and others", `{"anyOf":[{"type":"string","enum":["a","b"]},{"type":"number","const":1},{"type":"boolean"}]}`,
			&Shape{Kind: Union, Alts: append(enumOf("a", int64(1), "b").Alts, &Shape{Kind: Bool})}},
		{"or null", `{"anyOf":[{"type":"integer","minimum":1},{"type":"null"}]}`, orNull(whole1())},
		{"list", `{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":3,"uniqueItems":true}`,
			&Shape{Kind: List, Items: text(), MinItems: 1, MaxItems: 3, Unique: true}},
		{"tuple", `{"type":"array","prefixItems":[{"type":"string"},{}],"items":false,"minItems":2,"maxItems":2}`,
			&Shape{Kind: List, Prefix: []*Shape{text(), {}}, MinItems: 2, MaxItems: 2}},
		{"open tuple", `{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"boolean"},"minItems":1}`,
			&Shape{Kind: List, Prefix: []*Shape{text()}, Items: &Shape{Kind: Bool}, MinItems: 1, MaxItems: -1}},
		{"any", `{}`, &Shape{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(c.s.AppendSchema(nil)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestMaskedSchema(t *testing.T) {
	node := structOf(&Field{Name: "name", Shape: whole1()})
	node.Name = "Node"
	node.Fields = append(node.Fields, &Field{Name: "kids", Shape: listOf(node), Optional: true})
	s := structOf(
		&Field{Name: "email", Shape: enumOf("a", "b"), Description: "Whom"},
		&Field{Name: "plain", Shape: text()},
		&Field{Name: "gone", Shape: whole1()},
		&Field{Name: "lines", Shape: listOf(structOf(&Field{Name: "cost", Shape: whole1()}, &Field{Name: "n", Shape: whole1()}))},
		&Field{Name: "tags", Shape: listOf(whole1())},
		&Field{Name: "tree", Shape: node},
		&Field{Name: "forest", Shape: node},
	)
	mask := func(path []string) Mask {
		switch strings.Join(path, ".") {
		case "email", "plain", "lines.*.cost", "tags.*", "tree.kids.*.kids.*.name":
			return MayBeText
		case "gone":
			return MayBeGone
		}
		return 0
	}
	want := `{"type":"object","properties":{` +
		`"email":{"anyOf":[{"type":"string","enum":["a","b"]},{"type":"string"}],"description":"Whom"},` +
		`"plain":{"type":"string"},` +
		`"gone":{"type":"integer","minimum":1},` +
		`"lines":{"type":"array","items":{"type":"object","properties":{"cost":{"anyOf":[{"type":"integer","minimum":1},{"type":"string"}]},"n":{"type":"integer","minimum":1}},"required":["cost","n"],"additionalProperties":false}},` +
		`"tags":{"type":"array","items":{"anyOf":[{"type":"integer","minimum":1},{"type":"string"}]}},` +
		`"tree":{"$ref":"#/$defs/Node"},"forest":{"$ref":"#/$defs/Node"}},` +
		`"required":["email","plain","lines","tags","tree","forest"],"additionalProperties":false,` +
		`"$defs":{"Node":{"type":"object","properties":{"name":{"anyOf":[{"type":"integer","minimum":1},{"type":"string"}]},"kids":{"type":"array","items":{"$ref":"#/$defs/Node"}}},"required":["name"],"additionalProperties":false}}}`
	if got := string(s.AppendMaskedSchema(nil, mask)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestPatternsInTheSchema(t *testing.T) {
	for re, want := range map[string]string{
		`^[a-z]{2}-\d+$`:       `^[a-z]{2}-\d+$`,
		`(?:a|b)c`:             `(?:a|b)c`,
		`(?i)^ab-1$`:           `^[Aa][Bb]-1$`,
		`\Aab\z`:               `^ab$`,
		`(?P<y>\d{4})-(?s:.)+`: `(?:(?:[0-9]){4})-(?:[\s\S])+`,
		`(?s).`:                `[\s\S]`,
		`[[:alpha:]]_`:         `[A-Za-z]_`,
		`(?i)é|x.*?`:           `[Éé]|[Xx](?:[^\n])*?`,
		`(?U)a+`:               `(?:a)+?`,
		`(?i)[^a]`:             `[^Aa]`,
		`\x{1F600}|\Q.*\E`:     `😀|\.\*`,
		`(?m)^a$`:              `(?:^|(?<=\n))a(?=\n|$)`,
	} {
		if got := schemaPattern(regexp.MustCompile(re)); got != want {
			t.Errorf("%s: got %s, want %s", re, got, want)
		}
	}
}
