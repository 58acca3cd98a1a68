package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// payloadBytes is the size of every job's payload.
const payloadBytes = 100

// args is a job's payload as engines with typed jobs take it. Its JSON is the payload of those that take
// bytes.
type args struct {
	N   int    `json:"n"`   // 0, 1, 2… within a run
	Pad string `json:"pad"` // makes the JSON payloadBytes long
}

func newArgs(n int) args {
	empty := len(`{"n":,"pad":""}`) + len(strconv.Itoa(n))
	return args{N: n, Pad: strings.Repeat("x", payloadBytes-empty)}
}

func newPayload(n int) []byte {
	b, err := json.Marshal(newArgs(n))
	if err != nil || len(b) != payloadBytes {
		panic(fmt.Sprintf("payload %d: %d bytes, %v", n, len(b), err)) // a number of more than 80 digits
	}
	return b
}

func parsePayload(b []byte) (args, error) {
	var a args
	err := json.Unmarshal(b, &a)
	return a, err
}
