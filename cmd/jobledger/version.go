package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"jobledger/cmd/jobledger/internal/cli"
)

// versionVerb prints which build this is; also as "jobledger --version".
func versionVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "version", Group: cli.GroupSetUp, Usage: "print the version of this program",
		Examples: []cli.Example{
			{"jobledger version", "one line for a bug report"},
			{"jobledger version --json", "the same for a script"},
		},
		Run: func(*cli.Context) error {
			info, _ := debug.ReadBuildInfo()
			b := readBuild(info)
			if p.JSON {
				return p.PrintJSON(b)
			}
			return p.PrintLine(b.String())
		},
	}
}

// build is what the Go toolchain has written into the binary about its making.
type build struct {
	Version  string  `json:"version"` // "(devel)" when not built from a tagged module
	Revision *string `json:"revision"`
	Time     *string `json:"time"`
	Modified *bool   `json:"modified"`
	Go       string  `json:"go"`
	OS       string  `json:"os"`
	Arch     string  `json:"arch"`
}

// readBuild takes from info, which may be nil, what is there.
func readBuild(info *debug.BuildInfo) build {
	b := build{Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info == nil {
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
			modified := s.Value == "true"
			b.Modified = &modified
		}
	}
	return b
}

// String is the build in one line.
func (b build) String() string {
	text := cli.ProgramName + " " + b.Version
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
