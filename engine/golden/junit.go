package golden

import (
	"encoding/xml"
	"io"
)

// JUnit writes results as a JUnit XML report, the form that CI systems read:
// one testsuite, times in seconds.
func JUnit(w io.Writer, suite string, results []Result) error {
	type message struct {
		Text string `xml:",cdata"`
	}
	type testcase struct {
		Name    string   `xml:"name,attr"`
		Class   string   `xml:"classname,attr"`
		Seconds float64  `xml:"time,attr"`
		Failure *message `xml:"failure"`
		Skipped *message `xml:"skipped"`
	}
	report := struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Cases    []testcase `xml:"testcase"`
	}{Name: suite, Tests: len(results)}
	for _, r := range results {
		c := testcase{Name: r.Name, Class: suite, Seconds: r.Took.Seconds()}
		switch r.Status {
		case Failed:
			report.Failures++
			c.Failure = &message{r.Detail}
		case Skipped:
			report.Skipped++
			c.Skipped = &message{r.Detail}
		}
		report.Cases = append(report.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(report); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
