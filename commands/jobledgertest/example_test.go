package jobledgertest_test

import (
	"context"
	"flag"
	"fmt"
	"testing"

	"jobledger/commands"
	"jobledger/commands/jobledgertest"
	"jobledger/commands/worker"
)

// A test of a handler: the first attempt fails, the clock moves on, the second one succeeds.
func Example() {
	var mux worker.Mux
	worker.Handle(&mux, "mail", func(ctx context.Context, job worker.Job[string]) (any, error) {
		if job.Attempt == 1 {
			return nil, worker.Error{Code: "smtp_4xx"}
		}
		return "sent to " + job.Args, nil
	})
	var result []byte
	test := func(t *testing.T) { // func TestMail(t *testing.T)
		l := jobledgertest.New(t)
		job := l.Run(&mux, commands.Enqueue{Queue: "mail", Payload: []byte(`"Ada"`)})
		l.RequireKinds(job.ID, "enqueued claimed failed")
		l.RunToEnd(&mux)
		result = l.RequireSucceeded(job.ID).Result
	}
	run(test)
	fmt.Printf("%s\n", result)

	// Output:
	// "sent to Ada"
}

// run runs a test, whichever tests -run and -skip choose, and without the lines of -v, which are not part of
// the example's output.
func run(test func(*testing.T)) {
	for name, value := range map[string]string{"test.skip": "", "test.v": "false"} {
		f := flag.Lookup(name)
		was := f.Value.String()
		if err := f.Value.Set(value); err != nil {
			panic(err)
		}
		defer func() {
			if err := f.Value.Set(was); err != nil {
				panic(err)
			}
		}()
	}
	testing.RunTests(func(string, string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: "TestMail", F: test}})
}
