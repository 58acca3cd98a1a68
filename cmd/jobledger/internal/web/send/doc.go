// Package send answers with what has any length: exports, and what commands wrote. It is sent as it is read.
//
//	d.Add(send.New(api).Routes()...)
//
// Files in reading order: download.go (how), export.go, logs.go.
//
// Held by TestExportsOverHTTP, TestServeLogs and TestListsAsLinesAreWhole of the program, and by
// TestDownloadsAreCutOff of the server.
package send
