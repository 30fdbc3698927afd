// Command kustomize runs the replacements of kustomize on a ResourceList: what apply-replacements does from v0.1.3 on, whose own code
// only reads the configuration and calls this filter.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/kustomize/api/filters/replacement"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	list := &kio.ByteReadWriter{Reader: os.Stdin, Writer: os.Stdout, KeepReaderAnnotations: true}
	nodes, err := list.Read()
	if err != nil {
		return err
	}
	var config struct {
		Replacements []types.Replacement `json:"replacements"`
	}
	if err := yaml.Unmarshal([]byte(list.FunctionConfig.MustString()), &config); err != nil {
		return err
	}
	nodes, err = replacement.Filter{Replacements: config.Replacements}.Filter(nodes)
	if err != nil {
		return err
	}
	return list.Write(nodes)
}
