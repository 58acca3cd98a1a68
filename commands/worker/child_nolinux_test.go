//go:build unix && !linux

package worker

func firstProcess() {}
