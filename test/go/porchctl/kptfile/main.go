// Command kptfile reads Kptfiles as kpt does: strictly, so that a field that this version does not know is an error.
package main

import (
	"fmt"
	"os"

	kptfilev1 "github.com/GoogleContainerTools/kpt/pkg/api/kptfile/v1"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

func main() {
	for _, path := range os.Args[1:] {
		if err := read(path); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			os.Exit(1)
		}
	}
}

func read(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	kptfile := &kptfilev1.KptFile{}
	if err := decoder.Decode(kptfile); err != nil {
		return err
	}
	for _, condition := range kptfile.Status.Conditions {
		fmt.Printf("%s %s %s\n", condition.Type, condition.Status, condition.Reason)
	}
	return nil
}
