// Package wire has the JSON that producers and workers exchange with `jobledger serve`: what they send, what
// they get, and how both become the commands, jobs and errors of package commands. The server and the client
// in package remote use the same types.
//
// Durations are seconds, times are RFC 3339 in UTC with microseconds, bytes that are not UTF-8 are in a field
// whose name ends with _base64.
//
// Files in reading order: request.go and outcome.go (what is sent), job.go (what is answered), problem.go
// (errors), strict.go (the reading of untrusted JSON).
//
// Held by TestJSONIsRead, TestRemoteIsLikeAService, TestMinimalAnswers and
// TestRequestsOfProducersAndWorkersAreChecked of the server. This package is not part of the Go API, and
// may change in any release.
package wire
