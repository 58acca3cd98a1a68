// Package apidoc reads the description of the API as its page shows it: operations with their parameters,
// bodies and answers, each in words, and the sections in which they stand.
//
// Files in reading order: document.go, schema.go.
//
// Held by TestPageOfTheAPI of package web, and by TestCommandsOfTheAPIPage of the program.
package apidoc
