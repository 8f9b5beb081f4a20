package shape

import (
	"encoding/base64"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Formats are the names that Shape.Format and @format may have, besides a
// layout (LayoutFormat). They are checked strictly and over the whole text.
var Formats = []string{
	"base64", "cidr", "date", "date-time", "duration", "email", "hostname",
	"ip", "ipv4", "ipv6", "regex", "time", "uri", "uuid",
}

const layoutPrefix = "layout:"

// LayoutFormat gives the format of texts in a layout of Go's package time,
// CUE's time.Format.
func LayoutFormat(layout string) string {
	switch layout {
	case time.DateOnly:
		return "date"
	case time.RFC3339, time.RFC3339Nano:
		return "date-time"
	}
	return layoutPrefix + layout
}

// Layout gives the layout of a format that is one.
func Layout(format string) (string, bool) { return strings.CutPrefix(format, layoutPrefix) }

// KnownFormat tells whether a format is checked; others must not get into a shape.
func KnownFormat(format string) bool {
	_, ok := Layout(format)
	return ok || slices.Contains(Formats, format)
}

// hasFormat checks a text; dates, times, UUIDs without allocation, for they
// stand in every row.
func hasFormat[T string | []byte](format string, t T) bool {
	switch format {
	case "date":
		return len(t) == 10 && isDate(t)
	case "time":
		return isTime(t, false)
	case "date-time":
		return len(t) > 10 && isDate(t[:10]) && t[10] == 'T' && isTime(t[11:], true)
	case "uuid":
		return isUUID(t)
	}
	return textHasFormat(format, string(t))
}

func textHasFormat(format, t string) bool {
	switch format {
	case "base64":
		_, err := base64.StdEncoding.Strict().DecodeString(t)
		return err == nil && !strings.ContainsAny(t, "\r\n")
	case "cidr":
		_, err := netip.ParsePrefix(t)
		return err == nil
	case "duration":
		return isDuration(t)
	case "email":
		return isEmail(t)
	case "hostname":
		return isHostname(t)
	case "ip", "ipv4", "ipv6":
		a, err := netip.ParseAddr(t)
		return err == nil && a.Zone() == "" && (format == "ip" || a.Is4() == (format == "ipv4"))
	case "regex":
		_, err := regexp.Compile(t)
		return err == nil
	case "uri":
		return isURI(t)
	}
	if layout, ok := Layout(format); ok {
		_, err := time.Parse(layout, t)
		return err == nil
	}
	return false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// two reads two digits, -1 if there are none.
func two[T string | []byte](t T) int {
	if len(t) < 2 || !isDigit(t[0]) || !isDigit(t[1]) {
		return -1
	}
	return int(t[0]-'0')*10 + int(t[1]-'0')
}

// isDate checks YYYY-MM-DD on the calendar; t has ten bytes.
func isDate[T string | []byte](t T) bool {
	century, year, month, day := two(t), two(t[2:]), two(t[5:]), two(t[8:])
	if century < 0 || year < 0 || t[4] != '-' || t[7] != '-' || month < 1 || month > 12 {
		return false
	}
	last := daysOf[month-1]
	if month == 2 && year%4 == 0 && (year != 0 || century%4 == 0) {
		last = 29
	}
	return day >= 1 && day <= last
}

var daysOf = [12]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// isTime checks HH:MM:SS[.fraction] and a zone, Z or ±HH:MM. Only within a
// date-time seconds and zone must be there: SQL has times without zones.
func isTime[T string | []byte](t T, full bool) bool {
	h, m := two(t), -1
	if len(t) >= 5 && t[2] == ':' {
		m = two(t[3:])
	}
	if h < 0 || h > 23 || m < 0 || m > 59 {
		return false
	}
	t = t[5:]
	if len(t) > 0 && t[0] == ':' {
		if s := two(t[1:]); s < 0 || s > 59 {
			return false
		}
		t = t[3:]
		if len(t) > 1 && t[0] == '.' && isDigit(t[1]) {
			for t = t[1:]; len(t) > 0 && isDigit(t[0]); {
				t = t[1:]
			}
		}
	} else if full {
		return false
	}
	return isZone(t, full)
}

func isZone[T string | []byte](t T, full bool) bool {
	switch {
	case len(t) == 0:
		return !full
	case len(t) == 1:
		return t[0] == 'Z'
	case len(t) != 6 || t[0] != '+' && t[0] != '-' || t[3] != ':':
		return false
	}
	h, m := two(t[1:]), two(t[4:])
	return h >= 0 && h <= 23 && m >= 0 && m <= 59
}

// isUUID checks the layout of RFC 9562, of any version and variant: what
// databases take.
func isUUID[T string | []byte](t T) bool {
	if len(t) != 36 {
		return false
	}
	for i := range 36 {
		switch c := t[i]; i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
				return false
			}
		}
	}
	return true
}

