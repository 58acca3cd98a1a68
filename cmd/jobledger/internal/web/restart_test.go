package web

import (
	"context"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/worker"
	"jobledger/projection"
)

// A worker whose server is stopped and started again while it works keeps its claim, and goes on.
func TestWorkerSurvivesRestartOfTheServer(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	c := s.remote("all", access.Enqueue, access.Work)
	begun, goOn := make(chan struct{}, 2), make(chan struct{})
	w := &worker.Worker{Backend: c, Queues: []string{"mail"}, Slots: 1, MaxJobs: 2,
		Handler: worker.HandlerFunc(func(_ context.Context, job projection.Job) ([]byte, error) {
			begun <- struct{}{}
			<-goOn
			return []byte("done"), nil
		})}
	ended := make(chan error)
	var stats worker.Stats
	go func() {
		var err error
		stats, err = w.Run(t.Context())
		ended <- err
	}()
	<-begun // the job that is there from the beginning
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	goOn <- struct{}{}                 // it ends while there is no server
	time.Sleep(100 * time.Millisecond) // so that the worker meets it
	again := New(s.Config)
	listener, err := door.Listen(t.Context(), s.base[len("http://"):])
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- again.Serve(ctx, listener) }()
	if _, err := c.Enqueue(t.Context(), "", commands.Enqueue{Queue: "mail"}); err != nil {
		t.Fatal(err)
	}
	<-begun
	goOn <- struct{}{}
	if err := <-ended; err != nil || stats.Succeeded != 2 || stats.Lost != 0 {
		t.Errorf("the worker ended with %+v, %v", stats, err)
	}
	cancel()
	_ = c.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	commandstest.Verify(t, s.Store)
}
