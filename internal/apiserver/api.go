package main

import (
	"fmt"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/applyconfigurations"
	restclient "k8s.io/client-go/rest"
)

// newAPI returns the API server, which does not serve yet. url is the URL for clients,
// address its host and port, and etcd the URL of etcd.
func newAPI(url, address, etcd string) (*genericapiserver.GenericAPIServer, error) {
	all := resources()
	scheme, err := newScheme(all)
	if err != nil {
		return nil, fmt.Errorf("failed to make a scheme: %w", err)
	}
	codecs := serializer.NewCodecFactory(scheme)
	config := genericapiserver.NewConfig(codecs)
	config.ExternalAddress = address // must have a port, or klog.Fatal ends the program
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.LoopbackClientConfig = &restclient.Config{Host: url, QPS: -1}
	config.Authentication.Authenticator = genericapiserver.InsecureSuperuser{}
	config.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	config.SkipOpenAPIInstallation = true  // the definitions are in k8s.io/kubernetes
	config.StorageObjectCountTracker = nil // only needed for priority and fairness
	config.EnableProfiling = false
	server, err := config.Complete(nil).New("kubegrace", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("failed to make an API server: %w", err)
	}
	installer := &installer{server: server, scheme: scheme, codecs: codecs}
	if err := installer.installAll(all, storage{etcd: etcd, scheme: scheme, codecs: codecs}); err != nil {
		return nil, err
	}
	return server, nil
}

// installer adds the API groups to a server. The server's own InstallAPIGroup needs
// OpenAPI definitions for server-side apply, which are in k8s.io/kubernetes; the
// installer uses client-go's schema of the same types.
type installer struct {
	server *genericapiserver.GenericAPIServer
	scheme *runtime.Scheme
	codecs serializer.CodecFactory
}

// installAll makes the stores of the resources, and serves each group version with its resources.
func (i *installer) installAll(all []resource, etcd storage) error {
	groups := map[schema.GroupVersion]map[string]rest.Storage{}
	for _, r := range all {
		stores, err := etcd.stores(r)
		if err != nil {
			return err
		}
		for path, store := range stores {
			if groups[r.GroupVersion] == nil {
				groups[r.GroupVersion] = map[string]rest.Storage{}
			}
			groups[r.GroupVersion][path] = store
			i.server.RegisterDestroyFunc(store.Destroy)
		}
	}
	for group, stores := range groups {
		if err := i.installGroup(group, stores); err != nil {
			return fmt.Errorf("failed to install %s: %w", group, err)
		}
	}
	return nil
}

// installGroup serves the resources of a group version and adds them to discovery.
func (i *installer) installGroup(group schema.GroupVersion, stores map[string]rest.Storage) error {
	root, aggregatedDiscovery := "/apis", i.server.AggregatedDiscoveryGroupManager
	isCore := group.Group == "" // the group of pods, which has paths of its own
	if isCore {
		root, aggregatedDiscovery = "/api", i.server.AggregatedLegacyDiscoveryGroupManager
	}
	discovered, _, err := i.apiGroupVersion(root, group, stores).InstallREST(i.server.Handler.GoRestfulContainer)
	if err != nil {
		return err
	}
	// client-go requests aggregated discovery first, and requests no other if that is empty.
	aggregatedDiscovery.AddGroupVersion(group.Group, apidiscoveryv2.APIVersionDiscovery{
		Version: group.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent, Resources: discovered,
	})
	if isCore {
		i.serveCoreDiscovery()
	} else {
		i.serveGroupDiscovery(group)
	}
	return nil
}

// apiGroupVersion returns what k8s.io/apiserver needs to serve the resources of a group version below the path root.
func (i *installer) apiGroupVersion(root string, group schema.GroupVersion, stores map[string]rest.Storage) *endpoints.APIGroupVersion {
	served := map[string][]string{}
	for path := range stores {
		served[path] = []string{group.String()}
	}
	return &endpoints.APIGroupVersion{
		Root: root, GroupVersion: group, Storage: stores, AllServedVersionsByResource: served,
		OptionsExternalVersion:     &schema.GroupVersion{Version: "v1"},
		Serializer:                 i.codecs,
		ParameterCodec:             metav1.ParameterCodec,
		Typer:                      i.scheme,
		Creater:                    i.scheme, //nolint:misspell // the field's name
		Convertor:                  i.scheme,
		ConvertabilityChecker:      i.scheme,
		UnsafeConvertor:            runtime.UnsafeObjectConvertor(i.scheme),
		Defaulter:                  i.scheme,
		Namer:                      runtime.Namer(meta.NewAccessor()),
		TypeConverter:              applyconfigurations.NewTypeConverter(i.scheme),
		EquivalentResourceRegistry: i.server.EquivalentResourceRegistry,
		Authorizer:                 i.server.Authorizer,
		MinRequestTimeout:          30 * time.Minute, // kube-apiserver's --min-request-timeout
		MaxRequestBodyBytes:        3 << 20,          // as in kube-apiserver
	}
}

// serveCoreDiscovery serves the discovery of /api, which has the core group.
func (i *installer) serveCoreDiscovery() {
	addresses := discovery.DefaultAddresses{DefaultAddress: i.server.ExternalAddress}
	handler := discovery.NewLegacyRootAPIHandler(addresses, i.codecs, "/api")
	wrapped := aggregated.WrapAggregatedDiscoveryToHandler(handler, i.server.AggregatedLegacyDiscoveryGroupManager)
	i.server.Handler.GoRestfulContainer.Add(wrapped.GenerateWebService("/api", metav1.APIVersions{}))
}

// serveGroupDiscovery serves the discovery of /apis/GROUP.
func (i *installer) serveGroupDiscovery(group schema.GroupVersion) {
	version := metav1.GroupVersionForDiscovery{GroupVersion: group.String(), Version: group.Version}
	described := metav1.APIGroup{Name: group.Group, PreferredVersion: version, Versions: []metav1.GroupVersionForDiscovery{version}}
	i.server.DiscoveryGroupManager.AddGroup(described)
	i.server.Handler.GoRestfulContainer.Add(discovery.NewAPIGroupHandler(i.codecs, described).WebService())
}
