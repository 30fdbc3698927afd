// The definitions of Flux's source-controller, which cannot be built: a module that it needs is not published.
module sluice.dev/test/cluster/flux

go 1.26.0

require github.com/fluxcd/source-controller v1.9.0
