// Package buildinfo says which build of a program this is, by what the Go toolchain has written into it.
//
// Held by TestBuildString, TestReadKnowsTheRunningProgram and TestScripts/version of the program.
package buildinfo

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// ProgramName is the name of the program.
const ProgramName = "jobledger"

// Build is a build of the program, also as JSON. What is not known is null there.
type Build struct {
	Version  string  `json:"version"` // "(devel)" when not built from a tagged module
	Revision *string `json:"revision"`
	Time     *string `json:"time"`
	Modified *bool   `json:"modified"`
	Go       string  `json:"go"`
	OS       string  `json:"os"`
	Arch     string  `json:"arch"`
}

// The version of a release: the linker sets these (-ldflags -X); they are empty in other builds.
var release, revision, time string

// Read returns the build of the running program.
func Read() Build {
	b := Build{Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if release != "" {
		modified := false
		b.Version, b.Revision, b.Time, b.Modified = release, known(revision), known(time), &modified
		return b
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = &s.Value
		case "vcs.time":
			b.Time = &s.Value
		case "vcs.modified":
			b.Modified = new(s.Value == "true")
		}
	}
	return b
}

// known returns text, or nil where it is empty.
func known(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// String is the build in one line, without the program's name.
func (b Build) String() string {
	text := b.Version
	if b.Revision != nil {
		text += " " + (*b.Revision)[:min(12, len(*b.Revision))]
		if b.Modified != nil && *b.Modified {
			text += " (modified)"
		}
	}
	if b.Time != nil {
		text += " of " + *b.Time
	}
	return text + fmt.Sprintf(", %s %s/%s", b.Go, b.OS, b.Arch)
}
