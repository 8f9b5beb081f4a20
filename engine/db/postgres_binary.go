package db

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// pgBinary are the types that a column is asked for in binary form: a server
// takes longer to write a time as text than for the rest of a row.
var pgBinary = map[uint32]*pgType{
	pgtype.DateOID:        binaryOf(pgtype.DateOID, formBinaryDate),
	pgtype.TimestampOID:   binaryOf(pgtype.TimestampOID, formBinaryTimestamp),
	pgtype.TimestamptzOID: binaryOf(pgtype.TimestamptzOID, formBinaryTimestamptz),
}

func binaryOf(oid uint32, f pgForm) *pgType {
	t := *pgBuiltin[oid]
	t.form = f
	return &t
}

// inBinary takes the binary form of the columns that have one, and gives the
// format of each column; nil: all are texts.
func inBinary(fields []pgField, cells []*pgType) []int16 {
	var formats []int16
	for i, f := range fields {
		if b := pgBinary[f.oid]; b != nil {
			if formats == nil {
				formats = make([]int16, len(fields))
			}
			formats[i], cells[i] = 1, b
		}
	}
	return formats
}

// readBinary reads a date or a time; false for bytes that are none.
func (t *pgType) readBinary(rows *value.Rows, b []byte) bool {
	var text [64]byte
	dst := text[:0]
	switch {
	case t.form == formBinaryDate && len(b) == 4:
		dst = appendDays(dst, int32(binary.BigEndian.Uint32(b)))
	case t.form != formBinaryDate && len(b) == 8:
		dst = appendMicros(dst, int64(binary.BigEndian.Uint64(b)), t.form == formBinaryTimestamptz)
	default:
		return false
	}
	rows.Add(value.Text, dst)
	return true
}

// appendDays writes a date that counts days from the first one of 2000, as
// PostgreSQL does.
func appendDays(dst []byte, days int32) []byte {
	switch days {
	case math.MaxInt32:
		return append(dst, "infinity"...)
	case math.MinInt32:
		return append(dst, "-infinity"...)
	}
	dst, past := appendDate(dst, int64(days))
	if past {
		dst = append(dst, " BC"...)
	}
	return dst
}

const microsOfDay = 24 * 60 * 60 * 1_000_000

// appendMicros writes a time that counts microseconds from the beginning of
// 2000: as RFC 3339 has it, and before Christ as PostgreSQL does.
func appendMicros(dst []byte, micros int64, zoned bool) []byte {
	switch micros {
	case math.MaxInt64:
		return append(dst, "infinity"...)
	case math.MinInt64:
		return append(dst, "-infinity"...)
	}
	days, rest := micros/microsOfDay, micros%microsOfDay
	if rest < 0 {
		days, rest = days-1, rest+microsOfDay
	}
	dst, past := appendDate(dst, days)
	between, zone := byte('T'), "Z"
	if past {
		between, zone = ' ', "+00"
	}
	dst = appendClock(append(dst, between), rest)
	if zoned {
		dst = append(dst, zone...)
	}
	if past {
		dst = append(dst, " BC"...)
	}
	return dst
}

// appendDate writes the day that is so many days after the first one of 2000,
// and tells whether it is before Christ. The way is Howard Hinnant's: years
// begin in March, and 400 of them have the same days.
func appendDate(dst []byte, days int64) (_ []byte, past bool) {
	const marchOfYear0 = 730_425 // days from the first of March of the year 0 to 2000
	z := days + marchOfYear0
	era := z / 146_097
	if z < 0 {
		era = (z - 146_096) / 146_097
	}
	day := z - era*146_097
	year := (day - day/1460 + day/36_524 - day/146_096) / 365
	day -= 365*year + year/4 - year/100
	month := (5*day + 2) / 153
	day -= (153*month + 2) / 5
	year += era * 400
	if month += 3; month > 12 {
		month -= 12
		year++
	}
	if past = year <= 0; past {
		year = 1 - year
	}
	switch {
	case year < 10:
		dst = append(dst, "000"...)
	case year < 100:
		dst = append(dst, "00"...)
	case year < 1000:
		dst = append(dst, '0')
	}
	dst = strconv.AppendInt(dst, year, 10)
	dst = appendTwo(append(dst, '-'), month)
	return appendTwo(append(dst, '-'), day+1), past
}

// appendClock writes a time of day, without zeros at the end of its fraction.
func appendClock(dst []byte, micros int64) []byte {
	seconds, fraction := micros/1_000_000, micros%1_000_000
	dst = appendTwo(dst, seconds/3600)
	dst = appendTwo(append(dst, ':'), seconds/60%60)
	dst = appendTwo(append(dst, ':'), seconds%60)
	if fraction == 0 {
		return dst
	}
	dst = append(dst, '.')
	for unit := int64(100_000); fraction > 0; unit /= 10 {
		dst = append(dst, byte('0'+fraction/unit))
		fraction %= unit
	}
	return dst
}

func appendTwo(dst []byte, n int64) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }
