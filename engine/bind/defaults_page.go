package bind

import (
	"strconv"
	"strings"
)

// pageTop is what holds for all error rules.
const pageTop = "<!-- Made from engine/bind by: go test ./engine/bind -run Page -update -->\n" + `# Errors

What an agent reads of a failure is declared: by an error rule of the spec, or by the table below. Nothing that a database, its driver or a service said is passed on; a rule can pick it out (` + "`{{ body.message }}`" + `).

## Which rule holds

` + "`deny`" + ` is looked at before the binding: that of the server, of the group, of the tool. ` + "`errors`" + ` are looked at after it: those of the step, the tool, its group, the server, and of the service that was asked. The first rule that holds wins.

- A rule with ` + "`sqlstate`" + ` speaks of a refusal by the database, one with ` + "`status`" + ` of a refusal by a service. Any other speaks of finished answers: ` + "`result == nil`" + ` never takes a broken connection for a missing row.
- A rule whose ` + "`when`" + ` reads ` + "`status`" + ` speaks of refusals by a service too. One that reads only ` + "`body`" + ` speaks of finished answers.
- After any failure a write is rolled back, undos run (see [steps](steps.md)), and nothing is kept under an idempotency key. A rule with ` + "`severity: \"warning\"`" + ` about a finished answer is no failure: the write stays.
- A tool's ` + "`one: true`" + ` that finds no row is NOT_FOUND.

## Without a rule

Where it says so, the same call may succeed later. Of a tool that is no query and not ` + "`idempotent`" + `, the answer also says whether nothing was changed or a part of the call may have taken effect: a service was asked to change something and that was not undone, or the server did not tell how a commit ended. Then it advises against a retry.
`

const pageEnd = `
Every other SQLSTATE and status of 400 or more is INTERNAL_ERROR: the answer has the id of an incident, the log has the cause under it.

## Of the server itself

| code | when |
|---|---|
| VALIDATION_ERROR | the arguments do not fit; more elements than a step with ` + "`each`" + ` takes |
| NOT_FOUND | a tool's ` + "`one: true`" + ` found no row |
| UNKNOWN_TOOL | there is no such tool for this caller |
| UNAUTHORIZED | a ` + "`session`" + ` of a database needs what is not known of the caller |
| FORBIDDEN | a ` + "`database: \"{{ … }}\"`" + ` gives no declared database for the caller |
| CONFLICT | an idempotency key was used with other arguments, or its first call still runs |
| SERVER_BUSY | ` + "`concurrency`" + ` of the tool: all places to run and to wait are taken |
| TIMEOUT | ` + "`timeout`" + ` of the tool ran out |
| INTERNAL_ERROR | anything else: an expression that failed, a row that does not fit the presenter, a part that could not be undone (severity critical: an operator must look) |
`

// AppendPage appends the page of the docs that Defaults makes.
func AppendPage(dst []byte) []byte {
	var b strings.Builder
	b.WriteString(pageTop)
	table := func(title, first string, key func(*Default) string) {
		b.WriteString("\n### " + title + "\n\n| " + first + " | means | code | message | recovery | retry |\n|---|---|---|---|---|---|\n")
		for i := range Defaults {
			d := &Defaults[i]
			k := key(d)
			if k == "" {
				continue
			}
			retry := "no"
			if d.Retry {
				retry = "yes"
			}
			b.WriteString("| " + strings.Join([]string{k, d.Means, d.Code, d.Message, d.Suggestion, retry}, " | ") + " |\n")
		}
	}
	table("Databases", "SQLSTATE", func(d *Default) string {
		names := make([]string, len(d.States))
		for i, s := range d.States {
			if names[i] = s; len(s) == 2 {
				names[i] += "…"
			}
		}
		return strings.Join(names, ", ")
	})
	table("Services", "status", func(d *Default) string {
		names := make([]string, len(d.Status))
		for i, s := range d.Status {
			names[i] = strconv.Itoa(s)
		}
		return strings.Join(names, ", ")
	})
	table("On the way", "what went wrong", func(d *Default) string { return d.Trouble })
	b.WriteString(pageEnd)
	return append(dst, b.String()...)
}
