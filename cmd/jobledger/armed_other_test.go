//go:build !linux

package main

import "os/exec"

func endsWithTest(*exec.Cmd) {}
