package cri_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func (s *stub) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{RuntimeName: "stub"}, nil
}

func (s *stub) RunPodSandbox(_ context.Context, request *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fmt.Sprintf("sandbox-%d", len(s.sandboxes))
	s.sandboxes[id] = &runtimeapi.PodSandbox{Id: id, Metadata: request.GetConfig().GetMetadata(), Labels: request.GetConfig().GetLabels()}
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: id}, nil
}

func (s *stub) ListPodSandbox(_ context.Context, request *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	response := &runtimeapi.ListPodSandboxResponse{}
	for _, id := range slices.Sorted(maps.Keys(s.sandboxes)) {
		if selected(s.sandboxes[id].GetLabels(), request.GetFilter().GetLabelSelector()) {
			response.Items = append(response.Items, s.sandboxes[id])
		}
	}
	return response, nil
}

func selected(labels, selector map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

func (s *stub) StopPodSandbox(context.Context, *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	return &runtimeapi.StopPodSandboxResponse{}, nil
}

func (s *stub) RemovePodSandbox(_ context.Context, request *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sandboxes, request.GetPodSandboxId())
	maps.DeleteFunc(s.containers, func(id string, _ *runtimeapi.ContainerStatus) bool {
		return s.inSandbox[id] == request.GetPodSandboxId()
	})
	return &runtimeapi.RemovePodSandboxResponse{}, nil
}

func (s *stub) CreateContainer(_ context.Context, request *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	config := request.GetConfig()
	id := fmt.Sprintf("%s-%d", config.GetMetadata().GetName(), len(s.containers))
	status := &runtimeapi.ContainerStatus{Id: id, Metadata: config.GetMetadata(), Labels: config.GetLabels(), CreatedAt: int64(len(s.containers))}
	if !s.ignoreStopSignal {
		status.StopSignal = config.GetStopSignal()
	}
	s.containers[id], s.inSandbox[id] = status, request.GetPodSandboxId()
	return &runtimeapi.CreateContainerResponse{ContainerId: id}, nil
}

func (s *stub) StartContainer(_ context.Context, request *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	container, ok := s.containers[request.GetContainerId()]
	if !ok { // a client that gave up waiting for the answer has removed it
		return nil, status.Error(codes.NotFound, "no such container")
	}
	container.State = runtimeapi.ContainerState_CONTAINER_RUNNING
	if code, ok := s.exitCodes[container.GetMetadata().GetName()]; ok {
		s.exitLocked(container.GetId(), code)
	}
	return &runtimeapi.StartContainerResponse{}, nil
}

func (s *stub) StopContainer(_ context.Context, request *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.containers[request.GetContainerId()] == nil {
		return nil, status.Error(codes.NotFound, "no such container")
	}
	s.exitLocked(request.GetContainerId(), 0)
	return &runtimeapi.StopContainerResponse{}, nil
}

func (s *stub) RemoveContainer(_ context.Context, request *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.containers, request.GetContainerId())
	return &runtimeapi.RemoveContainerResponse{}, nil
}

func (s *stub) ListContainers(_ context.Context, request *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	response := &runtimeapi.ListContainersResponse{}
	// The order is reversed, because CRI promises none.
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(s.containers))) {
		container, filter := s.containers[id], request.GetFilter()
		if filter.GetPodSandboxId() != "" && filter.GetPodSandboxId() != s.inSandbox[id] {
			continue
		}
		if filter.GetState() != nil && filter.GetState().GetState() != container.GetState() {
			continue
		}
		response.Containers = append(response.Containers, &runtimeapi.Container{
			Id: id, PodSandboxId: s.inSandbox[id], Metadata: container.GetMetadata(), State: container.GetState(),
			CreatedAt: container.GetCreatedAt(), Labels: container.GetLabels(),
		})
	}
	return response, nil
}

func (s *stub) ContainerStatus(_ context.Context, request *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	container, ok := s.containers[request.GetContainerId()]
	if !ok {
		return nil, status.Error(codes.NotFound, "no such container")
	}
	return &runtimeapi.ContainerStatusResponse{Status: container}, nil
}

// stubImages is the image service of the stub.
type stubImages struct {
	runtimeapi.UnimplementedImageServiceServer
	stub *stub
}

func (i *stubImages) ImageStatus(_ context.Context, request *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	name := request.GetImage().GetImage()
	if i.stub.images != nil && !slices.Contains(i.stub.images, name) {
		return &runtimeapi.ImageStatusResponse{}, nil
	}
	return &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{Id: name}}, nil
}
