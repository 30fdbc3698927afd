// Command argocd runs one of the components of Argo CD that the tests of delivery need. The module does not have the files of the user
// interface, so the API server serves none.
package main

import (
	"fmt"
	"os"

	applicationcontroller "github.com/argoproj/argo-cd/v3/cmd/argocd-application-controller/commands"
	applicationset "github.com/argoproj/argo-cd/v3/cmd/argocd-applicationset-controller/commands"
	reposerver "github.com/argoproj/argo-cd/v3/cmd/argocd-repo-server/commands"
	server "github.com/argoproj/argo-cd/v3/cmd/argocd-server/commands"
	"github.com/spf13/cobra"
)

func main() {
	command := &cobra.Command{Use: "argocd", SilenceUsage: true}
	add := func(name string, component *cobra.Command) {
		component.Use = name
		command.AddCommand(component)
	}
	add("application-controller", applicationcontroller.NewCommand())
	add("applicationset-controller", applicationset.NewCommand())
	add("repo-server", reposerver.NewCommand())
	add("server", server.NewCommand())
	if err := command.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
