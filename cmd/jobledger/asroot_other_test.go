//go:build !linux

package main

// asRoot is for tests that run on Linux only.
func asRoot() { panic("only on Linux") }