// isDuration checks ISO 8601: P1Y2M3DT4H5M6S, P3W; the last part of a time
// may have a fraction.
func isDuration(t string) bool {
	rest, ok := strings.CutPrefix(t, "P")
	if !ok {
		return false
	}
	if weeks, ok := strings.CutSuffix(rest, "W"); ok {
		return allDigits(weeks)
	}
	date, clock, hasClock := strings.Cut(rest, "T")
	if hasClock && clock == "" || date == "" && clock == "" {
		return false
	}
	return durationParts(date, "YMD") && durationParts(clock, "HMS")
}

func durationParts(t, units string) bool {
	for t != "" {
		end := strings.IndexFunc(t, func(r rune) bool { return !(r >= '0' && r <= '9' || r == '.') })
		if end <= 0 {
			return false
		}
		number, unit := t[:end], strings.IndexByte(units, t[end])
		if unit < 0 {
			return false
		}
		if whole, fraction, ok := strings.Cut(number, "."); ok && (units[unit] != 'S' || !allDigits(whole) || !allDigits(fraction)) {
			return false
		}
		t, units = t[end+1:], units[unit+1:]
	}
	return true
}

func allDigits(t string) bool {
	return t != "" && strings.Trim(t, "0123456789") == ""
}

// isEmail checks an address as the recorded validator does: no quotes, no
// comments, no dots side by side, a domain with a dot.
func isEmail(t string) bool {
	local, domain, ok := strings.Cut(t, "@")
	if !ok || local == "" || strings.HasPrefix(local, ".") || strings.HasSuffix(local, ".") || strings.HasSuffix(local, "'") || strings.Contains(local, "..") {
		return false
	}
	for i := range len(local) {
		if c := local[i]; !isLetter(c) && !isDigit(c) && !strings.ContainsRune("_'+-.", rune(c)) {
			return false
		}
	}
	labels := strings.Split(domain, ".")
	top := labels[len(labels)-1]
	if len(labels) < 2 || len(top) < 2 || strings.ContainsFunc(top, func(r rune) bool { return r > 127 || !isLetter(byte(r)) }) {
		return false
	}
	return !slices.ContainsFunc(labels, func(l string) bool { return !isLabel(l) })
}

func isHostname(t string) bool {
	return len(t) <= 253 && !slices.ContainsFunc(strings.Split(t, "."), func(l string) bool { return !isLabel(l) })
}

// isLabel checks one part of a host name (RFC 1123).
func isLabel(l string) bool {
	if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' {
		return false
	}
	for i := range len(l) {
		if c := l[i]; !isLetter(c) && !isDigit(c) && c != '-' {
			return false
		}
	}
	return true
}

// isURI checks for a URI with a scheme (RFC 3986).
func isURI(t string) bool {
	for i := range len(t) {
		if c := t[i]; c <= ' ' || c > '~' || strings.IndexByte("<>\"{}|\\^`", c) >= 0 {
			return false
		}
	}
	u, err := url.Parse(t)
	return err == nil && u.Scheme != "" && (u.Host != "" || u.Opaque != "" || u.Path != "")
}
