//go:build unix && !linux

package child

// These are for tests that run on Linux only.
func asRoot(string)             { panic("only on Linux") }
func keeperProgram([]string)    { panic("only on Linux") }
func appendLine(string, string) { panic("only on Linux") }
