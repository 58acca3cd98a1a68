package main

import (
	"runtime"
	"testing"

	"jobledger/cmd/jobledger/internal/buildinfo"
)

func TestBuildString(t *testing.T) {
	revision, short, day, yes, no := "0123456789abcdef0123", "0123", "2026-05-04T12:00:00Z", true, false
	tests := []struct {
		build buildinfo.Build
		want  string
	}{
		{buildinfo.Build{Version: "v1.2.3"}, "v1.2.3, go1.26 linux/arm64"},
		{buildinfo.Build{Version: "v1.2.3", Revision: &revision, Modified: &no},
			"v1.2.3 0123456789ab, go1.26 linux/arm64"},
		{buildinfo.Build{Version: "(devel)", Revision: &short, Modified: &yes, Time: &day},
			"(devel) 0123 (modified) of 2026-05-04T12:00:00Z, go1.26 linux/arm64"},
	}
	for _, tt := range tests {
		tt.build.Go, tt.build.OS, tt.build.Arch = "go1.26", "linux", "arm64"
		if got := tt.build.String(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestReadKnowsTheRunningProgram(t *testing.T) {
	b := buildinfo.Read()
	if b.Version == "" || b.Go != runtime.Version() || b.OS != runtime.GOOS || b.Arch != runtime.GOARCH {
		t.Errorf("got %+v", b)
	}
}
