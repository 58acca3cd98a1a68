package main

import (
	"os"
	"regexp"
	"slices"
	"sync"
	"testing"

	urfave "github.com/urfave/cli/v2"

	"jobledger/cmd/jobledger/internal/cli"
)

// ofTheMoment is what an answer has of the moment at which it was made: what the follower has read and
// verified.
var ofTheMoment = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)<footer.*?</footer>|data-read="[^"]*"`)
})

// flagVariables are all that give a flag of this program its value.
func flagVariables(p *program) (names []string) {
	flags := cli.GlobalFlags("cli:test")
	for _, v := range p.verbs() {
		flags = append(flags, v.Flags...)
	}
	for _, f := range flags {
		if d, ok := f.(urfave.DocGenerationFlag); ok {
			names = append(names, d.GetEnvVars()...)
		}
	}
	names = append(names, cli.ArchiveEnv, "JOBLEDGER_JOB", "JOBLEDGER_API_TOKEN")
	slices.Sort(names)
	return slices.Compact(names)
}

// The answers of serve are the same whatever the variables of its environment are: the one who asks is
// another user, who does not know them.
func TestServeIgnoresItsEnvironment(t *testing.T) {
	s := importNight(t)
	served := serveStore(t, s.Store, atMorning)
	fetch := getter(t, served)
	const job = "01KKQGAZ43CWGCX9CD0BRFPDB6"
	paths := []string{"/", "/jobs", "/jobs?state=failed", "/jobs?find=mail", "/jobs/" + job, "/queues/mail",
		"/workers",
		"/failures", "/events", "/lanes", "/diff?from=pos:100&to=pos:2000", "/jobs?at=pos:2159",
		"/api/v1/status", "/api/v1/queues", "/api/v1/workers?all=true", "/api/v1/jobs?limit=5",
		"/api/v1/jobs/" + job, "/api/v1/jobs/" + job + "/events", "/api/v1/jobs/" + job + "/why",
		"/api/v1/jobs/" + job + "/owner", "/api/v1/events?last=5", "/api/v1/attempts?limit=5",
		"/api/v1/jobs?limit=0", "/api/v1/jobs/01KKQG", "/api/v1/jobs/0", "/api/v1/status?at=never"}
	ask := func() (answers []string) {
		for _, path := range paths {
			_, _, body := fetch(path)
			answers = append(answers, ofTheMoment().ReplaceAllString(body, ""))
		}
		return answers
	}
	ask() // the follower has read the ledger
	want := ask()
	names := flagVariables(&program{&cli.Program{}})
	if len(names) < 15 {
		t.Fatalf("the variables are %q", names)
	}
	for _, value := range []string{"1", "false", "sweeper:root", "../no such folder", "\x1b[31m\u202e"} {
		for _, name := range names {
			t.Setenv(name, value)
		}
		for i, got := range ask() {
			if got != want[i] {
				t.Errorf("with %q in each variable, %s answers\n%s\nwithout them\n%s", value, paths[i], got, want[i])
			}
		}
	}
	for _, name := range names {
		check(t, os.Unsetenv(name))
	}
}
