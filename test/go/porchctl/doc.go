// Package porchctl names the version of Porch's own command line that the tests run against the server; see the tool in go.mod.
package porchctl
