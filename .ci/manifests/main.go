// Command manifests builds a kustomization and decodes each of its objects with Kubernetes' own types, strictly: an
// unknown field, a wrong type and a duplicate key are errors, as they are for an API server that validates fields.
package main

import (
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	count, err := check(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%d objects are valid\n", count)
}

func check(dir string) (int, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return 0, err
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return 0, err
	}
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			return 0, err
		}
		if _, _, err := decoder.Decode(text, nil, nil); err != nil {
			return 0, fmt.Errorf("%s: %w", resource.CurId(), err)
		}
	}
	return built.Size(), nil
}
