package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/ledger/event"
)

// An answer of any length that the server cannot end is cut off: no client takes it for a whole one.
func TestDownloadsAreCutOff(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	token := s.create("a", []string{"mail"}, access.Read, access.Bodies)
	service := &commands.Service{Store: s.Store}
	worker := event.Worker{Name: "w1", Boot: "01KDY9FY88BT00000000000001", Host: "build7", PID: 4242}
	jobs, err := service.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"}, Worker: worker})
	if err != nil || len(jobs) != 1 {
		t.Fatal(jobs, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 { // plain, and compressed
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/api/v1/jobs/"+string(s.job)+
			"/logs/1/out?follow=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", token)
		answer, err := s.client.Do(r)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatal(answer, err)
		}
		defer answer.Body.Close()
		defer func() {
			if text, err := io.ReadAll(answer.Body); !errors.Is(err, io.ErrUnexpectedEOF) || len(text) > 0 {
				t.Errorf("after the server has ended: %q, %v", text, err)
			}
		}()
		s.client.Transport = &http.Transport{DisableCompression: true}
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}
