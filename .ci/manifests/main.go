// Command manifests builds the overlay that docs/deployment.md shows, and decodes each of its objects with Kubernetes'
// own types, strictly: an unknown field, a wrong type and a duplicate key are errors, as they are for an API server
// that validates fields. Then it follows the commands of the page, whose label selectors are to apply each object once
// and in the order of an upgrade.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	count, err := check(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%d objects are valid, and applied in order\n", count)
}

// check checks the manifests of a repository.
func check(root string) (int, error) {
	text, err := os.ReadFile(filepath.Join(root, "docs/deployment.md"))
	if err != nil {
		return 0, err
	}
	_, section, _ := strings.Cut(string(text), "\n## Kubernetes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	built, err := build(root, section)
	if err != nil {
		return 0, err
	}
	if err := decode(built); err != nil {
		return 0, err
	}
	return built.Size(), follow(built, section)
}

// build returns the objects of the overlay that the page shows.
func build(root, section string) (resmap.ResMap, error) {
	_, overlay, _ := strings.Cut(section, "```yaml\n")
	overlay, _, found := strings.Cut(overlay, "```")
	if !found {
		return nil, fmt.Errorf("the page shows no overlay")
	}
	dir, err := os.MkdirTemp("", "overlay")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	at := filepath.Join(dir, "your", "overlay")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return nil, err
	}
	if err := os.Symlink(filepath.Join(root, "deploy"), filepath.Join(dir, "deploy")); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(at, "kustomization.yaml"), []byte(overlay), 0o644); err != nil {
		return nil, err
	}
	return krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), at)
}

// decode decodes each object with its Go type.
func decode(built resmap.ResMap) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			return err
		}
		if _, _, err := decoder.Decode(text, nil, nil); err != nil {
			return fmt.Errorf("%s: %w", resource.CurId(), err)
		}
	}
	return nil
}

var (
	applies = regexp.MustCompile(`^kubectl apply --kustomize \S+ --selector (?:'([^']+)'|(\S+))$`)
	awaits  = regexp.MustCompile(`^kubectl --namespace fanfare (?:wait|rollout status) (\S+)`)
	creates = regexp.MustCompile(`^ +kubectl --namespace fanfare create secret `)
)

// follow checks that the commands of the page apply each object once, what others need before them, and that they wait
// for each of `order` before they go on.
func follow(built resmap.ResMap, section string) error {
	order := []string{"job/migrate", "deployment/worker", "deployment/api"}
	applied := map[string]int{}
	step := 0
	hasNamespace := false
	var awaited []string
	for _, line := range strings.Split(section, "\n") {
		if line == "kubectl apply --filename deploy/kubernetes/namespace.yaml" {
			hasNamespace = true
		}
		if creates.MatchString(line) && !hasNamespace {
			return fmt.Errorf("a Secret is created before its namespace")
		}
		if found := awaits.FindStringSubmatch(line); found != nil {
			if at, isApplied := applied[found[1]]; !isApplied || at != step {
				return fmt.Errorf("%s is awaited, and was not applied just before", found[1])
			}
			awaited = append(awaited, found[1])
		}
		found := applies.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		step++
		if len(awaited) < min(step-2, len(order)) {
			return fmt.Errorf("step %d does not wait for the one before: %v", step, awaited)
		}
		selector, err := labels.Parse(found[1] + found[2])
		if err != nil {
			return err
		}
		for _, resource := range built.Resources() {
			if !selector.Matches(labels.Set(resource.GetLabels())) {
				continue
			}
			name := strings.ToLower(resource.GetKind()) + "/" + resource.GetName()
			if _, again := applied[name]; again {
				return fmt.Errorf("%s is applied twice", name)
			}
			applied[name] = step
			isShared := resource.GetKind() == "Namespace" || resource.GetKind() == "ConfigMap"
			if isShared && step > 1 {
				return fmt.Errorf("%s is applied in step %d, and needed before", name, step)
			}
		}
	}
	if strings.Join(awaited, " ") != strings.Join(order, " ") {
		return fmt.Errorf("%v are awaited instead of %v", awaited, order)
	}
	if len(applied) != built.Size() {
		return fmt.Errorf("%d of %d objects are applied: %v", len(applied), built.Size(), applied)
	}
	return nil
}
