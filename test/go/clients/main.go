// Command clients checks that programs written in Go with client-go and controller-runtime can work with a server. It prints one
// line a check and ends with 1 if one failed.
//
//	clients -kubeconfig FILE -namespace NAME -git ADDRESS [-cluster]
//
// With -cluster the server is a kube-apiserver with an installation of Sluice.
//
// The namespace is created and must be of no other use; the address is that of a Git repository with a branch main.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	controllerlog "sigs.k8s.io/controller-runtime/pkg/log"
)

// checkTimeout is for one check, patience for what the server does in its own time. In a cluster, kube-controller-manager looks for new
// kinds every 30 seconds and retries the deletion of a namespace with growing pauses.
var checkTimeout, patience = 60 * time.Second, 20 * time.Second

// world is what the checks share.
type world struct {
	config    *rest.Config
	typed     *kubernetes.Clientset
	dynamic   *dynamic.DynamicClient
	namespace string
	git       string
	inCluster bool
	wire      *wire
}

type check struct {
	name string
	run  func(ctx context.Context, w *world) error
}

func main() {
	// controller-runtime puts flags of its own into the common set.
	flags := flag.NewFlagSet("clients", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of the server")
	namespace := flags.String("namespace", "go-clients", "namespace to work in")
	git := flags.String("git", "", "address of a Git repository for packages")
	inCluster := flags.Bool("cluster", false, "the server is a kube-apiserver")
	_ = flags.Parse(os.Args[1:])
	if *inCluster {
		checkTimeout, patience = 150*time.Second, 90*time.Second
	}
	controllerlog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS, config.Burst = -1, -1
	w := &world{config: config, namespace: *namespace, git: *git, inCluster: *inCluster, wire: &wire{}}
	config.Wrap(w.wire.wrap)
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = "application/vnd.kubernetes.protobuf"
	protobuf.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	if w.typed, err = kubernetes.NewForConfig(protobuf); err != nil {
		log.Fatal(err)
	}
	if w.dynamic, err = dynamic.NewForConfig(config); err != nil {
		log.Fatal(err)
	}

	failed := 0
	for _, group := range [][]check{coreChecks, reviewChecks, listChecks, sharingChecks, packageChecks, controllerChecks, wireChecks} {
		for _, c := range group {
			if err := w.try(c); err != nil {
				failed++
				fmt.Printf("FAIL %s: %v\n", c.name, err)
			} else {
				fmt.Printf("ok   %s\n", c.name)
			}
		}
	}
	if failed > 0 {
		fmt.Printf("%d checks failed\n", failed)
		os.Exit(1)
	}
}

func (w *world) try(c check) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return c.run(ctx, w)
}

// until polls as Go programs do that wait for something.
func until(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, done)
	if err != nil {
		return fmt.Errorf("waiting until %s: %w", what, err)
	}
	return nil
}

// expect makes an error of what does not hold.
func expect(holds bool, format string, args ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// refused expects an error that one of the judges of apimachinery knows.
func refused(err error, judge func(error) bool, what string) error {
	if err == nil {
		return fmt.Errorf("expected %s, but it succeeded", what)
	}
	if !judge(err) {
		return fmt.Errorf("expected %s, got %q (%v)", what, err, errors.ReasonForError(err))
	}
	return nil
}

// all runs steps in order up to the first that fails.
func all(steps ...func() error) error {
	for i, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

// contains expects that a text has all of the parts.
func contains(text string, parts ...string) error {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return fmt.Errorf("%q is not in %q", part, text)
		}
	}
	return nil
}
