package shape

import (
	"slices"
	"testing"
)

func TestFormats(t *testing.T) {
	texts := map[string][2][]string{ // good, bad
		"date":      {{"2024-02-29", "2000-02-29", "1999-12-31", "0001-01-01"}, {"", "2023-02-29", "1900-02-29", "2024-13-01", "2024-00-10", "2024-01-00", "2024-04-31", "24-01-01", "2024-1-01", "2024-01-01T", "2024/01/01", "２024-01-01"}},
		"time":      {{"10:00", "10:00:59", "10:00:00.123", "23:59:59Z", "10:00:00+02:00"}, {"", "24:00", "10:60", "10:00:60", "1:00", "10:00:", "10:00:00.", "10:00 ", "10:00:00+2", "10:00z"}},
		"date-time": {{"2024-01-15T10:30:00Z", "2024-01-15T10:30:00.123456-07:30"}, {"2024-01-15", "2024-01-15T", "2024-01-15T10:30Z", "2024-01-15T10:30:00", "2024-01-15 10:30:00Z", "2024-02-30T10:30:00Z", "2024-01-15T10:30:00Z\n", "2024-01-15t10:30:00z"}},
		"duration":  {{"P1D", "PT5M", "P1Y2M3DT4H5M6S", "P3W", "PT0.5S"}, {"", "P", "PT", "1D", "P1D ", "P1DT", "PT1.5M", "P1M1Y", "P1.S", "PW", "P1H"}},
		"email":     {{"a@b.co", "first.last+tag@sub.example.com", "o'neil@x.org"}, {"", "a", "a@b", "@b.co", "a@", ".a@b.co", "a.@b.co", "a..b@c.de", "a b@c.de", "a@-b.co", "a@b.c", "a@b.1a", "a@b..co", "Ada <a@b.co>", "a@b.co\n"}},
		"hostname":  {{"localhost", "a-b.example.com", "1.example"}, {"", "-a.com", "a-.com", "a..b", "a_b.com", "é.com"}},
		"uri":       {{"https://x.y/z?q=1#f", "mailto:a@b.co", "urn:isbn:1"}, {"", "nope", "//x.y", "http:", "https://x y", "https://x.y/<a>", "https://x.y/é", "://x"}},
		"uuid":      {{"123e4567-e89b-12d3-a456-426614174000", "00000000-0000-0000-0000-000000000000", "FFFFFFFF-ffff-ffff-ffff-FFFFFFFFFFFF"}, {"", "nope", "123e4567e89b12d3a456426614174000", "{123e4567-e89b-12d3-a456-426614174000}", "123e4567-e89b-12d3-a456-42661417400g"}},
		"ipv4":      {{"1.2.3.4", "255.255.255.255"}, {"", "1.2.3", "1.2.3.256", "01.2.3.4", "::1", "1.2.3.4/8"}},
		"ipv6":      {{"::1", "2001:db8::8a2e:370:7334"}, {"", "1.2.3.4", "::g", "fe80::1%eth0", "::1/64"}},
		"ip":        {{"1.2.3.4", "::1"}, {"", "localhost"}},
		"cidr":      {{"10.0.0.0/8", "::/0"}, {"", "10.0.0.0", "10.0.0.0/33"}},
		"base64":    {{"", "aGk=", "aGkh"}, {"aGk", "a", "aGk=\n", "a_k="}},
		"regex":     {{"", "^a+$"}, {"(", "a**"}},
	}
	for _, f := range Formats {
		cases, ok := texts[f]
		if !ok {
			t.Errorf("no cases for %s", f)
		}
		for i, want := range []bool{true, false} {
			for _, s := range cases[i] {
				if hasFormat(f, s) != want || hasFormat(f, []byte(s)) != want {
					t.Errorf("%s, %q: want %v", f, s, want)
				}
			}
		}
	}
	if !slices.IsSorted(Formats) {
		t.Error("Formats are not sorted")
	}
	if KnownFormat("dates") || !KnownFormat("date") || !KnownFormat(LayoutFormat("15:04")) {
		t.Error("KnownFormat is wrong")
	}
}
